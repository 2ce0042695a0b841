//! A file as it was seen, and read whole or not at all.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

/// What tells one state of a file from another without reading it; follows symlinks, so that a flip shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    modified_ns: i128,
    changed_ns: i128,
}

/// The file's state; `None` when there is no such file.
pub(super) fn stamp(path: &Path) -> io::Result<Option<Stamp>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
    Ok(Some(Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        len: metadata.len(),
        modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
    }))
}

/// The file's content, provided that it is no larger than `bytes_max` and did not change while it was read.
pub(super) fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let before = stamp(path)?;
    if before.is_some_and(|stamp| stamp.len > bytes_max) {
        return Err(io::Error::other(format!("larger than {bytes_max} bytes")));
    }
    let content = fs::read(path)?;
    if stamp(path)? != before {
        return Err(io::Error::other("it changed while it was read"));
    }
    Ok(content)
}
