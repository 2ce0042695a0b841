//! The bounds that `wit/policy.wit` sets to a question.

use crate::contract::Call;
use crate::contract::{grace, presence, settle, target};
use std::ops::RangeInclusive;

/// Bytes of a method's name.
const METHOD_BYTES_MAX: usize = 4_096;
/// Candidates in one `target` question.
const CANDIDATES: RangeInclusive<usize> = 1..=32;
/// Absences in one `grace` or `presence` question.
const RETURNS: RangeInclusive<usize> = 0..=8;
/// Events in one `settle` question.
const HISTORY: RangeInclusive<usize> = 0..=16;

pub(crate) fn target(question: &target::Question) -> Result<(), String> {
    call(&question.call)?;
    count("candidates", question.candidates.len(), &CANDIDATES)
}

pub(crate) fn grace(question: &grace::Question) -> Result<(), String> {
    call(&question.call)?;
    count("absence.returns-ms", question.absence.returns_ms.len(), &RETURNS)
}

pub(crate) fn presence(question: &presence::Question) -> Result<(), String> {
    call(&question.call)?;
    count("doubt.returns-ms", question.doubt.returns_ms.len(), &RETURNS)
}

pub(crate) fn settle(question: &settle::Question) -> Result<(), String> {
    count("history", question.history.len(), &HISTORY)
}

fn call(call: &Call) -> Result<(), String> {
    let bytes = call.method.len();
    if bytes > METHOD_BYTES_MAX {
        return Err(format!("call.method has {bytes} bytes, more than {METHOD_BYTES_MAX}"));
    }
    Ok(())
}

fn count(name: &str, found: usize, allowed: &RangeInclusive<usize>) -> Result<(), String> {
    if allowed.contains(&found) {
        return Ok(());
    }
    Err(format!("{name} has {found} items, not {} to {}", allowed.start(), allowed.end()))
}
