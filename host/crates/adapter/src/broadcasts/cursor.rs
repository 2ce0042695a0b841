//! Remembers how far the stream was read, and finds entries that were lost before that. A pure machine.
//!
//! The cursor counts entries besides remembering their ids. Redis knows how many entries it ever added and how many are left, so the
//! number of entries that were trimmed unread is known.

use crate::transport::{EntryId, Extent};

/// How far the stream was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamCursor {
    /// The last entry that was read.
    at: EntryId,
    /// How many entries had been added up to it. `None` if Redis does not count them.
    position: Option<u64>,
}

/// The result of a comparison with the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    /// The stream has all entries after the cursor.
    Whole,
    /// The stream was trimmed past the cursor, and entries were lost unread.
    Trimmed {
        /// How many.
        entries: u64,
    },
    /// The stream is not the one that was read: it was emptied, or an older copy took over. New entries are read from now on.
    Reset,
}

impl StreamCursor {
    /// A cursor at the end of the stream. It names a concrete entry, so nothing is missed before the first read.
    pub(super) fn at_the_end(extent: &Extent) -> Self {
        StreamCursor { at: extent.last, position: extent.added }
    }

    /// The last entry that was read.
    pub(super) fn at(&self) -> EntryId {
        self.at
    }

    /// An entry was read.
    pub(super) fn handle_entry(&mut self, id: EntryId) {
        self.at = self.at.max(id);
        self.position = self.position.map(|position| position + 1);
    }

    /// Compares the cursor with the present extent of the stream.
    pub(super) fn compare(&mut self, extent: &Extent) -> Finding {
        if extent.last < self.at {
            // An older copy holds entries that were read already. Reading on from the cursor would skip the ids that it gives again.
            *self = StreamCursor::at_the_end(extent);
            return Finding::Reset;
        }
        let (Some(added), Some(position)) = (extent.added, self.position) else { return Finding::Whole };
        // Nothing is left to read at the end: entries that were not counted were trimmed between a comparison and the read after it.
        let unread = if extent.last == self.at { 0 } else { extent.len };
        let gone = added.saturating_sub(unread);
        if added < position {
            // The stream was emptied, and entries were added since. Their ids follow the clock, so all are after the cursor.
            self.position = Some(gone);
            return Finding::Reset;
        }
        if gone > position {
            self.position = Some(gone);
            return Finding::Trimmed { entries: gone - position };
        }
        Finding::Whole
    }
}

#[cfg(test)]
mod tests;
