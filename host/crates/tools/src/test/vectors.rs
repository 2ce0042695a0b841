//! Tests a policy with golden vectors.
//!
//! Each line of the file is a JSON object with a `question` and the expected `verdict`, both as in a decision record. `name` describes
//! the vector; `config` replaces the policy's configuration for this vector.

use std::{collections::BTreeMap, fs::File, io::BufReader, path::Path};

use anyhow::{Context, ensure};
use pointwork_policy::{
    Module, PolicyJson, Slot,
    record::{LineError, Lines, Recorded},
};
use serde::Deserialize;

use super::report::InputResults;
use crate::{offline_policy::OfflinePolicy, verdict_kind::shortened_json};

/// How many configurations a file may hold: each is compiled and kept.
const CONFIGS_MAX: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector<Q, V> {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    config: Option<PolicyJson>,
    question: Q,
    verdict: V,
}

type VectorOf<S> = Vector<<S as Slot>::Question, <S as Slot>::Verdict>;

/// Tests all vectors of a file, each in a fresh instance.
pub(super) fn check<S: Recorded>(policy: &OfflinePolicy, own: &Module<S>, file: &Path) -> anyhow::Result<InputResults> {
    let name = || file.display().to_string();
    let mut results = InputResults::default();
    let mut others = BTreeMap::new();
    let input = BufReader::new(File::open(file).with_context(name)?);
    for vector in Lines::new(input, read::<S>) {
        let (line, vector) = vector.with_context(name)?;
        let module = match &vector.config {
            None => own,
            Some(config) => {
                let key = config.to_json();
                if !others.contains_key(&key) {
                    let at = format!("{}: line {line}", name());
                    ensure!(others.len() < CONFIGS_MAX, "{at}: more than {CONFIGS_MAX} configurations");
                    others.insert(key.clone(), policy.module_with(config).with_context(|| format!("{at}: config"))?);
                }
                &others[&key]
            }
        };
        results.tried += 1;
        let found = match module.asker().ask(&vector.question).verdict {
            Ok(verdict) if verdict == vector.verdict => continue,
            Ok(verdict) => shortened_json(&verdict),
            Err(error) => format!("no verdict ({error})"),
        };
        results.add_failure(|| {
            let title = vector.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
            let (expected, question) = (shortened_json(&vector.verdict), shortened_json(&vector.question));
            format!("line {line}{title}: {found}, not {expected}, to {question}")
        });
    }
    Ok(results)
}

fn read<S: Recorded>(line: &str) -> Result<VectorOf<S>, LineError> {
    let vector: VectorOf<S> = serde_json::from_str(line)?;
    S::check_question(&vector.question).map_err(LineError::Question)?;
    S::check(&vector.question, &vector.verdict).map_err(LineError::Verdict)?;
    Ok(vector)
}
