//! Where a reader stands in the stream, and what it missed. A pure machine.
//!
//! Entries are counted as well as followed by their ids: Redis knows how many it ever added and how many are left, so what
//! was trimmed before it was read has a number, not only a suspicion.

use crate::transport::{EntryId, Extent};

/// A reader's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The last entry that was read.
    at: EntryId,
    /// How many entries had been added up to it; unknown where Redis does not count them.
    position: Option<u64>,
}

/// What a look at the stream found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Everything behind the cursor is there.
    Whole,
    /// The stream was trimmed past the cursor: so many entries are gone unread.
    Trimmed {
        /// How many.
        entries: u64,
    },
    /// It is not the stream that was read: it was emptied, or an older copy took over. What is added from now on is read.
    Reset,
}

impl Cursor {
    /// A reader that starts at the end of the stream: a concrete place, so that nothing is missed before the first read.
    pub(crate) fn at_the_end(extent: &Extent) -> Self {
        Cursor { at: extent.last, position: extent.added }
    }

    /// The last entry that was read.
    pub(crate) fn at(&self) -> EntryId {
        self.at
    }

    /// An entry was read.
    pub(crate) fn read(&mut self, id: EntryId) {
        self.at = self.at.max(id);
        self.position = self.position.map(|position| position + 1);
    }

    /// Compares with how far the stream reaches now.
    pub(crate) fn compare(&mut self, extent: &Extent) -> Finding {
        if extent.last < self.at {
            // An older copy holds entries that were read already, and ids that it gives again would be passed over.
            *self = Cursor::at_the_end(extent);
            return Finding::Reset;
        }
        let (Some(added), Some(position)) = (extent.added, self.position) else { return Finding::Whole };
        // Nothing is left to read at the end: what was not counted was trimmed between a look and the read behind it.
        let unread = if extent.last == self.at { 0 } else { extent.len };
        let gone = added.saturating_sub(unread);
        if added < position {
            // Emptied, and entries were added since: their ids follow the clock, so they are all behind the cursor.
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
mod tests {
    use super::*;

    fn id(ms: u64) -> EntryId {
        EntryId { ms, seq: 0 }
    }

    fn extent(last: u64, added: u64, len: u64) -> Extent {
        Extent { last: id(last), added: Some(added), len }
    }

    #[test]
    fn it_starts_at_the_end_and_follows() {
        let mut cursor = Cursor::at_the_end(&extent(70, 7, 5));
        assert_eq!(cursor.at(), id(70));
        assert_eq!(cursor.compare(&extent(70, 7, 5)), Finding::Whole);
        cursor.read(id(80));
        assert_eq!(cursor.at(), id(80));
        assert_eq!(cursor.compare(&extent(90, 9, 2)), Finding::Whole, "all it has not read is there");
    }

    #[test]
    fn what_was_trimmed_unread_is_counted_once() {
        let mut cursor = Cursor::at_the_end(&extent(70, 7, 5));
        assert_eq!(cursor.compare(&extent(200, 20, 10)), Finding::Trimmed { entries: 3 });
        assert_eq!(cursor.compare(&extent(200, 20, 10)), Finding::Whole);
        cursor.read(id(110));
        assert_eq!(cursor.compare(&extent(220, 22, 10)), Finding::Trimmed { entries: 1 });
    }

    #[test]
    fn what_was_trimmed_between_a_look_and_a_read_is_counted_when_all_is_read() {
        let mut cursor = Cursor::at_the_end(&extent(70, 7, 5));
        assert_eq!(cursor.compare(&extent(170, 17, 10)), Finding::Whole);
        (11..=20).for_each(|number| cursor.read(id(number * 10)));
        assert_eq!(cursor.compare(&extent(210, 21, 10)), Finding::Whole, "not known yet");
        cursor.read(id(210));
        assert_eq!(cursor.compare(&extent(210, 21, 10)), Finding::Trimmed { entries: 3 });
        assert_eq!(cursor.compare(&extent(210, 21, 10)), Finding::Whole);
    }

    #[test]
    fn an_older_copy_is_followed_from_its_end() {
        let mut cursor = Cursor::at_the_end(&extent(70, 7, 5));
        assert_eq!(cursor.compare(&extent(40, 4, 4)), Finding::Reset);
        assert_eq!(cursor.at(), id(40));
        assert_eq!(cursor.compare(&extent(50, 5, 5)), Finding::Whole);
    }

    #[test]
    fn an_emptied_stream_is_found_and_all_that_is_new_is_read() {
        let mut cursor = Cursor::at_the_end(&extent(70, 7, 5));
        assert_eq!(cursor.compare(&Extent::default()), Finding::Reset);
        assert_eq!(cursor.at(), id(0));
        let mut cursor = Cursor::at_the_end(&extent(70, 7, 5));
        assert_eq!(cursor.compare(&extent(900, 2, 2)), Finding::Reset, "found by its count, for its clock went on");
        assert_eq!(cursor.at(), id(70));
        (0..2).for_each(|more| cursor.read(id(899 + more)));
        assert_eq!(cursor.compare(&extent(900, 2, 2)), Finding::Whole);
        let mut cursor = Cursor::at_the_end(&extent(70, 7, 5));
        assert_eq!(cursor.compare(&extent(900, 8, 8)), Finding::Whole, "it looks like the same stream");
        (0..8).for_each(|more| cursor.read(id(893 + more)));
        assert_eq!(cursor.compare(&extent(900, 8, 8)), Finding::Reset, "but more was read than it ever had");
        assert_eq!(cursor.compare(&extent(900, 8, 8)), Finding::Whole);
    }

    #[test]
    fn without_counts_only_ids_tell() {
        let uncounted = |last, len| Extent { last: id(last), added: None, len };
        let mut cursor = Cursor::at_the_end(&uncounted(70, 7));
        cursor.read(id(80));
        assert_eq!(cursor.compare(&uncounted(90, 2)), Finding::Whole, "it may have been trimmed or not");
        assert_eq!(cursor.compare(&uncounted(40, 4)), Finding::Reset);
    }
}
