#![allow(clippy::unwrap_used)]

use super::*;

fn list(values: impl IntoIterator<Item = Value>) -> Value {
    Value::Array(values.into_iter().collect())
}

fn texts<const N: usize>(values: [&str; N]) -> Value {
    list(values.map(Value::from))
}

fn is_reply<T: std::fmt::Debug>(result: Result<T, TransportError>) -> bool {
    matches!(result, Err(TransportError::Reply(_)))
}

#[test]
fn nothing_read_is_no_error() {
    assert_eq!(entries(Value::Null), Ok(Vec::new()));
    assert_eq!(entries(list([])), Ok(Vec::new()));
}

#[test]
fn entries_are_read() {
    let entry = |id: &str, fields| list([Value::from(id), fields]);
    let entries = list([entry("5-1", texts(["a", "1", "b", "2"])), entry("5-2", Value::Null)]);
    let read = super::entries(list([list([Value::from("stream"), entries])])).unwrap();
    assert_eq!(read[0].id, EntryId { ms: 5, seq: 1 });
    assert_eq!(read[0].fields, [("a".into(), "1".into()), ("b".into(), "2".into())]);
    assert_eq!(read[1], StreamEntry { id: EntryId { ms: 5, seq: 2 }, fields: Vec::new() });
}

#[test]
fn what_is_no_entry_is_refused() {
    let in_a_stream = |entry| list([list([Value::from("stream"), list([entry])])]);
    for entry in [
        Value::from("5-1"),
        texts(["5-1"]),
        list([Value::from("5"), texts(["a", "1"])]),
        list([Value::from(5), texts(["a", "1"])]),
        list([Value::from("5-1"), texts(["a"])]),
        list([Value::from("5-1"), list([Value::from("a"), Value::from(1)])]),
    ] {
        assert!(is_reply(entries(in_a_stream(entry))));
    }
    assert!(is_reply(entries(Value::from("OK"))));
    assert!(is_reply(entries(list([Value::from("stream")]))));
}

#[test]
fn an_extent_is_read_with_and_without_what_was_added() {
    let state = |added: Option<i64>| {
        let known = [Value::from("length"), Value::from(3), Value::from("last-generated-id"), Value::from("9-0")];
        let added = added.into_iter().flat_map(|added| [Value::from("entries-added"), Value::from(added)]);
        list(known.into_iter().chain([Value::from("first-entry"), Value::Null]).chain(added))
    };
    let last = EntryId { ms: 9, seq: 0 };
    assert_eq!(extent(state(Some(7))), Ok(Extent { last, added: Some(7), len: 3 }));
    assert_eq!(extent(state(None)), Ok(Extent { last, added: None, len: 3 }));
    assert!(is_reply(extent(state(Some(-1)))));
    assert!(is_reply(extent(list([Value::from("length"), Value::from(3)]))));
    assert!(is_reply(extent(Value::Null)));
}

#[test]
fn counts_are_of_the_channels_asked() {
    let reply = || list([Value::from("a"), Value::from(2), Value::from("b"), Value::from(0)]);
    assert_eq!(counts(reply(), &["a".to_owned(), "b".to_owned()]), Ok(vec![2, 0]));
    assert!(is_reply(counts(reply(), &["a".to_owned()])));
    assert!(is_reply(counts(reply(), &["b".to_owned(), "a".to_owned()])));
}

#[test]
fn a_pong_is_the_one_that_was_asked_for() {
    assert!(is_pong(Value::from("p-1"), "p-1"));
    assert!(is_pong(texts(["pong", "p-1"]), "p-1"));
    assert!(!is_pong(Value::from("PONG"), "p-1"));
    assert!(!is_pong(list([]), "p-1"));
}

#[test]
fn errors_keep_apart_what_redis_said_and_what_broke() {
    let of = |kind, details: &'static str| error(Error::new(kind, details));
    assert_eq!(of(ErrorKind::Timeout, "Request timed out."), TransportError::Timeout);
    assert_eq!(of(ErrorKind::Backpressure, "Max in-flight commands reached."), TransportError::Timeout);
    assert!(matches!(of(ErrorKind::Unknown, "ERR no such key"), TransportError::Refused(_)));
    assert!(matches!(of(ErrorKind::InvalidArgument, "WRONGTYPE Operation against"), TransportError::Refused(_)));
    assert!(matches!(of(ErrorKind::Unknown, "channel closed"), TransportError::Disconnected(_)));
    assert!(matches!(of(ErrorKind::IO, "Connection closed."), TransportError::Disconnected(_)));
}
