//! Tests that errors name what is wrong, and that an unknown type is no error.

use socketioxide_redis_streams::wire::stream::Entry;
use socketioxide_redis_streams::wire::{Body, DecodeError, EncodeError, Limits, Message, Other, Value, pubsub};

use crate::corpus::decode_fields;
use crate::expected::map;

fn entry(kind: &str, data: &str) -> Result<Message, DecodeError> {
    let fields = [("uid", "1"), ("nsp", "/"), ("type", kind), ("data", data)];
    decode_fields(&fields.map(|(key, value)| (key.to_owned(), value.to_owned())))
}

#[test]
fn errors_name_the_wrong_field() {
    let everyone = r#""opts":{"rooms":[]}"#;
    let cases = [
        ("three", "{}".into(), "type is not a 32-bit number"),
        ("3", String::new(), "data is missing"),
        ("3", "{}".into(), "packet is missing"),
        ("3", r#"{"packet":1}"#.into(), "packet is not a map"),
        ("3", r#"{"packet":{"type":256,"data":[]}}"#.into(), "type is not the type of a Socket.IO packet"),
        ("3", r#"{"packet":{"type":2,"data":{}}}"#.into(), "data is not a list"),
        ("3", r#"{"packet":{"type":2,"data":[]}}"#.into(), "opts is missing"),
        ("4", r#"{"opts":{},"rooms":[]}"#.into(), "rooms is missing"),
        ("4", r#"{"opts":{"rooms":[null]},"rooms":[]}"#.into(), "rooms is not a list of room names"),
        ("4", r#"{"opts":{"rooms":[],"except":"r"},"rooms":[]}"#.into(), "except is not a list"),
        ("4", r#"{"opts":{"rooms":[],"flags":[]},"rooms":[]}"#.into(), "flags is not a map"),
        ("6", format!("{{{everyone},\"close\":1}}"), "close is not true or false"),
        ("7", format!("{{{everyone}}}"), "requestId is missing"),
        ("8", r#"{"requestId":"1","sockets":[{"rooms":[]}]}"#.into(), "id is missing"),
        ("10", r#"{"requestId":7}"#.into(), "requestId is not text"),
        ("11", r#"{"requestId":"1","clientCount":-1}"#.into(), "clientCount is not a whole number from 0 up"),
        ("12", "gqY=".into(), "not msgpack"),
        ("12", "wMA=".into(), "1 bytes after the end of the msgpack value"),
        ("12", "*".into(), "data is not base64"),
        ("12", "{".into(), "data is not JSON"),
    ];
    for (kind, data, error) in cases {
        let found = entry(kind, &data).expect_err(&data).to_string();
        assert!(found.starts_with(error), "{kind} {data}: {found}");
    }
}

#[test]
fn an_entry_needs_its_three_fields() {
    for missing in ["uid", "nsp", "type"] {
        let fields = ["uid", "nsp", "type"].into_iter().filter(|&field| field != missing).map(|field| (field, "3"));
        let error = Entry::from_fields(fields, &Limits::default()).unwrap_err();
        assert!(matches!(error, DecodeError::Missing { field } if field == missing), "{error}");
    }
    let error = Entry::from_fields([("uid", [0xff])], &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "uid is not UTF-8");
}

#[test]
fn decodes_an_unknown_type() {
    let other = |number, data| Body::Other(Other { number, data });
    assert_eq!(entry("14", "").unwrap().body, other(14, Value::Nil));
    assert_eq!(entry("0", r#"{"a":1}"#).unwrap().body, other(0, map([("a", 1.into())])));
    for data in [Value::Nil, map([("a", 1.into())]), Value::Array(vec![1.into()]), "{".into(), Value::Binary(vec![1])] {
        let message = Message { uid: "1".into(), nsp: "/".into(), body: other(100, data) };
        let limits = Limits::default();
        assert_eq!(Entry::encode(&message, &limits).unwrap().decode(&limits).unwrap(), message);
        assert_eq!(pubsub::decode(&pubsub::encode(&message, &limits).unwrap(), &limits).unwrap(), message);
    }
}

#[test]
fn accepts_missing_optional_fields() {
    let Body::Broadcast(broadcast) =
        entry("3", r#"{"packet":{"type":2,"data":["a"]},"opts":{"rooms":[7]}}"#).unwrap().body
    else {
        panic!("no broadcast")
    };
    assert_eq!(broadcast.opts.rooms, ["7"]);
    assert!(broadcast.opts.except.is_empty() && broadcast.opts.flags.is_empty());
    let Body::BroadcastAck(answer) = entry("12", r#"{"requestId":"1"}"#).unwrap().body else { panic!("no ack") };
    assert_eq!(answer.packet, Value::Nil);
}

#[test]
fn the_last_of_two_fields_with_one_name_counts() {
    let message = entry("11", r#"{"clientCount":1,"requestId":"1","clientCount":2,"requestId":"2"}"#).unwrap();
    assert_eq!(message.body.answers(), Some("2"));
    let Body::BroadcastClientCount(count) = message.body else { panic!("no count") };
    assert_eq!(count.client_count, 2);
}

#[test]
fn bounds_all_lengths() {
    let limits = Limits { message_bytes_max: 60, name_bytes_max: 3, rooms_max: 2, sockets_max: 1 };
    let decode = |kind: &str, data: &str| {
        Entry::from_fields([("uid", "1"), ("nsp", "/"), ("type", kind), ("data", data)], &limits)?.decode(&limits)
    };
    assert!(decode("4", r#"{"opts":{"rooms":["abc"]},"rooms":["a","b"]}"#).is_ok());
    let error = |kind, data: &str| decode(kind, data).unwrap_err().to_string();
    assert_eq!(error("4", r#"{"opts":{"rooms":["abcd"]},"rooms":[]}"#), "rooms has 4 bytes, more than 3");
    assert_eq!(error("4", r#"{"opts":{"rooms":[1234]},"rooms":[]}"#), "rooms has 4 bytes, more than 3");
    assert_eq!(error("4", r#"{"opts":{"rooms":[1,2,3]},"rooms":[]}"#), "rooms has 3 elements, more than 2");
    assert_eq!(error("8", r#"{"requestId":"1","sockets":[0,0]}"#), "sockets has 2 elements, more than 1");
    assert_eq!(error("12", &"A".repeat(61)), "data has 61 bytes, more than 60");
    let error = pubsub::decode(&[0xc0; 61], &limits).unwrap_err();
    assert_eq!(error.to_string(), "message has 61 bytes, more than 60");
}

#[test]
fn does_not_write_what_readers_refuse() {
    let limits = Limits { message_bytes_max: 60, ..Limits::default() };
    let nested = (0..200).fold(Value::Nil, |inner, _| Value::Array(vec![inner]));
    for (data, too_deep) in [(Value::Binary(vec![0; 61]), false), (nested, true)] {
        let message = Message { uid: "1".into(), nsp: "/".into(), body: Body::Other(Other { number: 100, data }) };
        let errors = [Entry::encode(&message, &limits).unwrap_err(), pubsub::encode(&message, &limits).unwrap_err()];
        for error in errors {
            assert_eq!(matches!(error, EncodeError::TooDeep { .. }), too_deep, "{error}");
            assert_eq!(matches!(error, EncodeError::TooLong { max: 60, .. }), !too_deep, "{error}");
        }
    }
}
