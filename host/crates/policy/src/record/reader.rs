//! Reads a file of records line by line, in bounded memory.

use super::{DecisionRecord, LineError};
use std::io::{self, BufRead, Read};

/// The longest line that can be a record: a method of 4,096 bytes, each written as six, and 32 candidates are half of it.
pub const LINE_MAX_BYTES: usize = 64 * 1024;

/// A line that is no record.
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
    /// It is no text.
    #[error("not UTF-8")]
    NotText,
    /// It is no record.
    #[error(transparent)]
    Record(#[from] LineError),
}

/// The records of a file, each with the number of its line, from 1. Empty lines are passed over; nothing comes after an error.
pub struct Reader<R> {
    input: R,
    line: u64,
    buffer: Vec<u8>,
    has_ended: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads from here.
    pub fn new(input: R) -> Self {
        Self { input, line: 0, buffer: Vec::new(), has_ended: false }
    }

    fn read(&mut self) -> Result<Option<DecisionRecord>, ReadCause> {
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
                return Ok(Some(DecisionRecord::from_line(text)?));
            }
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<(u64, DecisionRecord), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let read = self.read();
        self.has_ended = !matches!(read, Ok(Some(_)));
        match read {
            Ok(record) => record.map(|record| Ok((self.line, record))),
            Err(cause) => Some(Err(ReadError { line: self.line, cause })),
        }
    }
}
