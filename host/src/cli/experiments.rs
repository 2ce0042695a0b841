//! `pointwork exp`: experiments at a host that runs, through its admin API.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use pointwork_core::experiment::BUCKETS;
use serde_json::{Map, Value, json};

use crate::cli::admin_client::{AdminClient, encoded};

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Exp {
    /// Create an experiment, which runs at once.
    Create(Box<Creation>),
    /// Give the arms other weights.
    SetWeight {
        /// Its name.
        name: String,
        /// As [`Creation::weights`].
        weights: String,
    },
    /// What serves decides everything.
    Pause(String),
    /// It runs again.
    Resume(String),
    /// A treatment becomes what serves.
    Promote {
        /// Its name.
        name: String,
        /// The treatment, if there are several.
        arm: Option<String>,
    },
    /// It is over.
    Abort {
        /// Its name.
        name: String,
        /// Why.
        reason: Option<String>,
    },
    /// What it did.
    Report {
        /// Its name.
        name: String,
        /// As JSON.
        is_json: bool,
    },
    /// All there are.
    List {
        /// As JSON.
        is_json: bool,
    },
}

/// An experiment that is to be created.
#[derive(Debug, Clone)]
pub struct Creation {
    /// Its name.
    pub name: String,
    /// The slot.
    pub slot: String,
    /// `name=current`, `name=native`, `name=FILE.wasm` or `name=FILE.wasm,CONFIG.json`; the control first.
    pub arms: Vec<String>,
    /// Percent by arm, `95,5`; or parts of 10,000.
    pub weights: String,
    /// The treatments are only asked too.
    pub shadow_only: bool,
    /// In milliseconds.
    pub horizon_ms: Option<u32>,
    /// Of the buckets.
    pub salt: Option<String>,
    /// `limit=number` or `limit=off`.
    pub guardrails: Vec<String>,
}

/// Does it; gives what there is to print.
///
/// # Errors
/// When a file cannot be read, an argument makes no sense, the host is not there, or refuses.
pub fn run(exp: Exp, host: &AdminClient) -> anyhow::Result<String> {
    let of = |name: &str, what: &str| format!("/v1/experiments/{}/{what}", encoded(name));
    match exp {
        Exp::Create(creation) => create(host, &creation),
        Exp::SetWeight { name, weights } => {
            let weights = json!({ "weights": parts(&weights)? });
            Ok(line(&host.post(&of(&name, "weights"), &weights)?))
        }
        Exp::Pause(name) => Ok(line(&host.post(&of(&name, "pause"), &json!({}))?)),
        Exp::Resume(name) => Ok(line(&host.post(&of(&name, "resume"), &json!({}))?)),
        Exp::Promote { name, arm } => Ok(line(&host.post(&of(&name, "promote"), &json!({ "arm": arm }))?)),
        Exp::Abort { name, reason } => Ok(line(&host.post(&of(&name, "abort"), &json!({ "reason": reason }))?)),
        Exp::Report { name, is_json } => {
            let answer = host.get(&of(&name, "report"))?;
            if is_json {
                return Ok(format!("{}\n", answer["report"]));
            }
            Ok(answer["text"].as_str().unwrap_or_default().to_owned())
        }
        Exp::List { is_json } => {
            let answer = host.get("/v1/experiments")?;
            if is_json {
                return Ok(format!("{answer}\n"));
            }
            let experiments = answer["experiments"].as_array().map(Vec::as_slice).unwrap_or_default();
            let lines: String = experiments.iter().map(line).collect();
            Ok(if lines.is_empty() { "no experiments\n".to_owned() } else { lines })
        }
    }
}

fn create(host: &AdminClient, creation: &Creation) -> anyhow::Result<String> {
    let mut arms = Vec::new();
    for arm in &creation.arms {
        let (name, module) = arm.split_once('=').with_context(|| format!("--arm must be NAME=MODULE, not {arm}"))?;
        let module = match module {
            "current" | "native" => module.to_owned(),
            files => send(host, &creation.slot, files).with_context(|| format!("arm {name}"))?,
        };
        arms.push(json!({ "name": name, "module": module }));
    }
    let mut new = json!({
        "name": creation.name,
        "slot": creation.slot,
        "arms": arms,
        "weights": parts(&creation.weights)?,
        "shadow_only": creation.shadow_only,
        "guardrails": guardrails(&creation.guardrails)?,
    });
    if let Some(horizon_ms) = creation.horizon_ms {
        new["horizon_ms"] = horizon_ms.into();
    }
    if let Some(salt) = &creation.salt {
        new["salt"] = salt.as_str().into();
    }
    Ok(line(&host.post("/v1/experiments", &new)?))
}

/// Sends a module; gives its digest. `files`: its path, or its path and that of its configuration, between them a comma.
fn send(host: &AdminClient, slot: &str, files: &str) -> anyhow::Result<String> {
    let (wasm, config) = match files.rsplit_once(',').filter(|(_, config)| config.ends_with(".json")) {
        Some((wasm, config)) => (PathBuf::from(wasm), Some(PathBuf::from(config))),
        None => (PathBuf::from(files), None),
    };
    let read = |path: &Path| fs::read(path).with_context(|| path.display().to_string());
    let config = config.map_or_else(|| Ok(b"{}".to_vec()), |path| read(&path))?;
    let config: Map<String, Value> =
        serde_json::from_slice(&config).context("the configuration must be a JSON object")?;
    // A header holds ASCII alone.
    let config = ascii(&Value::Object(config).to_string());
    let path = format!("/v1/experiments/modules?slot={}", encoded(slot));
    let answer = host.post_raw(&path, &[("x-policy-config", &config)], &read(&wasm)?)?;
    let digest = answer["digest"].as_str().context("the host did not say the module's digest")?;
    Ok(digest.to_owned())
}

/// The same JSON without a character beyond ASCII.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for char in json.chars() {
        if char.is_ascii() {
            text.push(char);
        } else {
            let mut units = [0; 2];
            text.extend(char.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

/// Weights as parts of 10,000: given as such, or in percent.
fn parts(weights: &str) -> anyhow::Result<Vec<u32>> {
    let numbers = weights.split(',').map(|weight| weight.trim().parse::<f64>());
    let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().context("weights must be numbers, as in 95,5")?;
    let sum: f64 = numbers.iter().sum();
    let whole = f64::from(BUCKETS);
    let factor = if (sum - 100.0).abs() < 1e-6 { whole / 100.0 } else { 1.0 };
    ensure!(
        (sum * factor - whole).abs() < 1e-3,
        "the sum of the weights must be 100 (percent) or 10000, and not {sum}"
    );
    let mut parts = Vec::new();
    for number in numbers {
        let part = number * factor;
        ensure!(part >= 0.0 && (part - part.round()).abs() < 1e-6, "a weight is a whole number of ten thousandths");
        // Between 0 and 10,000.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded, and within bounds")]
        parts.push(part.round() as u32);
    }
    Ok(parts)
}

fn guardrails(limits: &[String]) -> anyhow::Result<Value> {
    let mut guardrails = Map::new();
    for limit in limits {
        let (name, value) =
            limit.split_once('=').with_context(|| format!("--guardrail must be NAME=NUMBER, not {limit}"))?;
        let value = match (name, value) {
            ("stranded_ms_mean_max" | "failures_share_max" | "offline_ms_mean_max", "off") => Value::Null,
            ("stranded_ms_mean_max" | "failures_share_max" | "offline_ms_mean_max", number) => {
                json!(number.parse::<f64>().with_context(|| format!("{name}: a number, or off"))?)
            }
            ("units_min" | "decisions_min", number) => {
                json!(number.parse::<u32>().with_context(|| format!("{name}: a whole number"))?)
            }
            _ => bail!(
                "no guardrail {name}: stranded_ms_mean_max, failures_share_max, offline_ms_mean_max, units_min, decisions_min"
            ),
        };
        guardrails.insert(name.to_owned(), value);
    }
    Ok(Value::Object(guardrails))
}

/// An experiment on one line.
fn line(experiment: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let arms = experiment["arms"].as_array().map(Vec::as_slice).unwrap_or_default();
    let arm = |arm: &Value| {
        let module = text(&arm["module"]);
        let module = module.get(..12).filter(|_| module.len() == 64).unwrap_or(&module);
        format!("{}={module} {}%", text(&arm["name"]), arm["weight"].as_f64().unwrap_or_default() / 100.0)
    };
    let arms = arms.iter().map(arm).collect::<Vec<_>>().join(", ");
    let (name, slot, status) = (text(&experiment["name"]), text(&experiment["slot"]), text(&experiment["status"]));
    let shadow = if experiment["shadow_only"] == true { ", shadow only" } else { "" };
    let mut line = format!("{name}: {status} in {slot}{shadow}: {arms}\n");
    for said in [&experiment["reason"], &experiment["here"]["promotion"], &experiment["note"]] {
        if let Some(said) = said.as_str() {
            line.push_str(&format!("  {said}\n"));
        }
    }
    for problem in experiment["here"]["problems"].as_array().map(Vec::as_slice).unwrap_or_default() {
        line.push_str(&format!("  arm {} cannot be loaded: {}\n", text(&problem["arm"]), text(&problem["error"])));
    }
    line
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_percent_or_parts() {
        assert_eq!(parts("95,5").unwrap(), [9_500, 500]);
        assert_eq!(parts("99.95, 0.05").unwrap(), [9_995, 5]);
        assert_eq!(parts("9500,500").unwrap(), [9_500, 500]);
        assert_eq!(parts("33.33,33.33,33.34").unwrap(), [3_333, 3_333, 3_334]);
        for wrong in ["", "95", "95,6", "a,b", "101,-1", "99.999,0.001", "nan,1"] {
            assert!(parts(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn guardrails_have_names() {
        let given =
            ["stranded_ms_mean_max=100.5".to_owned(), "offline_ms_mean_max=off".to_owned(), "units_min=5".to_owned()];
        let expected = json!({ "stranded_ms_mean_max": 100.5, "offline_ms_mean_max": null, "units_min": 5 });
        assert_eq!(guardrails(&given).unwrap(), expected);
        for wrong in ["stranded=1", "units_min=off", "failures_share_max=x", "units_min"] {
            assert!(guardrails(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_configuration_goes_into_a_header() {
        let json = r#"{"a":"ü𝄞","b":"\n"}"#;
        let text = ascii(json);
        assert!(text.is_ascii());
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), serde_json::from_str::<Value>(json).unwrap());
    }
}
