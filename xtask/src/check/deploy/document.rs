//! Reads kinds, names, labels and selectors of rendered manifests.

use serde_json::Value;

/// The objects of one kustomization.
pub(super) type Set = [Value];

/// The objects of a kind.
pub(super) fn of_kind<'a>(set: &'a Set, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    set.iter().filter(move |object| object["kind"] == kind)
}

/// The object with this kind and name.
pub(super) fn named<'a>(set: &'a Set, kind: &'a str, name: &str) -> Option<&'a Value> {
    of_kind(set, kind).find(|object| object["metadata"]["name"] == name)
}

/// `Kind/name`.
pub(super) fn title(object: &Value) -> String {
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// The text of a value, empty when it is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The entries of a list, none when it is not one.
pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether `selector` (`{name: value}`) picks what has `labels`. An empty selector, which would pick everything, picks nothing here.
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    selector
        .as_object()
        .is_some_and(|selector| !selector.is_empty() && selector.iter().all(|(name, value)| labels[name] == *value))
}

/// The Deployments whose pods a selector picks.
pub(super) fn picked<'a>(set: &'a Set, selector: &Value) -> Vec<&'a Value> {
    of_kind(set, "Deployment")
        .filter(|deployment| selects(selector, &deployment["spec"]["template"]["metadata"]["labels"]))
        .collect()
}

/// The containers of a Deployment.
pub(super) fn containers(deployment: &Value) -> impl Iterator<Item = &Value> {
    list(&deployment["spec"]["template"]["spec"]["containers"])
}

/// The ports of a Deployment's containers.
pub(super) fn ports(deployment: &Value) -> impl Iterator<Item = &Value> {
    containers(deployment).flat_map(|container| list(&container["ports"]))
}

/// Whether a Deployment's containers have a port, named or by number.
pub(super) fn has_port(deployment: &Value, port: &Value) -> bool {
    ports(deployment).any(|known| known["name"] == *port || known["containerPort"] == *port)
}
