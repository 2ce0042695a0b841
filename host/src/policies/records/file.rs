//! Writes records to rotated files: `records.jsonl` is written, `records.jsonl.1` is the file before it, and so on.
//!
//! A file holds whole lines only. A line that was cut off by the end of a process is removed when the next process starts. A line
//! that was cut off by a full disk is removed at once.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    thread,
};

use pointwork_policy::record::LINE_MAX_BYTES;
use tokio::sync::mpsc;

use super::sink::{BATCH_MAX, Sink, SinkMessage, count_dropped, count_written, split};

const NAME: &str = "file";

/// Opens the file and starts its writer on a thread of its own, because a disk may block.
pub(super) fn start(path: &Path, bytes_max: u64, files: usize) -> io::Result<Sink> {
    let files = RecordFiles::open(path, bytes_max, files)?;
    let (sink, messages) = Sink::new(NAME);
    thread::Builder::new().name("records-file".to_owned()).spawn(move || write_all(files, messages))?;
    Ok(sink)
}

fn write_all(mut files: RecordFiles, mut messages: mpsc::Receiver<SinkMessage>) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut was_logged = false;
    while messages.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
        let (records, is_end) = split(&mut batch);
        let lines: Vec<String> = records.iter().map(|record| record.to_line() + "\n").collect();
        let (written, error) = files.append(&lines);
        count_written(NAME, written);
        count_dropped(NAME, lines.len() - written);
        match error {
            Some(error) if !was_logged => tracing::warn!(%error, "decision records are not written to their file"),
            _ => {}
        }
        was_logged = written < lines.len();
        if is_end {
            return;
        }
    }
}

/// The rotated files of one path.
pub(super) struct RecordFiles {
    path: PathBuf,
    file: File,
    /// The size of the whole lines in the file that is written.
    bytes: u64,
    bytes_max: u64,
    files: usize,
}

impl RecordFiles {
    /// Opens the file, and continues it if it exists.
    ///
    /// # Errors
    /// Also when another process writes it.
    pub(super) fn open(path: &Path, bytes_max: u64, files: usize) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        lock(&file)?;
        let bytes = whole_lines(&mut file)?;
        file.set_len(bytes)?;
        Ok(Self { path: path.to_owned(), file, bytes, bytes_max, files })
    }

    /// Appends lines, each with its line break. Returns how many were written, and the error that stopped it.
    pub(super) fn append(&mut self, lines: &[String]) -> (usize, Option<io::Error>) {
        let mut written = 0;
        while written < lines.len() {
            // A line that is larger than a file gets a file of its own.
            if self.bytes > 0
                && self.bytes + lines[written].len() as u64 > self.bytes_max
                && let Err(error) = self.rotate()
            {
                return (written, Some(error));
            }
            let mut text = String::new();
            let mut count = 0;
            for line in &lines[written..] {
                if !text.is_empty() && self.bytes + (text.len() + line.len()) as u64 > self.bytes_max {
                    break;
                }
                text.push_str(line);
                count += 1;
            }
            if let Err(error) = self.file.write_all(text.as_bytes()) {
                let _ = self.file.set_len(self.bytes);
                return (written, Some(error));
            }
            self.bytes += text.len() as u64;
            written += count;
        }
        (written, None)
    }

    /// Renames each file to the next number, removes the last one, and begins a new file. The new file is opened before any file is
    /// renamed, so that nothing is lost when this fails and is tried again.
    fn rotate(&mut self) -> io::Result<()> {
        let last = self.files - 1;
        if last == 0 {
            self.file.set_len(0)?;
        } else {
            let new_path = with_ending(&self.path, ".new");
            let new = OpenOptions::new().create(true).read(true).append(true).open(&new_path)?;
            lock(&new)?;
            new.set_len(0)?;
            if self.path.try_exists()? {
                self.make_room(last)?;
                fs::rename(&self.path, named(&self.path, 1))?;
            }
            fs::rename(&new_path, &self.path)?;
            self.file = new;
        }
        self.bytes = 0;
        Ok(())
    }

    /// Frees the name with number 1: renames each file to the next number, up to the first free one. If none is free, the last file is
    /// overwritten.
    fn make_room(&self, last: usize) -> io::Result<()> {
        let free = (1..last).find(|number| !named(&self.path, *number).exists()).unwrap_or(last);
        for number in (1..free).rev() {
            fs::rename(named(&self.path, number), named(&self.path, number + 1))?;
        }
        Ok(())
    }
}

fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::Error::new(io::ErrorKind::WouldBlock, "another process writes it"),
        TryLockError::Error(error) => error,
    })
}

fn named(path: &Path, number: usize) -> PathBuf {
    with_ending(path, &format!(".{number}"))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

/// The size of the whole lines of a file. A file with a longer line than a record can have is not ours, and is not changed.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    let bytes = file.metadata()?.len();
    let from = bytes.saturating_sub(LINE_MAX_BYTES as u64);
    file.seek(SeekFrom::Start(from))?;
    let mut last_bytes = Vec::new();
    file.take(LINE_MAX_BYTES as u64).read_to_end(&mut last_bytes)?;
    match last_bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(last) => Ok(from + last as u64 + 1),
        None if from == 0 => Ok(0),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "holds something else than decision records")),
    }
}

#[cfg(test)]
mod tests;
