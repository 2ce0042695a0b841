//! Checks autoscalers and ConfigMaps.

use serde_json::Value;

use super::document::{Set, list, named, text};

/// The size of all values together. Kubernetes refuses more.
const CONFIG_MAP_BYTES_MAX: usize = 1 << 20;

pub(super) fn autoscaler(set: &Set, autoscaler: &Value) -> Vec<String> {
    let spec = &autoscaler["spec"];
    let target = &spec["scaleTargetRef"];
    let Some(deployment) = named(set, text(&target["kind"]), text(&target["name"])) else {
        return vec!["scales what is not there".to_owned()];
    };
    let mut wrong = Vec::new();
    if !deployment["spec"]["replicas"].is_null() {
        wrong.push("its Deployment says a number of replicas too: each apply would set it back".to_owned());
    }
    if spec["minReplicas"].as_u64().is_none_or(|replicas| replicas < 2) {
        wrong.push("may leave a single replica".to_owned());
    }
    if list(&spec["metrics"]).any(|metric| metric["resource"]["name"] == "cpu") {
        wrong.push("scales by CPU, which follows reconnects and not sockets".to_owned());
    }
    wrong
}

pub(super) fn config_map(config_map: &Value) -> Vec<String> {
    let values =
        |field: &str| config_map[field].as_object().into_iter().flatten().map(|(_, value)| text(value).to_owned());
    // In base64 four characters are three bytes; line ends are none.
    let binary = |value: String| value.split_whitespace().map(str::len).sum::<usize>() / 4 * 3;
    let bytes =
        values("data").map(|value| value.len()).sum::<usize>() + values("binaryData").map(binary).sum::<usize>();
    if bytes > CONFIG_MAP_BYTES_MAX {
        return vec![format!("holds {bytes} bytes, more than the {CONFIG_MAP_BYTES_MAX} that Kubernetes takes")];
    }
    Vec::new()
}
