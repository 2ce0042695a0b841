use super::*;
use crate::wire::Options;

/// More than any test has.
const MOST: Bounds = Bounds { entries_max: 100, bytes_max: 1_000 };
const BOUNDS: Bounds = Bounds { entries_max: 4, bytes_max: 1_000 };

fn id(ms: u64) -> EntryId {
    EntryId { ms, seq: 0 }
}

/// An entry whose broadcast has so many bytes; none for zero.
fn entry(ms: u64, bytes: usize) -> LogEntry {
    let data = || socketioxide_core::Value::Str("x".repeat(bytes).into(), None);
    let event = || FollowedEvent { namespace: 0, opts: Options::default(), data: data() };
    LogEntry { id: id(ms), content: if bytes > 0 { EntryContent::Event(event()) } else { EntryContent::Other } }
}

fn log(entries: impl IntoIterator<Item = (u64, usize)>) -> StreamLog {
    let mut log = StreamLog::new(id(10), BOUNDS);
    entries.into_iter().for_each(|(ms, bytes)| log.push(entry(ms, bytes)));
    log
}

/// How many bytes the broadcasts behind an entry have.
fn missed(log: &StreamLog, from: u64) -> Vec<usize> {
    let Missed::Events(events) = log.missed(id(from), MOST, |_, _| true) else { panic!("events were expected") };
    events.into_iter().map(FollowedEvent::size).collect()
}

#[test]
fn finds_the_positions_of_entries_and_of_the_base() {
    let log = log([(11, 1), (13, 0)]);
    let places = [9, 10, 11, 12, 13, 14].map(|from| log.position(id(from)));
    assert_eq!(
        places,
        [Position::Before, Position::Within, Position::Within, Position::Unknown, Position::Within, Position::Ahead]
    );
}

#[test]
fn gives_later_broadcasts_in_order_and_bounded() {
    let log = log([(11, 1), (12, 0), (13, 3), (14, 4)]);
    assert_eq!(missed(&log, 10), [1, 3, 4]);
    assert_eq!(missed(&log, 12), [3, 4]);
    assert_eq!(missed(&log, 14), [0; 0]);
    assert!(matches!(log.missed(id(10), Bounds { entries_max: 2, ..MOST }, |_, _| true), Missed::TooMany));
    let wanted = log.missed(id(10), Bounds { entries_max: 2, ..MOST }, |at, _| at > id(11));
    assert!(matches!(wanted, Missed::Events(events) if events.len() == 2), "only what is wanted counts");
}

#[test]
fn drops_the_oldest_entries_and_their_positions() {
    let log = log((11..=16).map(|ms| (ms, 1)));
    assert_eq!(log.base(), id(12));
    assert_eq!([log.position(id(11)), log.position(id(12))], [Position::Before, Position::Within]);
    assert_eq!(missed(&log, 12).len(), 4);
}

#[test]
fn bounds_the_bytes_of_broadcasts() {
    let log = log([(11, 400), (12, 500), (13, 0), (14, 501)]);
    assert_eq!(log.base(), id(12));
    assert_eq!(missed(&log, 12), [501]);
}

#[test]
fn joins_older_entries_to_read_entries() {
    let mut log = log([(11, 11), (12, 12)]);
    // The page was asked for up to the base: that entry is in it.
    log.prepend((7..=10).map(|ms| entry(ms, ms as usize)).collect(), id(7));
    assert_eq!(
        [log.position(id(6)), log.position(id(7)), log.position(id(8))],
        [Position::Before, Position::Within, Position::Within]
    );
    assert_eq!(missed(&log, 7), [8, 9, 10, 11, 12]);
    log.prepend((5..=7).map(|ms| entry(ms, ms as usize)).collect(), id(0));
    assert_eq!(missed(&log, 0), [5, 6, 7, 8, 9, 10, 11, 12]);
}

#[test]
fn holds_twice_as_much_while_it_is_filled() {
    let mut log = log([(11, 1), (12, 1), (13, 1), (14, 1)]);
    log.set_filling(true);
    log.prepend((7..=10).map(|ms| entry(ms, 1)).collect(), id(7));
    assert!(!log.is_full());
    log.push(entry(15, 1));
    assert!(log.is_full());
    assert_eq!(log.base(), id(7));
    log.push(entry(16, 1));
    assert_eq!(log.base(), id(8), "but no more");
    log.set_filling(false);
    assert_eq!(log.base(), id(12));
}

#[test]
fn a_restarted_log_knows_only_its_base() {
    let mut log = log([(11, 1), (12, 1)]);
    log.restart(id(5));
    assert_eq!(
        [log.position(id(4)), log.position(id(5)), log.position(id(11))],
        [Position::Before, Position::Within, Position::Ahead]
    );
    log.push(entry(6, 6));
    assert_eq!(missed(&log, 5), [6]);
}

#[test]
fn a_torn_log_is_complete_after_the_next_entry() {
    let mut log = log([(11, 1), (12, 1)]);
    log.tear(id(12));
    assert_eq!(
        [log.position(id(11)), log.position(id(12)), log.position(id(40))],
        [Position::Unknown, Position::Unknown, Position::Ahead]
    );
    log.prepend(vec![entry(12, 1)], id(11));
    log.push(entry(40, 1));
    log.push(entry(41, 2));
    assert_eq!(
        [log.position(id(12)), log.position(id(40)), log.position(id(41))],
        [Position::Before, Position::Within, Position::Within]
    );
    assert_eq!(missed(&log, 40).len(), 1);
}

#[test]
fn every_client_that_saw_no_later_entry_missed_a_loss() {
    let mut log = log([(11, 1)]);
    log.push(LogEntry { id: id(12), content: EntryContent::Loss });
    log.push(entry(13, 3));
    for from in [10, 11] {
        assert!(matches!(log.missed(id(from), MOST, |_, _| true), Missed::Lost), "{from}");
    }
    assert_eq!(missed(&log, 12), [3]);
}

#[test]
fn bounds_the_bytes_for_one_client() {
    let log = log([(11, 300), (12, 300), (13, 300)]);
    let sent = |bytes_max| log.missed(id(10), Bounds { bytes_max, ..MOST }, |_, _| true);
    assert!(matches!(sent(899), Missed::TooMany));
    assert!(matches!(sent(900), Missed::Events(events) if events.len() == 3));
}
