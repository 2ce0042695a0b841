//! The last entries of the stream, for those who were away. A pure machine.
//!
//! Every entry keeps its place, for a client may name any of them as the last that it saw; only broadcasts that followers get keep
//! their content. The log grows at its end with what is read, and at its front with what is fetched for those who were away longer.

use std::collections::VecDeque;

use crate::event::Event;
use crate::transport::EntryId;

/// The entries behind `base`, up to `last`.
#[derive(Debug)]
pub(crate) struct Log {
    /// All that is behind it is in the log. It is an entry's id, or where the stream or the log begins.
    base: EntryId,
    last: EntryId,
    /// Where it was at first.
    start: EntryId,
    entries: VecDeque<Entry>,
    bytes: usize,
    bounds: Bounds,
    is_filling: bool,
    /// Entries behind `base` were lost: what is behind the next one is known again.
    is_torn: bool,
}

/// How much a log holds, or one client is sent of it. A log holds twice as much while it is filled from the front, so that those it is filled for can be served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) entries_max: usize,
    /// Of broadcasts as they are sent to clients, with the names of their rooms.
    pub(crate) bytes_max: usize,
}

/// An entry of the stream.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: EntryId,
    /// What followers get of it.
    pub(crate) content: Content,
}

/// What followers get of an entry.
#[derive(Debug)]
pub(crate) enum Content {
    /// Nothing.
    Other,
    /// A broadcast.
    Event(Event),
    /// Word that some server's broadcasts before it never got into the stream.
    Loss,
}

/// What a client missed.
#[derive(Debug)]
pub(crate) enum Missed<'a> {
    /// These broadcasts.
    Events(Vec<&'a Event>),
    /// More than it is sent.
    TooMany,
    /// Some that never got into the stream.
    Lost,
}

/// Where in the log the last entry is that a client saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In it: all that came later is known.
    Within,
    /// Before all that it holds.
    Before,
    /// Behind all that was read.
    Ahead,
    /// There is no such entry.
    Nowhere,
}

impl Log {
    /// A log that begins behind an entry.
    pub(crate) fn new(at: EntryId, bounds: Bounds) -> Self {
        Log {
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

    pub(crate) fn base(&self) -> EntryId {
        self.base
    }

    pub(crate) fn last(&self) -> EntryId {
        self.last
    }

    pub(crate) fn start(&self) -> EntryId {
        self.start
    }

    /// Adds an entry that is behind all others.
    pub(crate) fn push(&mut self, entry: Entry) {
        if self.is_torn {
            return self.restart(entry.id);
        }
        self.last = entry.id;
        self.bytes += entry.size();
        self.entries.push_back(entry);
        self.trim();
    }

    /// Adds what comes before it: `page` are the last entries up to its base, in order, and all that there are behind the new `base`.
    pub(crate) fn prepend(&mut self, page: Vec<Entry>, base: EntryId) {
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

    /// Whether it is being filled from the front.
    pub(crate) fn set_filling(&mut self, is_filling: bool) {
        self.is_filling = is_filling;
        self.trim();
    }

    /// Whether no more can be added to its front.
    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= self.bounds.entries_max * 2 || self.bytes >= self.bounds.bytes_max * 2
    }

    /// Forgets all content; what comes later is kept again. `at` is where the stream is read from.
    pub(crate) fn restart(&mut self, at: EntryId) {
        *self = Log { start: self.start.min(at), is_filling: self.is_filling, ..Log::new(at, self.bounds) };
    }

    /// Entries behind `at` were lost before they were read. Whoever saw none behind it has missed them.
    pub(crate) fn tear(&mut self, at: EntryId) {
        self.restart(at);
        self.is_torn = true;
    }

    /// Where the entry is that a client saw last.
    pub(crate) fn place(&self, from: EntryId) -> Place {
        match from {
            from if from > self.last => Place::Ahead,
            _ if self.is_torn => Place::Nowhere,
            from if from < self.base => Place::Before,
            from if from == self.base => Place::Within,
            from => match self.entries.binary_search_by_key(&from, |entry| entry.id) {
                Ok(_) => Place::Within,
                Err(_) => Place::Nowhere,
            },
        }
    }

    /// What there is behind an entry of the broadcasts that `wanted` picks, in order, if they are within the bounds.
    pub(crate) fn missed(&self, from: EntryId, max: Bounds, wanted: impl Fn(EntryId, &Event) -> bool) -> Missed<'_> {
        let first = self.entries.partition_point(|entry| entry.id <= from);
        let (mut missed, mut bytes) = (Vec::new(), 0);
        for Entry { id, content } in self.entries.range(first..) {
            match content {
                Content::Loss => return Missed::Lost,
                Content::Event(event) if wanted(*id, event) => {
                    bytes += event.size();
                    missed.push(event);
                }
                Content::Event(_) | Content::Other => {}
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

impl Entry {
    fn size(&self) -> usize {
        match &self.content {
            Content::Event(event) => event.size(),
            Content::Other | Content::Loss => 0,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
