//! Watches the sources of policies, and rebuilds and swaps the policies that a change concerns.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use crate::build::policies;
use crate::workspace::{Guest, Workspace};

/// Calls `changed` with each path under policies/ and wit/ that is written, created, moved or removed, until it is dropped.
pub(crate) fn start(workspace: &Workspace, changed: impl Fn(PathBuf) + Send + 'static) -> Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // A build reads the sources: an access is no change. A watch error is a lost event; the next save brings another.
        if let Ok(event) = event
            && !event.kind.is_access()
        {
            event.paths.into_iter().for_each(&changed);
        }
    })?;
    for folder in ["policies", "wit"] {
        watcher
            .watch(&workspace.root.join(folder), RecursiveMode::Recursive)
            .with_context(|| format!("cannot watch {folder}/"))?;
    }
    Ok(watcher)
}

/// The policies to rebuild after these paths changed.
pub(crate) fn concerned<'a>(workspace: &'a Workspace, paths: &BTreeSet<PathBuf>) -> Vec<&'a Guest> {
    let concerns: Vec<Concern> =
        paths.iter().filter_map(|path| concern(path.strip_prefix(&workspace.root).ok()?)).collect();
    workspace
        .policies
        .iter()
        .filter(|policy| {
            concerns.iter().any(|concern| match concern {
                Concern::All => true,
                Concern::One(name) => *name == policy.name,
            })
        })
        .collect()
}

/// Rebuilds these policies and swaps each into the slots that it serves. A slot is served by a policy if it holds the bytes of
/// the policy's last build, copied by `up` or by hand. Errors when a policy does not build; then nothing is swapped.
pub(crate) fn rebuild(workspace: &Workspace, changed: &[&Guest], slots: &Path) -> Result<()> {
    let before: Vec<Option<Vec<u8>>> =
        changed.iter().map(|policy| fs::read(workspace.published(policy)).ok()).collect();
    policies::build(workspace, changed)?;
    for (policy, before) in changed.iter().zip(before) {
        let after = fs::read(workspace.published(policy))?;
        if before.as_ref() == Some(&after) {
            println!("{}: rebuilt, the same as before", policy.name);
            continue;
        }
        let served = serving(slots, before.as_deref())?;
        if served.is_empty() {
            println!("{}: rebuilt, serves no slot", policy.name);
        }
        for slot in served {
            policies::replace(&slot, &after)?;
            println!("{}: rebuilt and swapped into {}", policy.name, slot.display());
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
enum Concern<'a> {
    All,
    One(&'a str),
}

/// `path` is relative to the workspace.
fn concern(path: &Path) -> Option<Concern<'_>> {
    let parts: Vec<&str> = path.iter().map_while(|part| part.to_str()).collect();
    match parts.as_slice() {
        // What an editor leaves for a moment beside a file is no source.
        [.., name] if name.starts_with('.') || name.ends_with('~') => None,
        ["wit", ..] | ["policies", "sdk", "src", ..] | ["policies", "sdk", "Cargo.toml"] => Some(Concern::All),
        ["policies", name, "src", ..] | ["policies", name, "Cargo.toml"] => Some(Concern::One(name)),
        _ => None,
    }
}

fn serving(slots: &Path, bytes: Option<&[u8]>) -> Result<Vec<PathBuf>> {
    let Some(bytes) = bytes else {
        return Ok(Vec::new());
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(slots)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "wasm") && fs::read(&path).is_ok_and(|present| present == bytes)
        {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_source_concerns_its_own_policy_and_the_shared_ones_concern_all() {
        let one = Some(Concern::One("target-first"));
        assert_eq!(concern(Path::new("policies/target-first/src/lib.rs")), one);
        assert_eq!(concern(Path::new("policies/target-first/Cargo.toml")), one);
        for shared in ["policies/sdk/src/lib.rs", "policies/sdk/Cargo.toml", "wit/policy.wit"] {
            assert_eq!(concern(Path::new(shared)), Some(Concern::All), "{shared}");
        }
        for other in ["policies/target-first/README.md", "policies/target-first/src/.lib.rs.swp", "host/src/main.rs"] {
            assert_eq!(concern(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn a_slot_is_served_by_the_policy_whose_bytes_it_holds() {
        let slots = std::env::temp_dir().join(format!("pointwork-slots-{}", std::process::id()));
        fs::create_dir_all(&slots).unwrap();
        fs::write(slots.join("target.wasm"), "a").unwrap();
        fs::write(slots.join("grace.wasm"), "b").unwrap();
        fs::write(slots.join("target.json"), "a").unwrap();
        assert_eq!(serving(&slots, Some(b"a")).unwrap(), [slots.join("target.wasm")]);
        assert!(serving(&slots, Some(b"c")).unwrap().is_empty());
        assert!(serving(&slots, None).unwrap().is_empty());
        fs::remove_dir_all(&slots).unwrap();
    }
}
