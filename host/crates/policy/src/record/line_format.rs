//! Writes a record as a line of text, and reads it back:
//!
//! ```json
//! {"v":1,"id":"<replica>/<decision>","at_ms":1767225600000,"slot":"grace","by":"wasm","failure":null,"digest":"<64 digits>",
//!  "arm":null,"cost_us":1.25,"question":{…},"verdict":…}
//! ```
//!
//! Every record has every field, and no other. Anything else is refused.

use super::decision_record::{Decider, DecisionRecord, RECORD_VERSION};
use super::exchange::{Exchange, Recorded};
use crate::contract::{Grace, Presence, Settle, SlotName, Target};
use crate::guest::{Digest, FailureKind};
use crate::text::bounded;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Duration;

/// Bytes of a replica's id and of an arm's name.
const NAME_BYTES_MAX: usize = 256;
/// The longest cost that is plausible, in microseconds: an hour.
const COST_US_MAX: f64 = 3.6e9;

/// Why a line is no decision record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is no JSON, a field is missing, unknown or repeated, or a value has the wrong type.
    #[error("{message} (column {column})")]
    Malformed {
        /// What is wrong.
        message: String,
        /// Where, from 1.
        column: usize,
    },
    /// Written by another version of the host.
    #[error("a record of version {0}, only {RECORD_VERSION} is known")]
    Version(u32),
    /// A value is impossible.
    #[error("{0}")]
    Impossible(String),
    /// The question is out of the contract's bounds.
    #[error("question: {0}")]
    Question(String),
    /// The verdict is out of the contract's bounds.
    #[error("verdict: {0}")]
    Verdict(String),
}

impl From<serde_json::Error> for LineError {
    fn from(error: serde_json::Error) -> Self {
        let column = error.column();
        let message = error.to_string();
        // The error is always in line 1; the reader adds the line of the file.
        let position = format!(" at line {} column {column}", error.line());
        let message = message.strip_suffix(&position).unwrap_or(&message);
        Self::Malformed { message: bounded(message, 256), column }
    }
}

/// The fields that decide how the rest is read.
#[derive(Deserialize)]
struct Head {
    v: u32,
    slot: SlotName,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a, Q, V> {
    v: u32,
    #[serde(borrow)]
    id: Cow<'a, str>,
    at_ms: u64,
    slot: SlotName,
    by: Decider,
    #[serde(deserialize_with = "required")]
    failure: Option<FailureKind>,
    #[serde(deserialize_with = "required")]
    digest: Option<Digest>,
    #[serde(deserialize_with = "required")]
    arm: Option<Cow<'a, str>>,
    cost_us: f64,
    question: Q,
    verdict: V,
}

/// Requires a field. By default, serde reads a missing `Option` as `None`.
fn required<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

impl DecisionRecord {
    /// The record as JSON, without a line break.
    ///
    /// # Panics
    /// Never: every field has a JSON form.
    pub fn to_line(&self) -> String {
        match &self.exchange {
            Exchange::Target(question, verdict) => self.line_of(question, verdict),
            Exchange::Grace(question, verdict) => self.line_of(question, verdict),
            Exchange::Presence(question, verdict) => self.line_of(question, verdict),
            Exchange::Settle(question, verdict) => self.line_of(question, verdict),
        }
    }

    /// Reads a line, with or without its line break.
    ///
    /// # Errors
    /// See [`LineError`]: whatever is not exactly a record.
    pub fn from_line(line: &str) -> Result<Self, LineError> {
        let head: Head = serde_json::from_str(line)?;
        if head.v != RECORD_VERSION {
            return Err(LineError::Version(head.v));
        }
        match head.slot {
            SlotName::Target => read::<Target>(line),
            SlotName::Grace => read::<Grace>(line),
            SlotName::Presence => read::<Presence>(line),
            SlotName::Settle => read::<Settle>(line),
        }
    }

    fn line_of<Q: Serialize, V: Serialize>(&self, question: Q, verdict: V) -> String {
        let line = Line {
            v: RECORD_VERSION,
            id: self.id().into(),
            at_ms: self.at_ms,
            slot: self.exchange.slot(),
            by: self.by,
            failure: self.failure,
            digest: self.digest,
            arm: self.arm.as_deref().map(Cow::from),
            cost_us: self.cost.as_nanos() as f64 / 1_000.0,
            question,
            verdict,
        };
        serde_json::to_string(&line).unwrap_or_default()
    }
}

fn read<S: Recorded>(line: &str) -> Result<DecisionRecord, LineError> {
    let line: Line<'_, S::Question, S::Verdict> = serde_json::from_str(line)?;
    let impossible = |message: &str| Err(LineError::Impossible(message.to_owned()));
    let Some((replica, decision)) = line.id.rsplit_once('/') else {
        return impossible("id: must be <replica>/<decision>");
    };
    let Ok(decision) = decision.parse() else {
        return impossible("id: the decision must be a number");
    };
    if replica.is_empty() || replica.len() > NAME_BYTES_MAX {
        return impossible("id: the replica must have 1 to 256 bytes");
    }
    if line.arm.as_ref().is_some_and(|arm| arm.is_empty() || arm.len() > NAME_BYTES_MAX) {
        return impossible("arm: must have 1 to 256 bytes");
    }
    if line.by == Decider::Wasm && (line.failure.is_some() || line.digest.is_none()) {
        return impossible("by wasm: there must be a digest and no failure");
    }
    if !(0.0..=COST_US_MAX).contains(&line.cost_us) {
        return impossible("cost_us: must be from 0 to an hour");
    }
    S::check_question(&line.question).map_err(LineError::Question)?;
    S::check(&line.question, &line.verdict).map_err(LineError::Verdict)?;
    Ok(DecisionRecord {
        replica: replica.into(),
        decision,
        at_ms: line.at_ms,
        by: line.by,
        failure: line.failure,
        digest: line.digest,
        arm: line.arm.map(|arm| arm.as_ref().into()),
        cost: Duration::from_nanos((line.cost_us * 1_000.0).round() as u64),
        exchange: S::exchange(line.question, line.verdict),
    })
}
