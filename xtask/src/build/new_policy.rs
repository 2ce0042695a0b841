//! Writes the first files of a new policy. It builds, passes the host's checks and can be swapped in at once.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use fs_err as fs;

use crate::workspace::Workspace;

const MANIFEST: &str = include_str!("../../templates/manifest.toml");

/// A name is that of a folder, a package and a file, and must not be too long for any of them.
const NAME_MAX_BYTES: usize = 48;

/// Names of libraries that come with the compiler, and a word that is reserved since the edition 2024.
const RESERVED: [&str; 5] = ["alloc", "core", "gen", "std", "test"];

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
        self.template().0
    }

    /// The slot's name, the rule with its unit tests, and the golden vectors.
    fn template(self) -> (&'static str, &'static str, &'static str) {
        macro_rules! template {
            ($slot:literal) => {
                (
                    $slot,
                    include_str!(concat!("../../templates/", $slot, "/lib.rs")),
                    include_str!(concat!("../../templates/", $slot, "/vectors.jsonl")),
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

/// Writes the policy and prints what to do next. Errors when the name is invalid or taken; then nothing is written.
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

/// Writes the manifest last: without it cargo does not regard the folder as a package.
fn write(folder: &Path, name: &str, slot: Slot) -> Result<()> {
    let (slot, rule, vectors) = slot.template();
    fs::create_dir(folder.join("src"))?;
    let files: [(PathBuf, &str); 3] =
        [("src/lib.rs".into(), rule), ("vectors.jsonl".into(), vectors), ("Cargo.toml".into(), MANIFEST)];
    for (file, text) in files {
        let path = folder.join(file);
        let text = text.replace("{{name}}", name).replace("{{slot}}", slot);
        fs::write(&path, text)?;
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
    // A name with a hyphen is no word of the language; one without is parsed as code would name its library.
    let is_usable = name.contains('-') || syn::parse_str::<syn::Ident>(name).is_ok();
    ensure!(is_usable && !RESERVED.contains(&name), "`{name}` is a word of the language and cannot name a library");
    Ok(())
}

/// Whether a member or a dependency has the name. Cargo's command line cannot distinguish two packages of the same name.
fn taken(root: &Path, name: &str) -> Result<bool> {
    let lock = root.join("Cargo.lock");
    let text = fs::read_to_string(&lock)?;
    let line = format!("name = \"{name}\"");
    Ok(text.lines().any(|other| other == line))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
