//! Golden vectors: a file of lines, each a JSON object with a `question` and the `verdict` it must get, both as in a decision record.
//! `name` says what it is about; `config` is a configuration for this one, in place of the policy's.

use std::{collections::BTreeMap, fs::File, io::BufReader, path::Path};

use anyhow::{Context, ensure};
use pointwork_policy::{
    Module,
    record::{LineError, Lines},
};
use serde::Deserialize;

use super::Tally;
use crate::{
    policy_file::OfflinePolicy,
    replay::{Told, one_line},
};
use pointwork_policy::PolicyJson;

/// Each is compiled and kept.
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

type VectorOf<S> = Vector<<S as pointwork_policy::Slot>::Question, <S as pointwork_policy::Slot>::Verdict>;

/// Asks all of a file, each in an instance of its own.
pub(super) fn check<S: Told>(policy: &OfflinePolicy, own: &Module<S>, file: &Path) -> anyhow::Result<Tally> {
    let named = || file.display().to_string();
    let mut tally = Tally::default();
    let mut others = BTreeMap::new();
    let input = BufReader::new(File::open(file).with_context(named)?);
    for vector in Lines::new(input, read::<S>) {
        let (line, vector) = vector.with_context(named)?;
        let module = match &vector.config {
            None => own,
            Some(config) => {
                let key = config.to_json();
                if !others.contains_key(&key) {
                    ensure!(
                        others.len() < CONFIGS_MAX,
                        "{}: line {line}: more than {CONFIGS_MAX} configurations",
                        named()
                    );
                    let at = || format!("{}: line {line}: config", named());
                    others.insert(key.clone(), policy.module_with(config).with_context(at)?);
                }
                &others[&key]
            }
        };
        tally.tried += 1;
        let found = match module.asker().ask(&vector.question).verdict {
            Ok(verdict) if verdict == vector.verdict => continue,
            Ok(verdict) => one_line(&verdict),
            Err(error) => format!("no verdict ({error})"),
        };
        tally.fail(|| {
            let name = vector.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
            let (expected, question) = (one_line(&vector.verdict), one_line(&vector.question));
            format!("line {line}{name}: {found}, not {expected}, to {question}")
        });
    }
    Ok(tally)
}

fn read<S: Told>(line: &str) -> Result<VectorOf<S>, LineError> {
    let vector: VectorOf<S> = serde_json::from_str(line)?;
    S::check_question(&vector.question).map_err(LineError::Question)?;
    S::check(&vector.question, &vector.verdict).map_err(LineError::Verdict)?;
    Ok(vector)
}
