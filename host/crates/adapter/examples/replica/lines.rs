//! Reads lines of JSON from stdin and writes them to stdout.

use std::io::{BufRead, Write, stdin, stdout};

use serde_json::Value as Json;
use tokio::sync::mpsc;

/// The lines of stdin. A thread of its own reads them, because a runtime cannot end while it reads stdin.
pub(crate) fn read() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1024);
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Writes a line in one piece.
pub(crate) fn write(line: &Json) {
    // If nobody reads, the test is over.
    let _ = writeln!(stdout().lock(), "{line}");
}
