//! Makes the offsets of a replica that shares no cluster. They look like the ids of Redis.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::transport::EntryId;

/// The id after `last`. Ids grow even if the clock does not.
pub(super) fn next_id(last: Option<EntryId>) -> EntryId {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    id_after(last, u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

fn id_after(last: Option<EntryId>, now_ms: u64) -> EntryId {
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
        assert_eq!(id_after(None, 70), id(70, 0));
        assert_eq!(id_after(Some(id(70, 3)), 71), id(71, 0));
        assert_eq!(id_after(Some(id(70, 3)), 70), id(70, 4));
        assert_eq!(id_after(Some(id(70, 3)), 60), id(70, 4));
    }
}
