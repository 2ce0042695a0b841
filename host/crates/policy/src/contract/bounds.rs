//! The version of the contract, and its bounds for questions and verdicts.

use super::Call;
use std::ops::RangeInclusive;

/// Version of the contract that this host speaks; part of every generation's digest.
pub const CONTRACT_VERSION: &str = "0.1.0";

/// Stands for a time span that is unknown or does not fit.
pub const UNKNOWN: u32 = u32::MAX;

/// The longest time span that a verdict may name, in milliseconds: one hour.
pub const SPAN_MAX_MS: u32 = 3_600_000;

/// Bytes of a method's name.
const METHOD_BYTES_MAX: usize = 4_096;

/// Checks a time span in a verdict. A longer one is more likely an overflow than an intention.
pub(super) fn check_span(name: &str, span_ms: u32) -> Result<(), String> {
    if span_ms > SPAN_MAX_MS {
        return Err(format!("{name} {span_ms} ms, more than {SPAN_MAX_MS} allowed"));
    }
    Ok(())
}

/// Checks a call in a question.
pub(super) fn check_call(call: &Call) -> Result<(), String> {
    let bytes = call.method.len();
    if bytes > METHOD_BYTES_MAX {
        return Err(format!("call.method has {bytes} bytes, more than {METHOD_BYTES_MAX}"));
    }
    Ok(())
}

/// Checks the length of a list in a question.
pub(super) fn check_count(name: &str, found: usize, allowed: RangeInclusive<usize>) -> Result<(), String> {
    if allowed.contains(&found) {
        return Ok(());
    }
    Err(format!("{name} has {found} items, not {} to {}", allowed.start(), allowed.end()))
}
