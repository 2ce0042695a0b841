//! A stream in memory.

use std::collections::VecDeque;

use crate::transport::types::{EntryId, Extent, StreamEntry};

#[derive(Default)]
pub(super) struct Stream {
    entries: VecDeque<StreamEntry>,
    last: EntryId,
    added: u64,
}

impl Stream {
    /// Adds an entry, and trims to exactly `len_max` entries. Ids grow even if the clock does not.
    pub(super) fn append(&mut self, now_ms: u64, fields: Vec<(&'static str, String)>, len_max: u64) {
        self.last = match self.last {
            EntryId { ms, .. } if now_ms > ms => EntryId { ms: now_ms, seq: 0 },
            EntryId { ms, seq } => EntryId { ms, seq: seq + 1 },
        };
        self.added += 1;
        let fields = fields.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        self.entries.push_back(StreamEntry { id: self.last, fields });
        while self.entries.len() as u64 > len_max {
            self.entries.pop_front();
        }
    }

    pub(super) fn read(&self, after: EntryId, count: u64) -> Vec<StreamEntry> {
        let from = self.entries.partition_point(|entry| entry.id <= after);
        let count = usize::try_from(count.max(1)).unwrap_or(usize::MAX);
        self.entries.range(from..).take(count).cloned().collect()
    }

    pub(super) fn range(&self, last: EntryId, count: u64) -> Vec<StreamEntry> {
        let end = self.entries.partition_point(|entry| entry.id <= last);
        let count = usize::try_from(count.max(1)).unwrap_or(usize::MAX);
        self.entries.range(end.saturating_sub(count)..end).cloned().collect()
    }

    pub(super) fn extent(&self) -> Extent {
        Extent { last: self.last, added: Some(self.added), len: self.entries.len() as u64 }
    }
}
