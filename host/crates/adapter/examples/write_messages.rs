//! Prints messages as this crate writes them, one JSON object a line, for `tests/peers/node/read.test.mjs`, which hands
//! them to Node's own adapter: `{name, fields}` is an entry of the stream, `{name, payload}` the base64 of a PUB/SUB message.

use std::error::Error;
use std::io::Write;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, json};
use socketioxide_redis_streams::wire::stream::Entry;
use socketioxide_redis_streams::wire::{
    Answer, Body, Broadcast, ClientCount, DisconnectSockets, FetchSockets, FetchSocketsResponse, Flags, Limits,
    Message, Options, Other, Packet, RemoteSocket, RoomsChange, ServerSideEmit, Value, pubsub, value::date,
};

/// Our server's id, and the id of every request in either direction.
const UID: &str = "00000000000000aa";
const REQUEST: &str = "00000000000000ff";

fn main() -> Result<(), Box<dyn Error>> {
    let limits = Limits::default();
    for (name, body) in entries() {
        let entry = Entry::encode(&message(body), &limits)?;
        let fields: Map<_, _> = entry.fields().map(|(key, value)| (key.to_owned(), json!(value))).collect();
        writeln!(std::io::stdout(), "{}", json!({ "name": name, "fields": fields }))?;
    }
    for (name, body) in requests().into_iter().chain(answers()) {
        let payload = BASE64_STANDARD.encode(pubsub::encode(&message(body), &limits)?);
        writeln!(std::io::stdout(), "{}", json!({ "name": name, "payload": payload }))?;
    }
    Ok(())
}

fn message(body: Body) -> Message {
    Message { uid: UID.into(), nsp: "/".into(), body }
}

fn entries() -> Vec<(&'static str, Body)> {
    let in_room = Options {
        except: vec!["nobody".into()],
        flags: Flags::default().with("volatile", true),
        ..Options::room("rust")
    };
    let change = RoomsChange { opts: Options::everyone(), rooms: vec!["rust".into()] };
    let bytes = Value::Binary(vec![0, 1, 254, 255]);
    let whole = [Value::F64(3.0), Value::F64(0.5), "é 😀".into(), Value::Nil, date(1_709_209_845_678)];
    let other = Body::Other(Other { number: 101, data: Value::Map(vec![("a".into(), 1.into())]) });
    vec![
        ("unknown-entry", other),
        ("text", emit(Options::everyone(), "text", whole.to_vec())),
        ("binary", emit(Options::everyone(), "binary", [vec![bytes], whole.to_vec()].concat())),
        ("join", Body::SocketsJoin(change.clone())),
        ("to-room", emit(in_room, "to-room", vec![])),
        ("leave", Body::SocketsLeave(change)),
        ("disconnect", Body::DisconnectSockets(DisconnectSockets { opts: Options::everyone(), close: true })),
    ]
}

fn requests() -> Vec<(&'static str, Body)> {
    let flags = Flags::default().with("timeout", 2000);
    let ask = Broadcast {
        packet: Packet::event("ask", [Value::Binary(vec![7])]),
        request_id: Some(REQUEST.into()),
        opts: Options { flags, ..Options::everyone() },
    };
    let fetch = FetchSockets { opts: Options::everyone(), request_id: REQUEST.into() };
    let sum = |request_id| ServerSideEmit { request_id, packet: vec!["sum".into(), 1.into(), 2.into()] };
    vec![
        ("unknown-request", Body::Other(Other { number: 100, data: Value::Nil })),
        ("ask", Body::Broadcast(ask)),
        ("fetch", Body::FetchSockets(fetch)),
        ("server-side-emit", Body::ServerSideEmit(sum(None))),
        ("server-side-emit-ack", Body::ServerSideEmit(sum(Some(REQUEST.into())))),
    ]
}

fn answers() -> Vec<(&'static str, Body)> {
    let socket = RemoteSocket {
        id: "AAAAAAAAAAAAAAAAAAAAAA".into(),
        handshake: Value::Map(vec![("url".into(), "/socket.io/".into()), ("auth".into(), Value::Map(vec![]))]),
        rooms: vec!["AAAAAAAAAAAAAAAAAAAAAA".into(), "rust".into()],
        data: Value::Map(vec![("since".into(), date(0)), ("key".into(), Value::Binary(vec![1, 2]))]),
    };
    let answer = |packet: Value| Answer { request_id: REQUEST.into(), packet };
    let sockets = FetchSocketsResponse { request_id: REQUEST.into(), sockets: vec![socket] };
    let count = ClientCount { request_id: REQUEST.into(), client_count: 1 };
    vec![
        ("fetched", Body::FetchSocketsResponse(sockets)),
        ("server-side-ack", Body::ServerSideEmitResponse(answer(42.into()))),
        ("client-count", Body::BroadcastClientCount(count)),
        ("client-ack", Body::BroadcastAck(answer("from rust".into()))),
    ]
}

fn emit(opts: Options, name: &str, args: Vec<Value>) -> Body {
    Body::Broadcast(Broadcast { packet: Packet::event(name, args), request_id: None, opts })
}
