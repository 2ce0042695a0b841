//! Tracks which files of the policy directory are being written.

use std::{
    collections::HashMap,
    ffi::OsString,
    path::Path,
    time::{Duration, Instant},
};

use notify::{
    Event, EventKind,
    event::{AccessKind, AccessMode, ModifyKind},
};

/// A writer that has been silent for this long is considered gone. The file is then loaded as it is.
const WRITER_SILENT_MAX: Duration = Duration::from_secs(5);

/// Names of files that were written to and have not been closed since. Without it, a copy that stalls for longer than the quiet
/// time would be taken for finished.
#[derive(Default)]
pub(super) struct Writers(HashMap<OsString, Instant>);

impl Writers {
    /// Notes an event of the watcher. Holds at most one entry for each file of the watched directories.
    pub(super) fn note(&mut self, event: &Event, now: Instant) {
        for name in event.paths.iter().filter_map(|path| path.file_name()) {
            match event.kind {
                EventKind::Modify(ModifyKind::Data(_)) => {
                    self.0.insert(name.to_owned(), now);
                }
                EventKind::Access(AccessKind::Close(AccessMode::Write))
                | EventKind::Remove(_)
                | EventKind::Modify(ModifyKind::Name(_)) => {
                    self.0.remove(name);
                }
                _ => {}
            }
        }
        self.0.retain(|_, heard| now.duration_since(*heard) < WRITER_SILENT_MAX);
    }

    /// Whether a process is still writing to the file at this path.
    pub(super) fn is_writing(&self, path: &Path, now: Instant) -> bool {
        let heard = path.file_name().and_then(|name| self.0.get(name));
        heard.is_some_and(|heard| now.duration_since(*heard) < WRITER_SILENT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{DataChange, RenameMode};

    use super::*;

    fn event(kind: EventKind) -> Event {
        Event::new(kind).add_path("/policies/target.wasm".into())
    }

    #[test]
    fn a_file_is_written_until_it_is_closed_or_its_writer_is_silent() {
        let written = event(EventKind::Modify(ModifyKind::Data(DataChange::Any)));
        let path = Path::new("/policies/target.wasm");
        let now = Instant::now();
        for end in [
            EventKind::Access(AccessKind::Close(AccessMode::Write)),
            EventKind::Modify(ModifyKind::Name(RenameMode::Any)),
        ] {
            let mut writers = Writers::default();
            writers.note(&written, now);
            assert!(writers.is_writing(path, now));
            assert!(!writers.is_writing(Path::new("/policies/grace.wasm"), now));
            assert!(!writers.is_writing(path, now + WRITER_SILENT_MAX));
            writers.note(&event(end), now);
            assert!(!writers.is_writing(path, now));
        }
    }
}
