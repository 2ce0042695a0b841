//! The offsets of a replica that is alone: ids as Redis would give them.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::transport::EntryId;

/// The id of what comes behind `last`. Ids grow also if the clock does not.
pub(crate) fn next_id(last: Option<EntryId>) -> EntryId {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    behind(last, u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

fn behind(last: Option<EntryId>, now_ms: u64) -> EntryId {
    match last {
        Some(EntryId { ms, seq }) if ms >= now_ms => EntryId { ms, seq: seq.saturating_add(1) },
        _ => EntryId { ms: now_ms, seq: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_the_clock_and_grow_without_it() {
        let id = |ms, seq| EntryId { ms, seq };
        assert_eq!(behind(None, 70), id(70, 0));
        assert_eq!(behind(Some(id(70, 3)), 71), id(71, 0));
        assert_eq!(behind(Some(id(70, 3)), 70), id(70, 4));
        assert_eq!(behind(Some(id(70, 3)), 60), id(70, 4));
    }
}
