//! Reads and replaces files so that nobody sees half of one, and tells whether a file has changed without reading it.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::Path,
};

/// Differs after every change of a file. It follows symlinks, so it also differs after a symlink is switched to another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    len: u64,
    modified_ns: i128,
    changed_ns: i128,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileState {
    /// There is no file.
    Absent,
    /// There is a file, or a folder, or a device.
    Present(FileStamp),
    /// The file system does not say what is there. This does not mean that the file was removed.
    Unreadable(io::ErrorKind),
}

/// The state of the file at a path; it is not opened.
pub(super) fn file_state(path: &Path) -> FileState {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return FileState::Absent,
        Err(error) => return FileState::Unreadable(error.kind()),
    };
    let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
    FileState::Present(FileStamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        len: metadata.len(),
        modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
    })
}

/// Reads a regular file of at most `bytes_max`.
///
/// # Errors
/// Also when the file changed while it was read.
pub(super) fn read_whole(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let before = file_state(path);
    // Checked before it is opened, because opening a pipe can wait for ever.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    fs::File::open(path)?.take(bytes_max + 1).read_to_end(&mut content)?;
    if content.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    if file_state(path) != before {
        return Err(io::Error::other("it changed while it was read"));
    }
    Ok(content)
}

/// Replaces a file's content. A reader finds the old content or the new one, also after a crash.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_whole_file_and_rejects_a_larger_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("target.wasm");
        assert_eq!(file_state(&path), FileState::Absent);
        fs::write(&path, b"12345").unwrap();
        assert!(matches!(file_state(&path), FileState::Present(_)));
        assert_eq!(read_whole(&path, 5).unwrap(), b"12345");
        assert!(read_whole(&path, 4).unwrap_err().to_string().contains("larger"));
    }

    #[test]
    fn an_unreadable_path_is_not_absent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("target.wasm");
        std::os::unix::fs::symlink(&path, &path).unwrap();
        assert!(matches!(file_state(&path), FileState::Unreadable(_)));
    }

    #[test]
    fn rejects_what_is_not_a_regular_file_without_opening_it() {
        for path in ["/dev/zero", "/dev/null", "/"] {
            assert!(read_whole(Path::new(path), 1_000).unwrap_err().to_string().contains("regular file"), "{path}");
        }
    }
}
