//! Keeps the last entries of the stream for clients that were away. A pure machine.
//!
//! The log keeps the id of every entry, because a client may name any of them as the last that it saw. It keeps the content only of
//! broadcasts for followers. It grows at its end with new entries, and at its front with older entries that are read for clients
//! that were away longer.

use std::collections::VecDeque;

use super::event::FollowedEvent;
use crate::transport::EntryId;

/// The entries after `base`, up to `last`.
#[derive(Debug)]
pub(super) struct StreamLog {
    /// All entries after it are in the log. It is the id of an entry, or where the stream or the log begins.
    base: EntryId,
    last: EntryId,
    /// The first base.
    start: EntryId,
    entries: VecDeque<LogEntry>,
    bytes: usize,
    bounds: Bounds,
    is_filling: bool,
    /// Entries after `base` were lost. The log is complete again from the next entry on.
    is_torn: bool,
}

/// How much a log holds, or how much of it one client gets. A log holds twice as much while it is filled from the front, so that the
/// waiting clients can be served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) entries_max: usize,
    /// The size of the broadcasts as they are sent to clients, with the names of their rooms.
    pub(super) bytes_max: usize,
}

/// An entry of the stream.
#[derive(Debug)]
pub(super) struct LogEntry {
    pub(super) id: EntryId,
    pub(super) content: EntryContent,
}

/// What followers get of an entry.
#[derive(Debug)]
pub(super) enum EntryContent {
    /// Nothing.
    Other,
    /// A broadcast.
    Event(FollowedEvent),
    /// The notice that broadcasts of some server before it never got into the stream.
    Loss,
}

/// What a client missed.
#[derive(Debug)]
pub(super) enum Missed<'a> {
    /// These broadcasts.
    Events(Vec<&'a FollowedEvent>),
    /// More than one client gets.
    TooMany,
    /// Some that never got into the stream.
    Lost,
}

/// Where an entry is, relative to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// In the log: all later entries are known.
    Within,
    /// Before all entries in the log.
    Before,
    /// After all entries that were read.
    Ahead,
    /// The stream has no such entry.
    Unknown,
}

impl StreamLog {
    /// A log that begins after an entry.
    pub(super) fn new(at: EntryId, bounds: Bounds) -> Self {
        StreamLog {
            base: at,
            last: at,
            start: at,
            entries: VecDeque::new(),
            bytes: 0,
            bounds,
            is_filling: false,
            is_torn: false,
        }
    }

    pub(super) fn base(&self) -> EntryId {
        self.base
    }

    pub(super) fn last(&self) -> EntryId {
        self.last
    }

    pub(super) fn start(&self) -> EntryId {
        self.start
    }

    /// Appends the next entry.
    pub(super) fn push(&mut self, entry: LogEntry) {
        if self.is_torn {
            return self.restart(entry.id);
        }
        self.last = entry.id;
        self.bytes += entry.size();
        self.entries.push_back(entry);
        self.trim();
    }

    /// Adds older entries. `page` holds the last entries up to the base, in order, and all entries after the new `base`.
    pub(super) fn prepend(&mut self, page: Vec<LogEntry>, base: EntryId) {
        if self.is_torn {
            return;
        }
        for entry in page.into_iter().rev().skip_while(|entry| entry.id > self.base) {
            if entry.id > base {
                self.bytes += entry.size();
                self.entries.push_front(entry);
            }
        }
        self.base = base;
    }

    /// Sets whether the log is being filled from the front.
    pub(super) fn set_filling(&mut self, is_filling: bool) {
        self.is_filling = is_filling;
        self.trim();
    }

    /// Whether nothing more can be added to the front.
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.bounds.entries_max * 2 || self.bytes >= self.bounds.bytes_max * 2
    }

    /// Forgets all entries and continues after `at`.
    pub(super) fn restart(&mut self, at: EntryId) {
        *self = StreamLog { start: self.start.min(at), is_filling: self.is_filling, ..StreamLog::new(at, self.bounds) };
    }

    /// Entries after `at` were lost before they were read. Every client that saw no later entry has missed them.
    pub(super) fn tear(&mut self, at: EntryId) {
        self.restart(at);
        self.is_torn = true;
    }

    /// Where an entry is.
    pub(super) fn position(&self, from: EntryId) -> Position {
        match from {
            from if from > self.last => Position::Ahead,
            _ if self.is_torn => Position::Unknown,
            from if from < self.base => Position::Before,
            from if from == self.base => Position::Within,
            from => match self.entries.binary_search_by_key(&from, |entry| entry.id) {
                Ok(_) => Position::Within,
                Err(_) => Position::Unknown,
            },
        }
    }

    /// The broadcasts after an entry that `wanted` selects, in order, if they are within the bounds.
    pub(super) fn missed(
        &self,
        from: EntryId,
        max: Bounds,
        wanted: impl Fn(EntryId, &FollowedEvent) -> bool,
    ) -> Missed<'_> {
        let first = self.entries.partition_point(|entry| entry.id <= from);
        let (mut missed, mut bytes) = (Vec::new(), 0);
        for LogEntry { id, content } in self.entries.range(first..) {
            match content {
                EntryContent::Loss => return Missed::Lost,
                EntryContent::Event(event) if wanted(*id, event) => {
                    bytes += event.size();
                    missed.push(event);
                }
                EntryContent::Event(_) | EntryContent::Other => {}
            }
            if missed.len() > max.entries_max || bytes > max.bytes_max {
                return Missed::TooMany;
            }
        }
        Missed::Events(missed)
    }

    fn trim(&mut self) {
        let times = if self.is_filling { 2 } else { 1 };
        let Bounds { entries_max, bytes_max } = self.bounds;
        while self.entries.len() > entries_max * times || self.bytes > bytes_max * times {
            let Some(entry) = self.entries.pop_front() else { return };
            self.bytes -= entry.size();
            self.base = entry.id;
        }
    }
}

impl LogEntry {
    fn size(&self) -> usize {
        match &self.content {
            EntryContent::Event(event) => event.size(),
            EntryContent::Other | EntryContent::Loss => 0,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
