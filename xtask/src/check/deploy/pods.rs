//! Checks Deployments: labels, probes, ports, rights, and what their pods refer to.

use serde_json::{Value, json};

use super::document::{Set, containers, list, named, of_kind, selects, text};

/// Each probe of the host, and its path. Liveness must not ask readiness: without Redis every replica would restart.
const PROBES: [(&str, &str); 3] =
    [("startupProbe", "/health/live"), ("livenessProbe", "/health/live"), ("readinessProbe", "/health/ready")];
/// Variables whose names say so are secrets, and come from a Secret.
const SECRET: [&str; 3] = ["SECRET", "TOKEN", "PASSWORD"];

pub(super) fn deployment(set: &Set, deployment: &Value) -> Vec<String> {
    let spec = &deployment["spec"];
    let pod = &spec["template"]["spec"];
    let mut wrong = Vec::new();
    if !selects(&spec["selector"]["matchLabels"], &spec["template"]["metadata"]["labels"]) {
        wrong.push("its selector does not pick its own pods".to_owned());
    }
    wrong.extend(rights(pod));
    wrong.extend(containers(deployment).flat_map(container_rights));
    wrong.extend(mounts(set, deployment));
    if deployment["metadata"]["name"] == "pointwork" {
        wrong.extend(host(set, deployment));
    }
    wrong
}

/// Checks what Kubernetes' profile `restricted` asks of pods, and that no unused token is mounted.
fn rights(pod: &Value) -> Vec<String> {
    let demands = [
        ("runAsNonRoot", &pod["securityContext"]["runAsNonRoot"], json!(true)),
        ("seccompProfile", &pod["securityContext"]["seccompProfile"]["type"], json!("RuntimeDefault")),
        ("automountServiceAccountToken", &pod["automountServiceAccountToken"], json!(false)),
        ("enableServiceLinks", &pod["enableServiceLinks"], json!(false)),
    ];
    demands.iter().filter(|(_, is, must)| *is != must).map(|(name, _, must)| format!("{name} must be {must}")).collect()
}

fn container_rights(container: &Value) -> Vec<String> {
    let security = &container["securityContext"];
    let demands = [
        ("allowPrivilegeEscalation", &security["allowPrivilegeEscalation"], json!(false)),
        ("readOnlyRootFilesystem", &security["readOnlyRootFilesystem"], json!(true)),
        ("capabilities.drop", &security["capabilities"]["drop"], json!(["ALL"])),
    ];
    let mut wrong: Vec<_> = demands
        .iter()
        .filter(|(_, is, must)| *is != must)
        .map(|(name, _, must)| format!("{name} must be {must}"))
        .collect();
    if container["resources"]["limits"]["memory"].is_null() || container["resources"]["requests"]["memory"].is_null() {
        wrong.push("must ask for memory and limit it".to_owned());
    }
    let image = text(&container["image"]);
    let is_fixed =
        image.rsplit('/').next().is_some_and(|name| name.contains([':', '@'])) && !image.ends_with(":latest");
    if !is_fixed {
        wrong.push(format!("image {image} names no version"));
    }
    let env = list(&container["env"]);
    let is_open = |variable: &&Value| {
        !variable["value"].is_null() && SECRET.iter().any(|word| text(&variable["name"]).contains(word))
    };
    wrong
        .extend(env.filter(is_open).map(|variable| format!("{} is written down: a Secret holds it", variable["name"])));
    wrong
}

/// Checks that mounts have volumes, and that ConfigMaps exist.
fn mounts(set: &Set, deployment: &Value) -> Vec<String> {
    let volumes: Vec<_> = list(&deployment["spec"]["template"]["spec"]["volumes"]).collect();
    let mut wrong = Vec::new();
    for mount in containers(deployment).flat_map(|container| list(&container["volumeMounts"])) {
        if !volumes.iter().any(|volume| volume["name"] == mount["name"]) {
            wrong.push(format!("mounts {}, which is no volume", mount["name"]));
        }
    }
    for name in volumes.iter().map(|volume| &volume["configMap"]["name"]).filter(|name| !name.is_null()) {
        if named(set, "ConfigMap", text(name)).is_none() {
            wrong.push(format!("there is no ConfigMap {name}"));
        }
    }
    wrong
}

fn host(set: &Set, deployment: &Value) -> Vec<String> {
    let spec = &deployment["spec"];
    let pod = &spec["template"]["spec"];
    let mut wrong = Vec::new();
    for container in containers(deployment) {
        for (probe, path) in PROBES {
            let get = &container[probe]["httpGet"];
            if get["path"] != path {
                wrong.push(format!("{probe} must ask {path}"));
            }
            if get["port"] != "admin" || !list(&container["ports"]).any(|port| port["name"] == get["port"]) {
                wrong.push(format!("{probe} must ask the port `admin`"));
            }
        }
        for reference in list(&container["env"]).map(|variable| &variable["valueFrom"]["secretKeyRef"]) {
            if !reference.is_null() && reference["name"] != "pointwork" {
                wrong.push(format!("asks for the Secret {}; docs/operate.md makes `pointwork`", reference["name"]));
            }
        }
    }
    let rolling = &spec["strategy"]["rollingUpdate"];
    if rolling["maxUnavailable"] != 0 || rolling["maxSurge"].as_u64().is_none_or(|surge| surge == 0) {
        wrong.push("a rollout must add a replica before it takes one away".to_owned());
    }
    let is_scaled = of_kind(set, "HorizontalPodAutoscaler").next().is_some();
    if !is_scaled && spec["replicas"].as_u64().is_none_or(|replicas| replicas < 3) {
        wrong.push("has fewer than 3 replicas".to_owned());
    }
    let template = &spec["template"]["metadata"]["labels"];
    let spread: Vec<_> = list(&pod["topologySpreadConstraints"]).collect();
    if spread.is_empty() || !spread.iter().all(|rule| selects(&rule["labelSelector"]["matchLabels"], template)) {
        wrong.push("topologySpreadConstraints must pick its pods".to_owned());
    }
    if named(set, "ServiceAccount", text(&pod["serviceAccountName"])).is_none() {
        wrong.push(format!("there is no ServiceAccount {}", pod["serviceAccountName"]));
    }
    wrong
}

/// The port of Redis in a Deployment's environment, or the usual port when a Secret holds the URL. `None` without a Redis.
pub(super) fn redis_port(deployment: &Value) -> Option<u64> {
    let mut variables = containers(deployment).flat_map(|container| list(&container["env"]));
    let url = variables.find(|variable| variable["name"] == "POINTWORK_REDIS_URL")?;
    let port = text(&url["value"]).rsplit(':').next().and_then(|port| port.parse().ok());
    Some(port.unwrap_or(6379))
}
