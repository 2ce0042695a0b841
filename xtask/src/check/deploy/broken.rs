//! Breaks the manifests in one place at a time, and fails when no check complains about it.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::{Value, json};

use super::checks;
use super::document::Set;
use crate::install::deploy_tools::Tools;

/// Kind and name of an object, where in it (a JSON pointer), what stands there then (`null`: nothing), and what the complaint must
/// say.
type Break = (String, String, String, Value, String);

/// The breaks that no schema sees.
fn breaks() -> Result<Vec<Break>> {
    let mut breaks: Vec<Break> =
        include_str!("broken.jsonl").lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let place = "/binaryData/target.wasm".to_owned();
    let large = json!("A".repeat(1_500_000));
    breaks.push(("ConfigMap".into(), "pointwork-policies".into(), place, large, "more than the".into()));
    Ok(breaks)
}

/// The numbers of the breaks that were tried. Each must have had an object in some kustomization.
#[derive(Default)]
pub(super) struct Shown(BTreeSet<usize>);

impl Shown {
    /// Breaks a rendered kustomization in each way that concerns what it has. Errors when a check does not notice.
    pub(super) fn break_each(&mut self, set: &Set) -> Result<()> {
        for (number, (kind, name, place, value, complaint)) in breaks()?.into_iter().enumerate() {
            let mut broken = set.to_vec();
            let is_it = |object: &&mut Value| object["kind"] == kind && object["metadata"]["name"] == name;
            let Some(object) = broken.iter_mut().find(is_it) else {
                continue;
            };
            put(object, &place, value).with_context(|| format!("{kind}/{name} has no {place} to break"))?;
            let found = checks::all(&broken);
            ensure!(
                found.iter().any(|what| what.contains(&complaint)),
                "{kind}/{name} with another {place} should be told that it {complaint}; it is told {found:?}"
            );
            self.0.insert(number);
        }
        Ok(())
    }

    /// Errors when no kustomization had the object of some break.
    pub(super) fn all(&self) -> Result<()> {
        for (number, (kind, name, place, ..)) in breaks()?.iter().enumerate() {
            ensure!(self.0.contains(&number), "no kustomization has {kind}/{name}, whose {place} was to be broken");
        }
        Ok(())
    }
}

/// Sets the value at a pointer, whose last part may be new.
fn put(object: &mut Value, place: &str, value: Value) -> Option<()> {
    if let Some(there) = object.pointer_mut(place) {
        *there = value;
        return Some(());
    }
    let (parent, name) = place.rsplit_once('/')?;
    object.pointer_mut(parent)?.as_object_mut()?.insert(name.to_owned(), value);
    Some(())
}

/// Errors when the external programs accept a broken file.
pub(super) fn shown_to_tools(tools: &Tools, folder: &Path) -> Result<()> {
    println!("next, two complaints about files that are broken on purpose:");
    let file = |name: &str, text: &str| -> Result<_> {
        let path = folder.join(name);
        fs::write(&path, text)?;
        Ok(path)
    };
    let untagged = file("broken.Dockerfile", "FROM debian\nRUN cd /tmp && apt-get install curl\nCMD serve\n")?;
    ensure!(tools.lint_image(&untagged).is_err(), "hadolint let an untagged image and a bare apt-get pass");
    let config = file("yamllint.yaml", "extends: default\n")?;
    let twice = file("broken.yaml", "---\na: 1\na: 2\n")?;
    ensure!(tools.lint_yaml(&config, &twice).is_err(), "yamllint let a key that is there twice pass");
    for (what, text) in [
        (
            "a number that is a text",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: three, selector: {}, template: {}}\n",
        ),
        ("a field that does not exist", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {port: []}\n"),
        ("a kind that does not exist", "apiVersion: apps/v1\nkind: Deployement\nmetadata: {name: a}\n"),
    ] {
        ensure!(tools.validate(&[file("broken-manifest.yaml", text)?]).is_err(), "the schemas let {what} pass");
    }
    Ok(())
}
