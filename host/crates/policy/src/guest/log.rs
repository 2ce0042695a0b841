//! Logs what a guest prints and how its decisions fail, with a bound on lines per second.

use super::failure::Failure;
use crate::contract::SlotName;
use crate::sandbox::{Captured, Stream};
use parking_lot::Mutex;

/// How many printed lines a generation may log in one second.
const LINES_PER_SECOND: u32 = 100;

/// How many failed decisions of a generation are logged in one second; all are counted. A policy that always fails
/// fails the same way each time.
const FAILURES_PER_SECOND: u32 = 1;

/// The log of one generation.
#[derive(Debug)]
pub(crate) struct GuestLog {
    slot: SlotName,
    digest: String,
    printed: Mutex<LinesInSecond>,
    failed: Mutex<LinesInSecond>,
}

impl GuestLog {
    /// `digest` is the generation's, in its short form.
    pub(super) fn new(slot: SlotName, digest: String) -> Self {
        Self { slot, digest, printed: Mutex::default(), failed: Mutex::default() }
    }

    /// Logs what a call printed and empties it: stdout at level info, stderr at warn. `now_ms` is the call's moment,
    /// and `decision` the id of the decision, if it was one.
    pub(super) fn log_output(&self, captured: &mut Captured, now_ms: u64, decision: Option<u64>) {
        let (slot, digest) = (self.slot.as_str(), self.digest.as_str());
        for line in captured.lines(Stream::Stdout).filter(|_| self.admits_output(now_ms)) {
            tracing::info!(target: "pointwork::policy", slot, digest, decision, "{line}");
        }
        for line in captured.lines(Stream::Stderr).filter(|_| self.admits_output(now_ms)) {
            tracing::warn!(target: "pointwork::policy", slot, digest, decision, "{line}");
        }
        let dropped_bytes = captured.dropped_bytes();
        if dropped_bytes > 0 && self.admits_output(now_ms) {
            tracing::warn!(target: "pointwork::policy", slot, digest, decision, dropped_bytes, "the policy printed too much in one call");
        }
        captured.clear();
    }

    /// Logs a failed decision.
    pub(crate) fn log_failure(&self, failure: &Failure, now_ms: u64, decision: u64) {
        let (is_admitted, _) = self.failed.lock().admit(now_ms, FAILURES_PER_SECOND);
        if is_admitted {
            let (slot, digest, kind) = (self.slot.as_str(), self.digest.as_str(), failure.kind.as_str());
            let message = &failure.message;
            tracing::warn!(target: "pointwork::policy", slot, digest, decision, kind, "decision failed: {message}");
        }
    }

    fn admits_output(&self, now_ms: u64) -> bool {
        let (is_admitted, dropped_before) = self.printed.lock().admit(now_ms, LINES_PER_SECOND);
        self.log_dropped_lines(dropped_before);
        is_admitted
    }

    fn log_dropped_lines(&self, dropped_lines: u64) {
        if dropped_lines > 0 {
            let (slot, digest) = (self.slot.as_str(), self.digest.as_str());
            tracing::warn!(target: "pointwork::policy", slot, digest, dropped_lines, "the policy printed too many lines");
        }
    }
}

impl Drop for GuestLog {
    fn drop(&mut self) {
        let dropped = self.printed.get_mut().dropped;
        self.log_dropped_lines(dropped);
    }
}

/// Counts the lines of the current second.
#[derive(Debug, Default)]
struct LinesInSecond {
    second: u64,
    admitted: u32,
    dropped: u64,
}

impl LinesInSecond {
    /// Whether a line is admitted at this moment, and how many were dropped in the second before it.
    fn admit(&mut self, now_ms: u64, lines_max: u32) -> (bool, u64) {
        let second = now_ms / 1000;
        let mut dropped_before = 0;
        if second != self.second {
            dropped_before = self.dropped;
            *self = Self { second, ..Self::default() };
        }
        let is_admitted = self.admitted < lines_max;
        if is_admitted {
            self.admitted += 1;
        } else {
            self.dropped += 1;
        }
        (is_admitted, dropped_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_lines_per_second_and_reports_the_dropped_ones() {
        let mut lines = LinesInSecond::default();
        for _ in 0..LINES_PER_SECOND {
            assert_eq!(lines.admit(8_000, LINES_PER_SECOND), (true, 0));
        }
        assert_eq!(lines.admit(8_500, LINES_PER_SECOND), (false, 0));
        assert_eq!(lines.admit(8_999, LINES_PER_SECOND), (false, 0));
        assert_eq!(lines.admit(9_000, LINES_PER_SECOND), (true, 2));
        assert_eq!(lines.admit(9_000, LINES_PER_SECOND), (true, 0));
    }
}
