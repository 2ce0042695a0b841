//! Defines the rule that answers the questions of a machine of device sessions. A policy can take the place of the
//! native rule.

use pointwork_core::decisions::rules;
use pointwork_core::decisions::{Event, Incumbent, Newcomer, SettleVerdict};

/// What `settle` is asked.
#[derive(Debug, Clone, Copy)]
pub struct SettleQuestion<'a> {
    /// The device.
    pub device: &'a str,
    /// Milliseconds since the Unix epoch on the deciding replica.
    pub now_ms: u64,
    /// 64 random bits, from the seed of the world.
    pub seed: u64,
    /// The settle window, in milliseconds.
    pub window_ms: u32,
    /// What is known of the socket that has the session.
    pub incumbent: &'a Incumbent,
    /// What is known of the one that wants it.
    pub newcomer: &'a Newcomer,
    /// Newest first.
    pub history: &'a [Event],
}

/// Who answers the machines' questions. The same question must be given the same answer.
pub trait SettleRules: Sync {
    /// Which of the two sockets has the session.
    fn settle(&self, question: &SettleQuestion<'_>) -> SettleVerdict;
}

/// The native rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NativeSettle;

impl SettleRules for NativeSettle {
    fn settle(&self, question: &SettleQuestion<'_>) -> SettleVerdict {
        rules::settle(question.window_ms, question.incumbent)
    }
}
