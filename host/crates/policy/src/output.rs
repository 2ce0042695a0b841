//! What a guest prints: captured during a call, logged after it, bounded in both places.

use crate::lock::lock;
use crate::slot::SlotName;
use std::sync::{Mutex, PoisonError};

/// What one call may print, in bytes; the rest is dropped and counted.
const OUTPUT_MAX_BYTES: usize = 16 * 1024;
/// How many lines a generation may log in one second.
const LINES_PER_SECOND: u32 = 100;

/// Failed decisions that are logged in a second, for one generation; all of them are counted.
const FAILURES_PER_SECOND: u32 = 1;

/// What the guest printed since it was last taken out.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    dropped_bytes: u64,
}

/// Which of the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Captured {
    /// Takes what fits.
    pub(crate) fn write(&mut self, stream: Stream, bytes: &[u8]) {
        let room = OUTPUT_MAX_BYTES - self.stdout.len() - self.stderr.len();
        let kept = bytes.len().min(room);
        match stream {
            Stream::Stdout => self.stdout.extend_from_slice(&bytes[..kept]),
            Stream::Stderr => self.stderr.extend_from_slice(&bytes[..kept]),
        }
        self.drop_bytes((bytes.len() - kept) as u64);
    }

    /// Counts what is not even looked at.
    pub(crate) fn drop_bytes(&mut self, bytes: u64) {
        self.dropped_bytes = self.dropped_bytes.saturating_add(bytes);
    }

    /// Whether there is nothing to log: the case in nearly every call.
    pub(crate) fn is_empty(&self) -> bool {
        self.stdout.is_empty() && self.stderr.is_empty() && self.dropped_bytes == 0
    }

    /// What a panic left on stderr, in one line.
    pub(crate) fn stderr_in_one_line(&self) -> String {
        printable_lines(&self.stderr).collect::<Vec<_>>().join(" | ")
    }
}

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
        for line in printable_lines(&captured.stdout) {
            if self.admit(now_ms) {
                tracing::info!(target: "pointwork::policy", slot, digest, decision, "{line}");
            }
        }
        for line in printable_lines(&captured.stderr) {
            if self.admit(now_ms) {
                tracing::warn!(target: "pointwork::policy", slot, digest, decision, "{line}");
            }
        }
        if captured.dropped_bytes > 0 && self.admit(now_ms) {
            let dropped_bytes = captured.dropped_bytes;
            tracing::warn!(target: "pointwork::policy", slot, digest, decision, dropped_bytes, "the policy printed too much in one call");
        }
        captured.stdout.clear();
        captured.stderr.clear();
        captured.dropped_bytes = 0;
    }

    /// Logs a failed decision, one a second: a policy that always fails fails the same way each time.
    pub(crate) fn failure(&self, kind: &str, message: &str, now_ms: u64, decision: u64) {
        let mut window = lock(&self.failures);
        let (admitted, _) = window.admit(now_ms / 1000, FAILURES_PER_SECOND);
        drop(window);
        if admitted {
            let (slot, digest) = (self.slot.as_str(), self.digest.as_str());
            tracing::warn!(target: "pointwork::policy", slot, digest, decision, kind, "decision failed: {message}");
        }
    }

    /// Whether one more line may be logged; says how many were not, once the second is over.
    fn admit(&self, now_ms: u64) -> bool {
        let mut window = lock(&self.window);
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
        let missed = self.window.get_mut().unwrap_or_else(PoisonError::into_inner).dropped;
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

/// The lines that are not empty, with nothing in them that could forge another log line.
fn printable_lines(bytes: &[u8]) -> impl Iterator<Item = String> {
    bytes
        .split(|byte| *byte == b'\n')
        .map(|line| {
            let line = String::from_utf8_lossy(line);
            let line: String = line
                .trim_end()
                .chars()
                .map(|c| if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c })
                .collect();
            line
        })
        .filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_cannot_print_without_bound() {
        let mut captured = Captured::default();
        captured.write(Stream::Stdout, &[b'a'; OUTPUT_MAX_BYTES - 1]);
        captured.write(Stream::Stderr, b"bcd");
        assert_eq!(captured.stderr, b"b");
        assert_eq!(captured.dropped_bytes, 2);
    }

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

    #[test]
    fn a_line_cannot_forge_another() {
        let lines: Vec<_> = printable_lines(b"one\r\n\x1b[31mtwo\n\n\xff").collect();
        assert_eq!(lines, ["one", "\u{fffd}[31mtwo", "\u{fffd}"]);
    }
}
