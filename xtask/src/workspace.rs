//! Describes this workspace as cargo knows it: its folders, and which members are wasm guests.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::Value;

use crate::command;

/// A member that is compiled to a wasm component.
pub(crate) struct Guest {
    /// Cargo's name of the package.
    pub(crate) package: String,
    /// The name of its folder, and of the file that is published.
    pub(crate) name: String,
    /// The file name that cargo gives its component.
    artefact: String,
    /// The folder within the target folder where it is published.
    folder: &'static str,
}

/// The workspace that this task was started for.
pub(crate) struct Workspace {
    /// Folder of the root manifest.
    pub(crate) root: PathBuf,
    /// Cargo's target folder.
    pub(crate) target: PathBuf,
    /// The members of `policies/`, without the SDK.
    pub(crate) policies: Vec<Guest>,
    /// The members of `tests/guests/`: policies that misbehave.
    pub(crate) hostile: Vec<Guest>,
    /// The packages that run on this machine.
    pub(crate) native: Vec<String>,
    /// The packages that are compiled to wasm: the guests and the SDK.
    pub(crate) wasm: Vec<String>,
}

impl Workspace {
    /// Asks cargo. Errors when cargo does.
    pub(crate) fn load() -> Result<Self> {
        // As `cargo run` says now, not as it was compiled: copies of a workspace may share what was built.
        let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let metadata = ["metadata", "--no-deps", "--format-version=1"];
        let metadata = command::output(cargo().current_dir(here).args(metadata))?;
        let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata")?;
        let root = text(&metadata["workspace_root"])?.into();
        let target = text(&metadata["target_directory"])?.into();
        let mut workspace =
            Self { root, target, policies: Vec::new(), hostile: Vec::new(), native: Vec::new(), wasm: Vec::new() };
        for package in metadata["packages"].as_array().into_iter().flatten() {
            workspace.add(package)?;
        }
        Ok(workspace)
    }

    fn add(&mut self, package: &Value) -> Result<()> {
        let name = text(&package["name"])?;
        let manifest = Path::new(text(&package["manifest_path"])?);
        let folder =
            manifest.parent().context("a manifest lies in a folder")?.strip_prefix(&self.root).unwrap_or(manifest);
        let (guests, published) = if folder.starts_with("policies") {
            (&mut self.policies, "policies")
        } else if folder.starts_with("tests/guests") {
            (&mut self.hostile, "guests")
        } else {
            self.native.push(name.to_owned());
            return Ok(());
        };
        self.wasm.push(name.to_owned());
        // A component is a cdylib; what is not one (the SDK) is a part of those that are.
        if let Some(artefact) = component(package) {
            guests.push(Guest {
                package: name.to_owned(),
                name: folder.file_name().context("a guest has a folder of its own")?.to_string_lossy().into_owned(),
                artefact,
                folder: published,
            });
        }
        Ok(())
    }

    /// Cargo in the workspace's root; the same cargo that started this task.
    pub(crate) fn cargo<I>(&self, arguments: I) -> Command
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        let mut command = cargo();
        command.current_dir(&self.root).args(arguments);
        command
    }

    /// The text of a file of the workspace.
    pub(crate) fn read(&self, file: &str) -> Result<String> {
        Ok(fs::read_to_string(self.root.join(file))?)
    }

    /// Where cargo puts a guest's component.
    pub(crate) fn artefact(&self, guest: &Guest) -> PathBuf {
        self.target.join("wasm32-wasip2/policy").join(&guest.artefact)
    }

    /// Where a guest's component is published: `policies/NAME.wasm` or `guests/NAME.wasm` in the target folder.
    pub(crate) fn published(&self, guest: &Guest) -> PathBuf {
        self.target.join(guest.folder).join(format!("{}.wasm", guest.name))
    }

    /// A policy's golden vectors, if it has some.
    pub(crate) fn vectors(&self, guest: &Guest) -> PathBuf {
        self.root.join(guest.folder).join(&guest.name).join("vectors.jsonl")
    }

    /// Where a policy's component is published.
    pub(crate) fn policy(&self, name: &str) -> PathBuf {
        self.target.join("policies").join(format!("{name}.wasm"))
    }

    /// The host's binary.
    pub(crate) fn host(&self) -> PathBuf {
        self.target.join("debug/pointwork")
    }

    /// The run folder of `up`.
    pub(crate) fn up(&self) -> PathBuf {
        self.target.join("up")
    }

    /// The folder of the Node tests.
    pub(crate) fn clients(&self) -> PathBuf {
        self.root.join("tests/clients")
    }

    /// The folder of the Node replicas.
    pub(crate) fn peers(&self) -> PathBuf {
        self.root.join("tests/peers/node")
    }

    /// The folder of the gauntlet.
    pub(crate) fn gauntlet(&self) -> PathBuf {
        self.root.join("tests/gauntlet")
    }

    /// Where the checks of `deploy/` keep their tools and write what they make. Errors when it cannot be created.
    pub(crate) fn deploy_scratch(&self) -> Result<PathBuf> {
        let folder = self.target.join("deploy");
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// All guests, policies first.
    pub(crate) fn guests(&self) -> Vec<&Guest> {
        self.policies.iter().chain(&self.hostile).collect()
    }
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn component(package: &Value) -> Option<String> {
    let library = package["targets"].as_array()?.iter().find(|target| {
        target["crate_types"].as_array().is_some_and(|types| types.iter().any(|kind| kind == "cdylib"))
    })?;
    let name = library["name"].as_str()?.replace('-', "_");
    Some(format!("{name}.wasm"))
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("cargo metadata lacks a field")
}
