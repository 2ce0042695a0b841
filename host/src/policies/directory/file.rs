//! A file as it was seen, and read whole or not at all.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::Path,
};

/// What tells one state of a file from another without reading it; follows symlinks, so that a flip shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    modified_ns: i128,
    changed_ns: i128,
}

/// What is to be seen at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing by that name.
    Nothing,
    /// A file, or something else that has a state.
    There(Stamp),
    /// Something that cannot be looked at; no reason to believe that it was taken away.
    Unreadable(io::ErrorKind),
}

/// Looks at a path, without opening what is there.
pub(super) fn look(path: &Path) -> Seen {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Seen::Nothing,
        Err(error) => return Seen::Unreadable(error.kind()),
    };
    let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
    Seen::There(Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        len: metadata.len(),
        modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
    })
}

/// The file's content, provided that it is a regular file of at most `bytes_max` that did not change while it was read.
pub(crate) fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let before = look(path);
    // Before it is opened: that alone can wait for ever on a pipe.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    fs::File::open(path)?.take(bytes_max + 1).read_to_end(&mut content)?;
    if content.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    if look(path) != before {
        return Err(io::Error::other("it changed while it was read"));
    }
    Ok(content)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("target.wasm");
        assert_eq!(look(&path), Seen::Nothing);
        fs::write(&path, b"12345").unwrap();
        assert!(matches!(look(&path), Seen::There(_)));
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert!(read(&path, 4).unwrap_err().to_string().contains("larger"));
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_taken_for_absent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("target.wasm");
        std::os::unix::fs::symlink(&path, &path).unwrap();
        assert!(matches!(look(&path), Seen::Unreadable(_)));
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        for path in ["/dev/zero", "/dev/null", "/"] {
            assert!(read(Path::new(path), 1_000).unwrap_err().to_string().contains("regular file"), "{path}");
        }
    }
}
