//! Logs what a guest prints and how it fails, bounded in lines per second.

use crate::contract::slot_name::SlotName;
use crate::sandbox::{Captured, Stream};
use parking_lot::Mutex;

/// How many lines a generation may log in one second.
const LINES_PER_SECOND: u32 = 100;

/// Failed decisions that are logged in a second, for one generation; all of them are counted.
const FAILURES_PER_SECOND: u32 = 1;

/// Logs for one generation, with a bound on its lines per second.
#[derive(Debug)]
pub(crate) struct GuestLog {
    slot: SlotName,
    digest: String,
    window: Mutex<Window>,
    failures: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    second: u64,
    lines: u32,
    dropped: u64,
}

impl GuestLog {
    /// `digest` is the short one of the generation.
    pub(crate) fn new(slot: SlotName, digest: String) -> Self {
        Self { slot, digest, window: Mutex::default(), failures: Mutex::default() }
    }

    /// Logs what a call printed and empties it: stdout at level info, stderr at warn. `now_ms` is the call's moment,
    /// `decision` its id, unless it was a setup.
    pub(crate) fn emit(&self, captured: &mut Captured, now_ms: u64, decision: Option<u64>) {
        let (slot, digest) = (self.slot.as_str(), self.digest.as_str());
        for line in captured.lines(Stream::Stdout) {
            if self.admit(now_ms) {
                tracing::info!(target: "pointwork::policy", slot, digest, decision, "{line}");
            }
        }
        for line in captured.lines(Stream::Stderr) {
            if self.admit(now_ms) {
                tracing::warn!(target: "pointwork::policy", slot, digest, decision, "{line}");
            }
        }
        if captured.dropped_bytes() > 0 && self.admit(now_ms) {
            let dropped_bytes = captured.dropped_bytes();
            tracing::warn!(target: "pointwork::policy", slot, digest, decision, dropped_bytes, "the policy printed too much in one call");
        }
        captured.clear();
    }

    /// Logs a failed decision, one a second: a policy that always fails fails the same way each time.
    pub(crate) fn failure(&self, kind: &str, message: &str, now_ms: u64, decision: u64) {
        let mut window = self.failures.lock();
        let (admitted, _) = window.admit(now_ms / 1000, FAILURES_PER_SECOND);
        drop(window);
        if admitted {
            let (slot, digest) = (self.slot.as_str(), self.digest.as_str());
            tracing::warn!(target: "pointwork::policy", slot, digest, decision, kind, "decision failed: {message}");
        }
    }

    /// Whether one more line may be logged; says how many were not, once the second is over.
    fn admit(&self, now_ms: u64) -> bool {
        let mut window = self.window.lock();
        let (admitted, missed) = window.admit(now_ms / 1000, LINES_PER_SECOND);
        drop(window);
        self.say_missed(missed);
        admitted
    }

    fn say_missed(&self, dropped_lines: u64) {
        if dropped_lines > 0 {
            let (slot, digest) = (self.slot.as_str(), self.digest.as_str());
            tracing::warn!(target: "pointwork::policy", slot, digest, dropped_lines, "the policy printed too many lines");
        }
    }
}

impl Drop for GuestLog {
    fn drop(&mut self) {
        let missed = self.window.get_mut().dropped;
        self.say_missed(missed);
    }
}

impl Window {
    /// Whether a line is admitted in this second, and how many were dropped in the seconds before.
    fn admit(&mut self, second: u64, lines_max: u32) -> (bool, u64) {
        let mut missed = 0;
        if second != self.second {
            missed = self.dropped;
            *self = Self { second, ..Self::default() };
        }
        if self.lines < lines_max {
            self.lines += 1;
            return (true, missed);
        }
        self.dropped += 1;
        (false, missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_per_second_and_the_missed_ones_are_said() {
        let mut window = Window::default();
        for _ in 0..LINES_PER_SECOND {
            assert_eq!(window.admit(8, LINES_PER_SECOND), (true, 0));
        }
        assert_eq!(window.admit(8, LINES_PER_SECOND), (false, 0));
        assert_eq!(window.admit(8, LINES_PER_SECOND), (false, 0));
        assert_eq!(window.admit(9, LINES_PER_SECOND), (true, 2));
        assert_eq!(window.admit(9, LINES_PER_SECOND), (true, 0));
    }
}
