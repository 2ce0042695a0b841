//! Tests that every recorded message decodes to what Node was asked to send, and that encoding gives Node's own bytes.

use socketioxide_redis_streams::wire::stream::Entry;
use socketioxide_redis_streams::wire::{
    Body, CHANNEL_PREFIX, Channels, FetchSocketsResponse, Limits, Message, RemoteSocket, Value, pubsub, value::date,
};

use crate::corpus::{self, Recorded};
use crate::expected::{self, Ids, map};

/// The answer to a fetch, which is compared field by field: its handshakes are different in each capture.
const FETCH: &str = "fetch-sockets-2";

/// Decoded and written again these do not have Node's bytes: half a surrogate pair became U+FFFD, and the emitter
/// orders the keys of `opts` in another way and gives a namespace that no reader needs.
const NOT_CANONICAL: [&str; 3] = ["broadcast-lone-surrogate-binary", "broadcast-lone-surrogate", "emitter-broadcast"];

#[test]
fn decodes_every_message_as_node_sent_it() {
    let (ids, all) = (ids(), corpus::all());
    for (name, recorded) in all.iter().filter(|(name, _)| name != FETCH) {
        let expected = expected::message(name, &ids).unwrap_or_else(|| panic!("{name} has no expectation"));
        assert_eq!(recorded.decode().unwrap(), expected, "{name}");
    }
}

#[test]
fn writes_the_same_bytes_as_node() {
    let mut different = Vec::new();
    for (name, recorded) in corpus::all() {
        let message = recorded.decode().unwrap();
        let same = match &recorded {
            Recorded::Entry(fields) => {
                let entry = Entry::encode(&message, &Limits::default()).unwrap();
                let written: Vec<_> = entry.fields().map(|(key, value)| (key.to_owned(), value.into_owned())).collect();
                assert_eq!(entry.decode(&Limits::default()).unwrap(), message, "{name}");
                written == *fields
            }
            Recorded::Payload(payload) => {
                let written = pubsub::encode(&message, &Limits::default()).unwrap();
                assert_eq!(pubsub::decode(&written, &Limits::default()).unwrap(), message, "{name}");
                written == *payload
            }
        };
        if !same {
            different.push(name);
        }
    }
    assert_eq!(different, NOT_CANONICAL);
}

#[test]
fn decodes_ids_handshakes_rooms_and_data_of_a_fetch() {
    let [far, far2] = fetched();
    assert_eq!(far.rooms, [far.id.clone(), "r1".into()]);
    assert_eq!(far2.rooms, std::slice::from_ref(&far2.id));
    assert_eq!(far2.data, map([]));
    let key = Value::Binary(vec![1, 2, 3]);
    let data = [("user", "u-1".into()), ("since", date(1_709_209_845_678)), ("key", key), ("gone", Value::Nil)];
    assert_eq!(far.data, map(data));
    let keys = far.handshake.as_map().unwrap().iter().map(|(key, _)| key.as_str().unwrap());
    let named = ["headers", "time", "address", "xdomain", "secure", "issued", "url", "query", "auth"];
    assert_eq!(keys.collect::<Vec<_>>(), named);
    assert!(far.handshake["issued"].is_u64() && far.handshake["time"].is_str());
}

#[test]
fn every_message_is_on_the_medium_and_the_channel_that_its_type_says() {
    for (name, recorded) in corpus::all() {
        let Message { uid, nsp, body } = recorded.decode().unwrap();
        match recorded {
            // The emitter has no channels: also its server-side events are entries.
            Recorded::Entry(_) => assert!(!body.is_ephemeral() || name == "emitter-server-side-emit", "{name}"),
            Recorded::Payload(_) => {
                assert!(body.is_ephemeral(), "{name}");
                let asker = if body.answers().is_some() { "0000000000000001" } else { &uid };
                let Channels { public, private } = Channels::new(CHANNEL_PREFIX, &nsp, asker);
                let channel = if body.answers().is_some() { private } else { public };
                assert_eq!(corpus::channel(&name), channel, "{name}");
            }
        }
    }
}

fn ids() -> Ids {
    let near = decoded("broadcast-from-socket");
    let Body::Broadcast(broadcast) = near else { panic!("no broadcast") };
    let [far, far2] = fetched();
    Ids { near: broadcast.opts.except[0].clone(), far: far.id, far2: far2.id }
}

fn fetched() -> [RemoteSocket; 2] {
    let Body::FetchSocketsResponse(FetchSocketsResponse { request_id, sockets }) = decoded(FETCH) else {
        panic!("no answer to a fetch")
    };
    assert_eq!(request_id, "0000000000000004");
    sockets.try_into().unwrap()
}

fn decoded(name: &str) -> Body {
    let all = corpus::all();
    let (_, recorded) = all.iter().find(|(found, _)| found == name).unwrap();
    recorded.decode().unwrap().body
}
