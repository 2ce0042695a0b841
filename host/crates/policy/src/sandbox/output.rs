//! Captures what a guest prints during a call, up to a bound.

/// What one call may print, in bytes; the rest is dropped and counted.
const OUTPUT_MAX_BYTES: usize = 16 * 1024;

/// What the guest has printed and nobody has logged yet.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    streams: [Vec<u8>; 2],
    dropped_bytes: u64,
}

/// A stream that a guest prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Captured {
    /// Captures the bytes that fit.
    pub(super) fn write(&mut self, stream: Stream, bytes: &[u8]) {
        let free = OUTPUT_MAX_BYTES - self.streams.iter().map(Vec::len).sum::<usize>();
        let kept = bytes.len().min(free);
        self.streams[stream as usize].extend_from_slice(&bytes[..kept]);
        self.drop_bytes((bytes.len() - kept) as u64);
    }

    /// Counts bytes that are not captured.
    pub(super) fn drop_bytes(&mut self, bytes: u64) {
        self.dropped_bytes = self.dropped_bytes.saturating_add(bytes);
    }

    /// Whether there is nothing to log: the case in nearly every call.
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.iter().all(Vec::is_empty) && self.dropped_bytes == 0
    }

    /// The lines of a stream that are not empty, without control characters, so that none can forge another log line.
    pub(crate) fn lines(&self, stream: Stream) -> impl Iterator<Item = String> {
        let lines = self.streams[stream as usize].split(|byte| *byte == b'\n');
        lines.map(printable).filter(|line| !line.is_empty())
    }

    pub(crate) fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }

    pub(crate) fn clear(&mut self) {
        self.streams.iter_mut().for_each(Vec::clear);
        self.dropped_bytes = 0;
    }
}

fn printable(line: &[u8]) -> String {
    let replaced = |c: char| if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    String::from_utf8_lossy(line).trim_end().chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_the_output_of_a_call() {
        let mut captured = Captured::default();
        captured.write(Stream::Stdout, &[b'a'; OUTPUT_MAX_BYTES - 1]);
        captured.write(Stream::Stderr, b"bcd");
        assert_eq!(captured.streams[1], b"b");
        assert_eq!(captured.dropped_bytes, 2);
    }

    #[test]
    fn a_line_cannot_forge_another() {
        let mut captured = Captured::default();
        captured.write(Stream::Stdout, b"one\r\n\x1b[31mtwo\n\n\xff");
        let lines: Vec<_> = captured.lines(Stream::Stdout).collect();
        assert_eq!(lines, ["one", "\u{fffd}[31mtwo", "\u{fffd}"]);
    }
}
