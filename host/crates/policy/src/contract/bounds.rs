//! The contract's version and the bounds of its spans.

/// Version of the contract that this host speaks; part of every generation's digest.
pub const CONTRACT_VERSION: &str = "0.1.0";

/// What a span is when it does not fit or is not known.
pub const UNKNOWN: u32 = u32::MAX;

/// The longest span a verdict may name, in milliseconds: one hour.
pub const SPAN_MAX_MS: u32 = 3_600_000;

/// A span in a verdict is at most an hour: longer ones are rather an overflow than a wish.
pub(super) fn check_span(what: &str, span_ms: u32) -> Result<(), String> {
    if span_ms > SPAN_MAX_MS {
        return Err(format!("{what} {span_ms} ms, more than {SPAN_MAX_MS} allowed"));
    }
    Ok(())
}
