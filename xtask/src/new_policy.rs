//! `new-policy`: a policy that builds, passes the host's checks and swaps in as it is; its author changes the rule from there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};

use crate::workspace::Workspace;

const MANIFEST: &str = include_str!("../templates/manifest.toml");

/// A name is a folder, a package and a file: long enough for any rule, short enough for all three.
const NAME_MAX_BYTES: usize = 48;

/// Well-formed names that no library can have.
const RESERVED: [&str; 43] = [
    "abstract", "alloc", "as", "async", "await", "become", "box", "break", "const", "continue", "core", "crate", "do",
    "dyn", "else", "enum", "extern", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match",
    "mod", "move", "mut", "pub", "ref", "return", "self", "static", "std", "struct", "super", "test", "trait", "type",
    "use",
];

#[derive(Args)]
pub(crate) struct Options {
    /// What it is called: lower case, digits and single hyphens; its folder under policies/ and its package.
    #[arg(value_name = "NAME")]
    name: String,
    /// The slot that it is for.
    #[arg(long)]
    slot: Slot,
}

/// What a policy can be for; each has a template that starts as the slot's native rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Slot {
    /// Which daemon gets a call.
    Target,
    /// How long a call waits for its daemon.
    Grace,
    /// Whether a call in flight is given up.
    Presence,
    /// Which socket holds a device's session.
    Settle,
}

impl Slot {
    fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Grace => "grace",
            Self::Presence => "presence",
            Self::Settle => "settle",
        }
    }

    /// The rule with its unit tests, and the golden vectors.
    fn template(self) -> (&'static str, &'static str) {
        macro_rules! template {
            ($slot:literal) => {
                (
                    include_str!(concat!("../templates/", $slot, "/lib.rs")),
                    include_str!(concat!("../templates/", $slot, "/vectors.jsonl")),
                )
            };
        }
        match self {
            Self::Target => template!("target"),
            Self::Grace => template!("grace"),
            Self::Presence => template!("presence"),
            Self::Settle => template!("settle"),
        }
    }
}

/// Writes the policy and says what to do with it. Errors when the name is not good or taken; nothing is written then.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let Options { name, slot } = options;
    create(&workspace.root, name, *slot)?;
    let slot = slot.name();
    println!(
        "policies/{name}: the native rule of the slot {slot}, yours to change in src/lib.rs

  cargo test -p {name}          its rule, without wasm
  cargo xtask policies          builds and checks it: target/policies/{name}.wasm
  docs/from-a-rule-to-promoted.md  how it gets from here to all devices"
    );
    Ok(())
}

/// Writes `policies/NAME` in the workspace at `root`. Errors as [`run`].
pub(crate) fn create(root: &Path, name: &str, slot: Slot) -> Result<()> {
    validate(name)?;
    let folder = root.join("policies").join(name);
    if taken(root, name)? {
        bail!("a package called {name} exists already: `cargo build -p {name}` would be ambiguous");
    }
    // Fails for whatever is there, a file or a broken link too: nothing of anybody's is overwritten.
    fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    write(&folder, name, slot).inspect_err(|_| {
        // Half a policy would stop every build of the workspace. The error to tell is the one that came first.
        drop(fs::remove_dir_all(&folder));
    })
}

/// The manifest comes last: until it is there, cargo does not take the folder for a package.
fn write(folder: &Path, name: &str, slot: Slot) -> Result<()> {
    let (rule, vectors) = slot.template();
    fs::create_dir(folder.join("src")).with_context(|| format!("{}", folder.display()))?;
    let files: [(PathBuf, &str); 3] =
        [("src/lib.rs".into(), rule), ("vectors.jsonl".into(), vectors), ("Cargo.toml".into(), MANIFEST)];
    for (file, text) in files {
        let path = folder.join(file);
        let text = text.replace("{{name}}", name).replace("{{slot}}", slot.name());
        fs::write(&path, text).with_context(|| format!("{}", path.display()))?;
    }
    Ok(())
}

fn validate(name: &str) -> Result<()> {
    ensure!(name.len() <= NAME_MAX_BYTES, "a policy's name has {NAME_MAX_BYTES} bytes at most");
    let part =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    ensure!(
        name.split('-').all(part) && name.starts_with(|first: char| first.is_ascii_lowercase()),
        "`{name}` is no policy's name: lower case, digits and single hyphens, a letter first, as in settle-calm"
    );
    ensure!(!RESERVED.contains(&name), "`{name}` is a word of the language and cannot name a library");
    Ok(())
}

/// Whether a member or a dependency has the name: two packages of one name cannot be told apart on cargo's command line.
fn taken(root: &Path, name: &str) -> Result<bool> {
    let lock = root.join("Cargo.lock");
    let text = fs::read_to_string(&lock).with_context(|| format!("{}", lock.display()))?;
    let line = format!("name = \"{name}\"");
    Ok(text.lines().any(|other| other == line))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
