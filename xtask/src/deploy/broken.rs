//! A check that has nothing to say about anything is none: each is shown something broken, in one place, and must say so.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::checks;
use super::document::Set;
use super::tools::Tools;

/// An object, where in it (a JSON pointer), what stands there then (`null`: nothing), and what the complaint must name.
type Break = (&'static str, &'static str, &'static str, Value, &'static str);

/// What no schema sees.
fn breaks() -> Vec<Break> {
    vec![
        (
            "Deployment",
            "pointwork",
            "/spec/template/metadata/labels",
            json!({"app": "other"}),
            "does not pick its own pods",
        ),
        (
            "Deployment",
            "pointwork",
            "/spec/template/spec/containers/0/livenessProbe/httpGet/path",
            json!("/health/ready"),
            "livenessProbe must ask /health/live",
        ),
        (
            "Deployment",
            "pointwork",
            "/spec/template/spec/containers/0/readinessProbe/httpGet/port",
            json!("socketio"),
            "readinessProbe must ask the port",
        ),
        ("Deployment", "pointwork", "/spec/template/spec/containers/0/image", json!("pointwork"), "names no version"),
        (
            "Deployment",
            "pointwork",
            "/spec/template/spec/containers/0/securityContext/readOnlyRootFilesystem",
            json!(false),
            "readOnlyRootFilesystem",
        ),
        ("Deployment", "pointwork", "/spec/template/spec/securityContext/runAsNonRoot", json!(false), "runAsNonRoot"),
        ("Deployment", "pointwork", "/spec/template/spec/containers/0/resources", json!({}), "must ask for memory"),
        (
            "Deployment",
            "pointwork",
            "/spec/template/spec/containers/0/env",
            json!([{"name": "POINTWORK_ADMIN_TOKEN", "value": "x"}]),
            "is written down",
        ),
        (
            "Deployment",
            "pointwork",
            "/spec/template/spec/volumes/0/configMap/name",
            json!("pointwork-settings"),
            "there is no ConfigMap",
        ),
        (
            "Deployment",
            "pointwork",
            "/spec/template/spec/containers/0/volumeMounts/0/name",
            json!("setings"),
            "is no volume",
        ),
        ("Deployment", "pointwork", "/spec/strategy/rollingUpdate/maxUnavailable", json!(1), "must add a replica"),
        (
            "Deployment",
            "pointwork",
            "/spec/template/spec/serviceAccountName",
            json!("default"),
            "there is no ServiceAccount",
        ),
        (
            "Deployment",
            "pointwork",
            "/spec/template/spec/topologySpreadConstraints/0/labelSelector",
            json!({}),
            "topologySpreadConstraints",
        ),
        ("Service", "pointwork", "/spec/selector", json!({"app": "other"}), "picks no pods"),
        ("Service", "pointwork-admin", "/spec/ports/0/targetPort", json!("metrics"), "is no port of its pods"),
        ("Service", "pointwork-replicas", "/metadata/name", json!("replicas"), "is missing"),
        ("PodDisruptionBudget", "pointwork", "/spec/selector/matchLabels", json!({"app": "other"}), "picks no pods"),
        ("PodDisruptionBudget", "pointwork", "/spec/maxUnavailable", json!(0), "lets no pod be evicted"),
        ("NetworkPolicy", "pointwork", "/spec/podSelector/matchLabels", json!({"app": "other"}), "picks no pods"),
        ("NetworkPolicy", "pointwork", "/spec/ingress/0/ports/0/port", json!(3001), "which is no port of its pods"),
        ("NetworkPolicy", "pointwork", "/spec/ingress/1/ports", json!([]), "lets nobody in to \"admin\""),
        (
            "NetworkPolicy",
            "pointwork",
            "/spec/ingress/1/from/0/podSelector/matchLabels/app",
            json!("other"),
            "which no pod wears",
        ),
        ("NetworkPolicy", "pointwork", "/spec/egress/1/ports/0/port", json!(6380), "must let out to Redis"),
        ("NetworkPolicy", "pointwork", "/spec/egress", json!([]), "must let out to Redis"),
        ("NetworkPolicy", "pointwork", "/spec/policyTypes", json!(["Ingress"]), "both Ingress and Egress"),
        (
            "NetworkPolicy",
            "redis",
            "/spec/ingress/0/from/0/podSelector/matchLabels",
            json!({"app": "other"}),
            "which no pod wears",
        ),
        (
            "HorizontalPodAutoscaler",
            "pointwork",
            "/spec/scaleTargetRef/name",
            json!("other"),
            "scales what is not there",
        ),
        ("HorizontalPodAutoscaler", "pointwork", "/spec/metrics/0/resource/name", json!("cpu"), "scales by CPU"),
        ("ServiceMonitor", "pointwork", "/spec/jobLabel", Value::Null, "does not make the job"),
        (
            "ServiceMonitor",
            "pointwork",
            "/spec/selector/matchLabels",
            json!({"app.kubernetes.io/name": "pointwork"}),
            "Services instead of one",
        ),
        ("ServiceMonitor", "pointwork", "/spec/endpoints/0/port", json!("metrics"), "is not one of"),
        ("ServiceMonitor", "pointwork", "/spec/endpoints/0/authorization", Value::Null, "gets 401"),
        ("ConfigMap", "pointwork-policies", "/binaryData/target.wasm", json!("A".repeat(1_500_000)), "more than the"),
    ]
}

/// Which breaks were shown; each must have had an object in some kustomization.
#[derive(Default)]
pub(super) struct Shown(BTreeSet<usize>);

impl Shown {
    /// Breaks a rendered kustomization in each way that concerns what it has. Errors when a check does not notice.
    pub(super) fn break_each(&mut self, set: &Set) -> Result<()> {
        for (number, (kind, name, place, value, complaint)) in breaks().into_iter().enumerate() {
            let mut broken = set.to_vec();
            let is_it = |object: &&mut Value| object["kind"] == kind && object["metadata"]["name"] == name;
            let Some(object) = broken.iter_mut().find(is_it) else {
                continue;
            };
            put(object, place, value).with_context(|| format!("{kind}/{name} has no {place} to break"))?;
            let found = checks::all(&broken);
            ensure!(
                found.iter().any(|what| what.contains(complaint)),
                "{kind}/{name} with another {place} should be told that it {complaint}; it is told {found:?}"
            );
            self.0.insert(number);
        }
        Ok(())
    }

    /// Errors when there was nothing to break for one of them.
    pub(super) fn all(&self) -> Result<()> {
        for (number, (kind, name, place, ..)) in breaks().iter().enumerate() {
            ensure!(self.0.contains(&number), "no kustomization has {kind}/{name}, whose {place} was to be broken");
        }
        Ok(())
    }
}

/// Puts a value where the pointer leads; its last part may be new.
fn put(object: &mut Value, place: &str, value: Value) -> Option<()> {
    if let Some(there) = object.pointer_mut(place) {
        *there = value;
        return Some(());
    }
    let (parent, name) = place.rsplit_once('/')?;
    object.pointer_mut(parent)?.as_object_mut()?.insert(name.to_owned(), value);
    Some(())
}

/// What the programs that know the formats must not let pass.
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
