use super::*;

fn id(ms: u64) -> EntryId {
    EntryId { ms, seq: 0 }
}

fn extent(last: u64, added: u64, len: u64) -> Extent {
    Extent { last: id(last), added: Some(added), len }
}

#[test]
fn starts_at_the_end_and_follows() {
    let mut cursor = StreamCursor::at_the_end(&extent(70, 7, 5));
    assert_eq!(cursor.at(), id(70));
    assert_eq!(cursor.compare(&extent(70, 7, 5)), Finding::Whole);
    cursor.handle_entry(id(80));
    assert_eq!(cursor.at(), id(80));
    assert_eq!(cursor.compare(&extent(90, 9, 2)), Finding::Whole, "all it has not read is there");
}

#[test]
fn counts_entries_trimmed_unread_once() {
    let mut cursor = StreamCursor::at_the_end(&extent(70, 7, 5));
    assert_eq!(cursor.compare(&extent(200, 20, 10)), Finding::Trimmed { entries: 3 });
    assert_eq!(cursor.compare(&extent(200, 20, 10)), Finding::Whole);
    cursor.handle_entry(id(110));
    assert_eq!(cursor.compare(&extent(220, 22, 10)), Finding::Trimmed { entries: 1 });
}

#[test]
fn counts_entries_trimmed_between_comparison_and_read_when_all_is_read() {
    let mut cursor = StreamCursor::at_the_end(&extent(70, 7, 5));
    assert_eq!(cursor.compare(&extent(170, 17, 10)), Finding::Whole);
    (11..=20).for_each(|number| cursor.handle_entry(id(number * 10)));
    assert_eq!(cursor.compare(&extent(210, 21, 10)), Finding::Whole, "not known yet");
    cursor.handle_entry(id(210));
    assert_eq!(cursor.compare(&extent(210, 21, 10)), Finding::Trimmed { entries: 3 });
    assert_eq!(cursor.compare(&extent(210, 21, 10)), Finding::Whole);
}

#[test]
fn follows_an_older_copy_from_its_end() {
    let mut cursor = StreamCursor::at_the_end(&extent(70, 7, 5));
    assert_eq!(cursor.compare(&extent(40, 4, 4)), Finding::Reset);
    assert_eq!(cursor.at(), id(40));
    assert_eq!(cursor.compare(&extent(50, 5, 5)), Finding::Whole);
}

#[test]
fn detects_an_emptied_stream_and_reads_all_new_entries() {
    let mut cursor = StreamCursor::at_the_end(&extent(70, 7, 5));
    assert_eq!(cursor.compare(&Extent::default()), Finding::Reset);
    assert_eq!(cursor.at(), id(0));
    let mut cursor = StreamCursor::at_the_end(&extent(70, 7, 5));
    assert_eq!(cursor.compare(&extent(900, 2, 2)), Finding::Reset, "found by its count, for its clock went on");
    assert_eq!(cursor.at(), id(70));
    (0..2).for_each(|more| cursor.handle_entry(id(899 + more)));
    assert_eq!(cursor.compare(&extent(900, 2, 2)), Finding::Whole);
    let mut cursor = StreamCursor::at_the_end(&extent(70, 7, 5));
    assert_eq!(cursor.compare(&extent(900, 8, 8)), Finding::Whole, "it looks like the same stream");
    (0..8).for_each(|more| cursor.handle_entry(id(893 + more)));
    assert_eq!(cursor.compare(&extent(900, 8, 8)), Finding::Reset, "but more was read than it ever had");
    assert_eq!(cursor.compare(&extent(900, 8, 8)), Finding::Whole);
}

#[test]
fn without_counts_compares_ids_only() {
    let uncounted = |last, len| Extent { last: id(last), added: None, len };
    let mut cursor = StreamCursor::at_the_end(&uncounted(70, 7));
    cursor.handle_entry(id(80));
    assert_eq!(cursor.compare(&uncounted(90, 2)), Finding::Whole, "it may have been trimmed or not");
    assert_eq!(cursor.compare(&uncounted(40, 4)), Finding::Reset);
}
