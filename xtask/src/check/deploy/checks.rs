//! Checks that the objects of a kustomization fit each other, which no schema sees.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document::{Set, has_port, list, named, of_kind, picked, ports, selects, text, title};
use super::{manifests, pods};

/// The label of foreign pods that may reach the admin listener.
const REACHES_ADMIN: &str = "pointwork/reaches-admin";

/// The port of name servers.
const DNS: u64 = 53;
/// The job of the scrapes, as deploy/prometheus/alerts.yaml has it.
const JOB: &str = "pointwork";

/// Gives all complaints about a rendered kustomization.
pub(super) fn all(set: &Set) -> Vec<String> {
    let mut wrong = Vec::new();
    for object in set {
        let found = match text(&object["kind"]) {
            "Deployment" => pods::deployment(set, object),
            "Service" => service(set, object),
            "PodDisruptionBudget" => budget(set, object),
            "NetworkPolicy" => network(set, object),
            "HorizontalPodAutoscaler" => manifests::autoscaler(set, object),
            "ServiceMonitor" => monitor(set, object),
            "ConfigMap" => manifests::config_map(object),
            "Secret" => vec!["holds secrets: they are made in the cluster, not here".to_owned()],
            _ => Vec::new(),
        };
        wrong.extend(found.into_iter().map(|what| format!("{}: {what}", title(object))));
    }
    for (kind, name) in [
        ("Deployment", "pointwork"),
        ("Service", "pointwork"),
        ("Service", "pointwork-admin"),
        ("Service", "pointwork-replicas"),
        ("PodDisruptionBudget", "pointwork"),
        ("NetworkPolicy", "pointwork"),
        ("ServiceAccount", "pointwork"),
    ] {
        if named(set, kind, name).is_none() {
            wrong.push(format!("{kind}/{name} is missing"));
        }
    }
    wrong
}

fn service(set: &Set, service: &Value) -> Vec<String> {
    let found = picked(set, &service["spec"]["selector"]);
    if found.is_empty() {
        return vec!["its selector picks no pods".to_owned()];
    }
    let unknown = |port: &&Value| !found.iter().all(|deployment| has_port(deployment, &port["targetPort"]));
    list(&service["spec"]["ports"])
        .filter(unknown)
        .map(|port| format!("targetPort {} is no port of its pods", port["targetPort"]))
        .collect()
}

fn budget(set: &Set, budget: &Value) -> Vec<String> {
    let spec = &budget["spec"];
    let found = picked(set, &spec["selector"]["matchLabels"]);
    if found.is_empty() {
        return vec!["its selector picks no pods".to_owned()];
    }
    // With as many to keep as there are, no node could ever be drained.
    let keeps_all =
        |deployment: &&Value| !spec["minAvailable"].is_null() && deployment["spec"]["replicas"] == spec["minAvailable"];
    if spec["maxUnavailable"] == 0 || found.iter().any(keeps_all) {
        return vec!["lets no pod be evicted".to_owned()];
    }
    Vec::new()
}

fn network(set: &Set, policy: &Value) -> Vec<String> {
    let spec = &policy["spec"];
    let owners = picked(set, &spec["podSelector"]["matchLabels"]);
    let mut wrong = Vec::new();
    if owners.is_empty() {
        wrong.push("its podSelector picks no pods".to_owned());
    }
    let types: BTreeSet<_> = list(&spec["policyTypes"]).map(text).collect();
    if types != BTreeSet::from(["Egress", "Ingress"]) {
        wrong.push("must rule both Ingress and Egress".to_owned());
    }
    wrong.extend(ingress(set, spec, &owners));
    wrong.extend(egress(set, spec, &owners));
    wrong
}

/// The ports of a policy's rules in one direction.
fn ruled<'a>(spec: &'a Value, direction: &str) -> Vec<&'a Value> {
    list(&spec[direction]).flat_map(|rule| list(&rule["ports"])).map(|port| &port["port"]).collect()
}

/// Checks that each port of the pods is open, that no other port is, and that those who are let in exist.
fn ingress(set: &Set, spec: &Value, owners: &[&Value]) -> Vec<String> {
    let open = ruled(spec, "ingress");
    let mut wrong = Vec::new();
    for owner in owners {
        let strange = open.iter().filter(|port| !has_port(owner, port));
        wrong.extend(strange.map(|port| format!("lets in to {port}, which is no port of its pods")));
        let is_open = |port: &Value| open.iter().any(|open| **open == port["name"] || **open == port["containerPort"]);
        let closed = ports(owner).filter(|port| !is_open(port));
        wrong.extend(closed.map(|port| format!("lets nobody in to {}", port["name"])));
    }
    for from in list(&spec["ingress"]).flat_map(|rule| list(&rule["from"])) {
        let selector = &from["podSelector"]["matchLabels"];
        let is_guests = *selector == json!({ REACHES_ADMIN: "true" });
        if !selector.is_null() && !is_guests && picked(set, selector).is_empty() {
            wrong.push(format!("lets in {selector}, which no pod wears"));
        }
    }
    wrong
}

/// Checks that the pods that may be reached have one of the ports, and that Redis and name servers may be reached.
fn egress(set: &Set, spec: &Value, owners: &[&Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    for rule in list(&spec["egress"]) {
        let ports: Vec<_> = list(&rule["ports"]).map(|port| &port["port"]).collect();
        for selector in list(&rule["to"]).map(|to| &to["podSelector"]["matchLabels"]).filter(|labels| !labels.is_null())
        {
            let has_one = |other: &&Value| ports.iter().any(|port| has_port(other, port));
            if !picked(set, selector).iter().any(has_one) {
                wrong.push(format!("lets out to {selector}, where none of its ports is"));
            }
        }
    }
    let open = ruled(spec, "egress");
    for redis in owners.iter().filter_map(|owner| pods::redis_port(owner)) {
        if [redis, DNS].iter().any(|port| !open.iter().any(|open| *open == port)) {
            wrong.push(format!("must let out to Redis (port {redis}) and to DNS ({DNS})"));
        }
    }
    wrong
}

fn monitor(set: &Set, monitor: &Value) -> Vec<String> {
    let selector = &monitor["spec"]["selector"]["matchLabels"];
    let found: Vec<_> =
        of_kind(set, "Service").filter(|service| selects(selector, &service["metadata"]["labels"])).collect();
    // With two, each replica would be scraped twice.
    let [service] = found.as_slice() else {
        return vec![format!("picks {} Services instead of one", found.len())];
    };
    let mut wrong = Vec::new();
    if service["metadata"]["labels"][text(&monitor["spec"]["jobLabel"])] != JOB {
        wrong.push(format!("its jobLabel does not make the job `{JOB}`, which the alerts name"));
    }
    for endpoint in list(&monitor["spec"]["endpoints"]) {
        if !list(&service["spec"]["ports"]).any(|port| port["name"] == endpoint["port"]) {
            wrong.push(format!("port {} is not one of {}", endpoint["port"], title(service)));
        }
        if endpoint["authorization"]["credentials"]["key"] != "admin-token" {
            wrong.push("scrapes without the admin token, and gets 401".to_owned());
        }
    }
    wrong
}
