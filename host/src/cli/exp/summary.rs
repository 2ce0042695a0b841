//! Summarizes an experiment for people.

use serde_json::Value;

use crate::cli::json_fields::{array, text};

/// The status and the arms of an experiment on one line, and an indented line for each remark and problem.
pub(super) fn summary(experiment: &Value) -> String {
    let arm = |arm: &Value| {
        let module = text(&arm["module"]);
        let module = module.get(..12).filter(|_| module.len() == 64).unwrap_or(module);
        format!("{}={module} {}%", text(&arm["name"]), arm["weight"].as_f64().unwrap_or_default() / 100.0)
    };
    let arms = array(&experiment["arms"]).iter().map(arm).collect::<Vec<_>>().join(", ");
    let (name, slot, status) = (text(&experiment["name"]), text(&experiment["slot"]), text(&experiment["status"]));
    let shadow = if experiment["shadow_only"] == true { ", shadow only" } else { "" };
    let mut summary = format!("{name}: {status} in {slot}{shadow}: {arms}\n");
    let here = &experiment["here"];
    for remark in [&experiment["reason"], &here["promotion"], &experiment["note"]].into_iter().filter_map(Value::as_str)
    {
        summary.push_str(&format!("  {remark}\n"));
    }
    for problem in array(&here["problems"]) {
        summary.push_str(&format!("  arm {} cannot be loaded: {}\n", text(&problem["arm"]), text(&problem["error"])));
    }
    summary
}
