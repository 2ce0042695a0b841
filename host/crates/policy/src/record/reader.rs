//! Reads a file of records line by line, in bounded memory.

use super::decision_record::DecisionRecord;
use super::line_format::LineError;
use std::io::{self, BufRead, Read};

/// The longest line that is read, in bytes: twice the longest record, with a method of 4,096 bytes, each written as
/// six, and 32 candidates.
pub const LINE_MAX_BYTES: usize = 64 * 1024;

/// A line that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {cause}")]
pub struct ReadError {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub cause: ReadCause,
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum ReadCause {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is longer than any record.
    #[error("longer than the {LINE_MAX_BYTES} bytes that a record may have")]
    TooLong,
    /// It is not UTF-8.
    #[error("not UTF-8")]
    NotText,
    /// It is no record.
    #[error(transparent)]
    Line(#[from] LineError),
}

/// The lines of a file that are not empty, each read by a function and numbered from 1. It ends after an error.
pub struct Lines<R, F> {
    input: R,
    read: F,
    line: u64,
    buffer: Vec<u8>,
    has_ended: bool,
}

/// The records of a file.
pub fn records<R: BufRead>(input: R) -> impl Iterator<Item = Result<(u64, DecisionRecord), ReadError>> {
    Lines::new(input, DecisionRecord::from_line)
}

impl<R: BufRead, T, F: Fn(&str) -> Result<T, LineError>> Lines<R, F> {
    /// Reads from `input`. `read` receives each line without its line break.
    pub fn new(input: R, read: F) -> Self {
        Self { input, read, line: 0, buffer: Vec::new(), has_ended: false }
    }

    fn read(&mut self) -> Result<Option<T>, ReadCause> {
        loop {
            self.buffer.clear();
            self.line += 1;
            let limit = LINE_MAX_BYTES as u64 + 1;
            if self.input.by_ref().take(limit).read_until(b'\n', &mut self.buffer)? == 0 {
                return Ok(None);
            }
            if self.buffer.len() > LINE_MAX_BYTES {
                return Err(ReadCause::TooLong);
            }
            let text = std::str::from_utf8(&self.buffer).map_err(|_| ReadCause::NotText)?.trim_end();
            if !text.is_empty() {
                return Ok(Some((self.read)(text)?));
            }
        }
    }
}

impl<R: BufRead, T, F: Fn(&str) -> Result<T, LineError>> Iterator for Lines<R, F> {
    type Item = Result<(u64, T), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let read = self.read();
        self.has_ended = !matches!(read, Ok(Some(_)));
        match read {
            Ok(value) => value.map(|value| Ok((self.line, value))),
            Err(cause) => Some(Err(ReadError { line: self.line, cause })),
        }
    }
}
