//! Builds the wasm guests, publishes them under the target folder, and has the host check and test the policies.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;
use fs_err as fs;

use crate::command;
use crate::install::wasm_target;
use crate::workspace::{Guest, Workspace};

/// The deadline of a decision while a policy is tested, in milliseconds. It is long, because the machine also builds and tests.
const TEST_DEADLINE_MS: u32 = 100;

#[derive(Args)]
pub(crate) struct Options {
    /// Build only these, and leave the check to `pointwork policy check`.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Builds what the command line names. Errors at the first policy that fails, and for a name that no policy has.
pub(crate) fn run_for(workspace: &Workspace, options: &Options) -> Result<()> {
    if options.names.is_empty() {
        return run(workspace);
    }
    let named = |name: &String| {
        let found = workspace.policies.iter().find(|policy| policy.name == *name);
        found.with_context(|| format!("policies/ has no {name}: cargo xtask new-policy {name} --slot SLOT"))
    };
    let policies: Vec<&Guest> = options.names.iter().map(named).collect::<Result<_>>()?;
    wasm_target::ensure(workspace)?;
    build(workspace, &policies)?;
    for policy in policies {
        println!("{}", workspace.published(policy).display());
    }
    Ok(())
}

/// Builds target, policies, hostile guests and host, and has the host check and test each policy. Errors at the first failure.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    build_all(workspace)?;
    build_host(workspace)?;
    check(workspace)?;
    test(workspace)
}

/// Builds policies and hostile guests and publishes them.
pub(crate) fn build_all(workspace: &Workspace) -> Result<()> {
    wasm_target::ensure(workspace)?;
    build(workspace, &workspace.guests())
}

/// Builds these guests and publishes them as `policies/NAME.wasm` and `guests/NAME.wasm` in the target folder. Golden vectors go with
/// their policy, to where `pointwork policy test` looks for them.
pub(crate) fn build(workspace: &Workspace, guests: &[&Guest]) -> Result<()> {
    if guests.is_empty() {
        // Without a package cargo would build the default members, which are not guests.
        return Ok(());
    }
    let mut build = workspace.cargo(["build", "--target=wasm32-wasip2", "--profile=policy"]);
    for guest in guests {
        build.args(["-p", &guest.package]);
    }
    command::run(&mut build)?;
    for guest in guests {
        let artefact = workspace.artefact(guest);
        let bytes = fs::read(&artefact)?;
        replace(&workspace.published(guest), &bytes)?;
        publish_vectors(workspace, guest)?;
    }
    Ok(())
}

/// A policy's golden vectors lie beside its component as `NAME.vectors.jsonl`, where `pointwork policy test` finds them.
fn publish_vectors(workspace: &Workspace, guest: &Guest) -> Result<()> {
    let published = workspace.published(guest).with_extension("vectors.jsonl");
    let source = workspace.vectors(guest);
    if source.exists() {
        return replace(&published, &fs::read(&source)?);
    }
    match fs::remove_file(&published) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Builds the host in the profile `dev`.
pub(crate) fn build_host(workspace: &Workspace) -> Result<()> {
    command::run(&mut workspace.cargo(["build", "--package=pointwork"]))
}

/// Puts a file in place by a rename within its folder, so that nobody reads half of it. Does not touch a file that has these bytes
/// already, so that programs that watch it see no change.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    let folder = path.parent().context("a file lies in a folder")?;
    let name = path.file_name().context("a file has a name")?;
    fs::create_dir_all(folder)?;
    let mut staged = std::ffi::OsString::from(".");
    staged.push(name);
    staged.push(format!(".{}", std::process::id()));
    let staged = folder.join(staged);
    fs::write(&staged, bytes)?;
    Ok(fs::rename(&staged, path)?)
}

/// Runs the checks that the host also makes when it loads a file.
fn check(workspace: &Workspace) -> Result<()> {
    let mut check = Command::new(workspace.host());
    check.args(["policy", "check"]);
    for policy in &workspace.policies {
        check.arg(workspace.published(policy));
    }
    command::run(&mut check)
}

/// Runs golden vectors and generated inputs.
fn test(workspace: &Workspace) -> Result<()> {
    for policy in &workspace.policies {
        let mut test = Command::new(workspace.host());
        test.args(["policy", "test", &format!("--deadline-ms={TEST_DEADLINE_MS}")]);
        command::run(test.arg(workspace.published(policy)))?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_whole_and_leaves_nothing_beside_it() {
        let folder = std::env::temp_dir().join(format!("pointwork-replace-{}", std::process::id()));
        let file = folder.join("target.wasm");
        replace(&file, b"one").unwrap();
        let before = fs::metadata(&file).unwrap().modified().unwrap();
        replace(&file, b"one").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
        replace(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
