//! Parses the guardrails of an experiment.

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

/// Parses limits that are written `name=number` or `name=off`. Returns the object that the admin API expects.
///
/// # Errors
/// When there is no guardrail of a name, or its value is not what it expects.
pub(super) fn parse_guardrails(limits: &[String]) -> anyhow::Result<Value> {
    let mut guardrails = Map::new();
    for limit in limits {
        let (name, value) =
            limit.split_once('=').with_context(|| format!("--guardrail must be NAME=NUMBER, not {limit}"))?;
        let value = match name {
            "stranded_ms_mean_max" | "failures_share_max" | "offline_ms_mean_max" if value == "off" => Value::Null,
            "stranded_ms_mean_max" | "failures_share_max" | "offline_ms_mean_max" => {
                json!(value.parse::<f64>().with_context(|| format!("{name}: a number, or off"))?)
            }
            "units_min" | "decisions_min" => {
                json!(value.parse::<u32>().with_context(|| format!("{name}: a whole number"))?)
            }
            _ => bail!(
                "no guardrail {name}: stranded_ms_mean_max, failures_share_max, offline_ms_mean_max, units_min, decisions_min"
            ),
        };
        guardrails.insert(name.to_owned(), value);
    }
    Ok(Value::Object(guardrails))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn parses_limits_by_name() {
        let given =
            ["stranded_ms_mean_max=100.5".to_owned(), "offline_ms_mean_max=off".to_owned(), "units_min=5".to_owned()];
        let expected = json!({ "stranded_ms_mean_max": 100.5, "offline_ms_mean_max": null, "units_min": 5 });
        assert_eq!(parse_guardrails(&given).unwrap(), expected);
        for wrong in ["stranded=1", "units_min=off", "failures_share_max=x", "units_min"] {
            assert!(parse_guardrails(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
