//! Reads the fields of commands.

use std::time::Duration;

use serde_json::Value as Json;

pub(crate) fn timeout(command: &Json) -> Option<Duration> {
    command["timeout"].as_u64().map(Duration::from_millis)
}

pub(crate) fn text(json: &Json) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn names(list: &Json) -> Vec<String> {
    items(list).map(text).collect()
}

pub(crate) fn items(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}
