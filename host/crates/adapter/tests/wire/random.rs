//! Tests that random messages of every type survive both media.

use fastrand::Rng;
use socketioxide_redis_streams::wire::stream::Entry;
use socketioxide_redis_streams::wire::{
    Answer, Body, Broadcast, ClientCount, DisconnectSockets, FetchSockets, FetchSocketsResponse, Flags, Limits,
    Message, Options, Other, Packet, RemoteSocket, RoomsChange, ServerSideEmit, Value, pubsub, value,
};

#[test]
fn messages_survive_both_media() {
    let limits = Limits::default();
    for seed in 0..5000 {
        let message = message(&mut Rng::with_seed(seed));
        let payload = pubsub::encode(&message, &limits).unwrap();
        assert_eq!(pubsub::decode(&payload, &limits).unwrap(), message, "seed {seed}");
        let entry = Entry::encode(&message, &limits).unwrap();
        let fields: Vec<_> = entry.fields().collect();
        let read = Entry::from_fields(fields.iter().map(|(key, value)| (key, value.as_bytes())), &limits).unwrap();
        assert_eq!(read, entry, "seed {seed}");
        // Without binary the entry is JSON, which has the text of a date in its place.
        let is_json = entry.data.as_ref().is_some_and(|data| data.starts_with('{'));
        let expected = if is_json { with_dates_as_text(message) } else { message };
        assert_eq!(read.decode(&limits).unwrap(), expected, "seed {seed}");
    }
}

#[test]
fn a_number_keeps_its_last_digit_as_text() {
    let limits = Limits::default();
    for number in [9.007199254741112e30, 0.009679883051119203, -0.12247515296789901, 5e-324, f64::MAX] {
        let body = Body::ServerSideEmit(ServerSideEmit { request_id: None, packet: vec![number.into()] });
        let message = Message { uid: "1".into(), nsp: "/".into(), body };
        let entry = Entry::encode(&message, &limits).unwrap();
        assert!(entry.data.as_ref().unwrap().starts_with('{'));
        assert_eq!(entry.decode(&limits).unwrap(), message);
    }
}

fn message(rng: &mut Rng) -> Message {
    let body = match rng.u8(1..=14) {
        1 => Body::InitialHeartbeat,
        2 => Body::Heartbeat,
        3 => Body::Broadcast(Broadcast {
            packet: Packet { packet_type: rng.u8(..), data: values(rng) },
            request_id: rng.bool().then(|| name(rng)),
            opts: options(rng),
        }),
        4 => Body::SocketsJoin(RoomsChange { opts: options(rng), rooms: names(rng) }),
        5 => Body::SocketsLeave(RoomsChange { opts: options(rng), rooms: names(rng) }),
        6 => Body::DisconnectSockets(DisconnectSockets { opts: options(rng), close: rng.bool() }),
        7 => Body::FetchSockets(FetchSockets { opts: options(rng), request_id: name(rng) }),
        8 => {
            let socket = |rng: &mut Rng| RemoteSocket {
                id: name(rng),
                handshake: any(rng, 3),
                rooms: names(rng),
                data: any(rng, 3),
            };
            let sockets = (0..rng.usize(..4)).map(|_| socket(rng)).collect();
            Body::FetchSocketsResponse(FetchSocketsResponse { request_id: name(rng), sockets })
        }
        9 => Body::ServerSideEmit(ServerSideEmit { request_id: rng.bool().then(|| name(rng)), packet: values(rng) }),
        10 => Body::ServerSideEmitResponse(Answer { request_id: name(rng), packet: any(rng, 4) }),
        11 => Body::BroadcastClientCount(ClientCount { request_id: name(rng), client_count: rng.u64(..) }),
        12 => Body::BroadcastAck(Answer { request_id: name(rng), packet: any(rng, 4) }),
        13 => Body::AdapterClose,
        _ => Body::Other(Other { number: rng.u32(14..), data: any(rng, 4) }),
    };
    Message { uid: name(rng), nsp: name(rng), body }
}

fn options(rng: &mut Rng) -> Options {
    let flags = Flags::default().with("volatile", rng.bool()).with("timeout", rng.u32(..));
    Options { rooms: names(rng), except: names(rng), flags: if rng.bool() { flags } else { Flags::default() } }
}

fn values(rng: &mut Rng) -> Vec<Value> {
    (0..rng.usize(..5)).map(|_| any(rng, 4)).collect()
}

fn any(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(..if depth == 0 { 8 } else { 10 }) {
        0 => Value::Nil,
        1 => rng.bool().into(),
        2 => (rng.u64(..) >> rng.u8(..64)).into(),
        3 => (rng.i64(i64::MIN..0) >> rng.u8(..64)).into(),
        4 => fraction(rng).into(),
        5 => name(rng).into(),
        6 => Value::Binary((0..rng.usize(..40)).map(|_| rng.u8(..)).collect()),
        7 => value::date(rng.i64(-8_640_000_000_000_000..8_640_000_000_000_000)),
        8 => Value::Array((0..rng.usize(..5)).map(|_| any(rng, depth - 1)).collect()),
        _ => Value::Map((0..rng.usize(..20)).map(|_| (name(rng).into(), any(rng, depth - 1))).collect()),
    }
}

/// Of any size and with all its digits, but never whole: a whole number is read back as an integer.
fn fraction(rng: &mut Rng) -> f64 {
    let number = if rng.bool() { rng.f64() } else { f64::from_bits(rng.u64(..)) };
    if number.is_finite() && number.fract() != 0.0 { number } else { 0.25 }
}

fn names(rng: &mut Rng) -> Vec<String> {
    (0..rng.usize(..4)).map(|_| name(rng)).collect()
}

fn name(rng: &mut Rng) -> String {
    (0..rng.usize(..40)).map(|_| rng.char(..)).collect()
}

fn with_dates_as_text(mut message: Message) -> Message {
    match &mut message.body {
        Body::Broadcast(broadcast) => broadcast.packet.data.iter_mut().for_each(value::dates_to_text),
        Body::ServerSideEmit(emit) => emit.packet.iter_mut().for_each(value::dates_to_text),
        Body::ServerSideEmitResponse(answer) | Body::BroadcastAck(answer) => value::dates_to_text(&mut answer.packet),
        Body::FetchSocketsResponse(response) => response.sockets.iter_mut().for_each(|socket| {
            value::dates_to_text(&mut socket.handshake);
            value::dates_to_text(&mut socket.data);
        }),
        Body::Other(other) => value::dates_to_text(&mut other.data),
        _ => {}
    }
    message
}
