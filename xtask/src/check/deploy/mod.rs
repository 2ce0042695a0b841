//! Checks `deploy/` with the programs that read such files (Kubernetes, BuildKit, systemd) and with the host.
//!
//! Schemas check that a manifest is well-formed; [`checks`] checks that its parts fit each other and the host. Each kind of check
//! also gets broken input ([`broken`]), and the step fails when the check does not complain about it.

mod broken;
mod checks;
mod complaints;
mod document;
mod host;
mod image;
mod manifests;
mod page;
mod pods;
mod runbook;
mod unit;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;
use walkdir::WalkDir;

use crate::install::deploy_tools::Tools;
use crate::workspace::Workspace;

/// Errors with all complaints about the first part that has some. An earlier step has built the host and the policies.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    runbook::check(workspace)?;
    page::check(workspace)?;
    image::check(workspace)?;
    unit::check(workspace)?;
    host::takes_files(workspace)?;
    host::answers_probes(workspace)?;
    let Some(tools) = Tools::ensure(workspace)? else {
        return Ok(());
    };
    let folder = workspace.root.join("deploy");
    tools.lint_image(&folder.join("Dockerfile"))?;
    tools.lint_yaml(&folder.join("yamllint.yaml"), &folder)?;
    let mut rendered = Vec::new();
    for (name, kustomization) in sets(workspace, &folder)? {
        let file = workspace.deploy_scratch()?.join(format!("{name}.yaml"));
        fs::write(&file, tools.render(&kustomization)?)?;
        rendered.push((name, file));
    }
    tools.validate(&rendered.iter().map(|(_, file)| file.clone()).collect::<Vec<_>>())?;
    let mut shown = broken::Shown::default();
    for (name, file) in rendered {
        let set = tools.parse(&file)?;
        complaints::refuse(&format!("deploy/kubernetes, {name}"), &checks::all(&set))?;
        host::accepts(workspace, &set).with_context(|| format!("deploy/kubernetes, {name}"))?;
        shown.break_each(&set).with_context(|| format!("deploy/kubernetes, {name}"))?;
        println!("{name}: {} objects", set.len());
    }
    shown.all()?;
    broken::shown_to_tools(&tools, &workspace.deploy_scratch()?)
}

/// The overlays, and one with policies from files. Those files are not in the repository, so it is created in the target folder.
fn sets(workspace: &Workspace, folder: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    let overlays = folder.join("kubernetes/overlays");
    Ok(vec![
        ("trial", overlays.join("trial")),
        ("production", overlays.join("production")),
        ("policies", with_policies(workspace, &folder.join("kubernetes"))?),
    ])
}

/// Adds the component `policies` to the trial, with the largest policy of each slot.
fn with_policies(workspace: &Workspace, kubernetes: &Path) -> Result<PathBuf> {
    let copy = workspace.deploy_scratch()?.join("kubernetes");
    match fs::remove_dir_all(&copy) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => copy_folder(kubernetes, &copy)?,
    }
    for slot in ["target", "grace", "presence", "settle"] {
        let of_slot = workspace.policies.iter().filter(|policy| policy.name.starts_with(&format!("{slot}-")));
        let mut sized = of_slot
            .map(|policy| workspace.published(policy))
            .map(|file| fs::metadata(&file).map(|metadata| (metadata.len(), file)))
            .collect::<Result<Vec<_>, _>>()
            .context("the policies are built by an earlier step: cargo xtask policies")?;
        sized.sort();
        let (_, largest) = sized.pop().with_context(|| format!("policies/ has none for {slot}"))?;
        fs::copy(largest, copy.join(format!("components/policies/{slot}.wasm")))?;
    }
    let overlay = copy.join("overlays/policies");
    fs::create_dir_all(&overlay)?;
    fs::write(
        overlay.join("kustomization.yaml"),
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - ../trial\ncomponents:\n  - ../../components/policies\n",
    )?;
    Ok(overlay)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for entry in WalkDir::new(from) {
        let entry = entry?;
        let place = to.join(entry.path().strip_prefix(from)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(place)?;
        } else {
            fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}
