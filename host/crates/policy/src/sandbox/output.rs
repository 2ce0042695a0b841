//! What a guest prints: captured during a call, logged after it, bounded in both places.

/// What one call may print, in bytes; the rest is dropped and counted.
const OUTPUT_MAX_BYTES: usize = 16 * 1024;

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

    /// The lines of a stream that are not empty, with nothing in them that could forge another log line.
    pub(crate) fn lines(&self, stream: Stream) -> impl Iterator<Item = String> {
        printable_lines(match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        })
    }

    /// How many bytes were not captured.
    pub(crate) fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }

    /// Drops all of it.
    pub(crate) fn clear(&mut self) {
        self.stdout.clear();
        self.stderr.clear();
        self.dropped_bytes = 0;
    }

    /// What a panic left on stderr, in one line.
    pub(crate) fn stderr_in_one_line(&self) -> String {
        self.lines(Stream::Stderr).collect::<Vec<_>>().join(" | ")
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
    fn a_line_cannot_forge_another() {
        let lines: Vec<_> = printable_lines(b"one\r\n\x1b[31mtwo\n\n\xff").collect();
        assert_eq!(lines, ["one", "\u{fffd}[31mtwo", "\u{fffd}"]);
    }
}
