//! The record of one decision.

use super::exchange::Exchange;
use crate::contract::{settle, target};
use crate::guest::{Digest, FailureKind};
use serde::{Deserialize, Serialize};
use std::mem::size_of;
use std::sync::Arc;
use std::time::Duration;

/// The version of the record's shape, its field `v`.
pub const RECORD_VERSION: u32 = 1;

/// One decision of a slot.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRecord {
    /// The replica that decided, by the id of its process.
    pub replica: Arc<str>,
    /// The decision's number in that process; unique in a cluster together with the replica.
    pub decision: u64,
    /// When it was made: milliseconds since the Unix epoch on that replica.
    pub at_ms: u64,
    /// Who made it.
    pub by: Decider,
    /// Why the policy did not decide, although one was asked.
    pub failure: Option<FailureKind>,
    /// The generation that was asked, if one was.
    pub digest: Option<Digest>,
    /// The arm of an experiment for which it was made.
    pub arm: Option<Arc<str>>,
    /// How long the guest took.
    pub cost: Duration,
    /// The question and its verdict.
    pub exchange: Exchange,
}

/// Who made a decision, in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decider {
    /// A policy.
    Wasm,
    /// The native rule.
    Native,
}

impl DecisionRecord {
    /// Its unique name in a cluster: `<replica>/<decision>`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.replica, self.decision)
    }

    /// Roughly how much memory it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let shared = self.arm.as_ref().map_or(0, |arm| arm.len());
        let lists = match &self.exchange {
            Exchange::Target(question, _) => {
                question.call.method.len() + question.candidates.len() * size_of::<target::Candidate>()
            }
            Exchange::Grace(question, _) => question.call.method.len() + question.absence.returns_ms.len() * 4,
            Exchange::Presence(question, _) => question.call.method.len() + question.doubt.returns_ms.len() * 4,
            Exchange::Settle(question, _) => question.history.len() * size_of::<settle::Event>(),
        };
        size_of::<Self>() + shared + lists
    }
}
