//! The expected content of each recorded message: what the capture script asked Node to send.

use socketioxide_redis_streams::wire::{
    Answer, Body, Broadcast, ClientCount, DisconnectSockets, EMITTER_UID, FetchSockets, FetchSocketsResponse, Flags,
    Message, Options, Packet, RoomsChange, ServerSideEmit, Value, value::date,
};

const LEAP_DAY_MS: i64 = 1_709_209_845_678;

/// The message of a recorded file. Socket ids are Node's choice and are given: `far` and `far2` are on the second
/// server, `near` is on the first.
pub(crate) fn message(name: &str, ids: &Ids) -> Option<Message> {
    // Of a request and its answers, the first is the asking server's and all the others are the other one's.
    let is_answer =
        name.rsplit_once('-').and_then(|(_, number)| number.parse().ok()).is_some_and(|number: u32| number > 1);
    let (uid, nsp) = match name {
        "emitter-broadcast" => (EMITTER_UID, "/admin"),
        "emitter-sockets-join" | "emitter-server-side-emit" => (EMITTER_UID, "/"),
        "broadcast-custom-namespace" => ("0000000000000003", "/admin"),
        _ if is_answer => ("0000000000000002", "/"),
        _ => ("0000000000000001", "/"),
    };
    let body = on_stream(name, ids).or_else(|| request(name, ids)).or_else(|| answer(name))?;
    Some(Message { uid: uid.into(), nsp: nsp.into(), body })
}

/// The ids of the capture's three sockets.
pub(crate) struct Ids {
    pub(crate) near: String,
    pub(crate) far: String,
    pub(crate) far2: String,
}

fn on_stream(name: &str, ids: &Ids) -> Option<Body> {
    let everyone = Options::everyone;
    Some(match name {
        "broadcast-all" => emit(everyone(), "hello", vec![map([("a", 1.into())]), "x".into()]),
        "broadcast-rooms-except" => emit(opts(&["r1", "r2"], &["r3"]), "hello", vec![]),
        "broadcast-volatile-compress" => {
            let flags = Flags::default().with("volatile", true).with("compress", false);
            emit(Options { flags, ..everyone() }, "tick", vec![1.into()])
        }
        "broadcast-from-socket" => emit(opts(&[], &[&ids.near]), "from", vec!["me".into()]),
        "broadcast-values" => emit(everyone(), "values", values(2_u64.pow(53).into())),
        "broadcast-values-binary" => {
            let args = [Value::Binary(vec![])].into_iter().chain(values(Value::F64(2_f64.powi(53)))).collect();
            emit(everyone(), "values", args)
        }
        "broadcast-date" => {
            let text = || Value::from("2024-02-29T12:30:45.678Z");
            emit(everyone(), "at", vec![text(), Value::Nil, map([("at", text())])])
        }
        "broadcast-binary-dates" => {
            let dates = [LEAP_DAY_MS, 1000, -1].map(date);
            let args = [Value::Binary(vec![0, 1, 254, 255])].into_iter().chain(dates);
            emit(everyone(), "at", args.chain([Value::Nil, map([("gone", Value::Nil)])]).collect())
        }
        "broadcast-binary-long" => {
            let texts = ["s".repeat(40).into(), "t".repeat(300).into(), Value::Array(vec![1.into(); 20])];
            emit(opts(&["r1"], &[]), "blob", [Value::Binary(vec![7; 300])].into_iter().chain(texts).collect())
        }
        "broadcast-lone-surrogate" => emit(everyone(), "cut", vec!["\u{fffd}".into(), "ok\\ud83d".into()]),
        "broadcast-lone-surrogate-binary" => {
            emit(everyone(), "cut", vec!["\u{fffd}\u{fffd}\u{fffd}".into(), Value::Binary(vec![1])])
        }
        "broadcast-custom-namespace" => emit(everyone(), "hello", vec!["admins".into()]),
        "local-broadcast-is-not-published" => emit(everyone(), "everywhere", vec![]),
        "sockets-join" => Body::SocketsJoin(RoomsChange { opts: opts(&[&ids.far], &[]), rooms: names(&["r1", "r2"]) }),
        "sockets-leave" => Body::SocketsLeave(RoomsChange { opts: opts(&["r2"], &["r9"]), rooms: names(&["r2"]) }),
        "disconnect-sockets" => {
            Body::DisconnectSockets(DisconnectSockets { opts: opts(&[&ids.far2], &[]), close: false })
        }
        "disconnect-sockets-close" => {
            Body::DisconnectSockets(DisconnectSockets { opts: opts(&[&ids.far], &[]), close: true })
        }
        "emitter-broadcast" => {
            let flags = Flags::default().with("volatile", true);
            emit(Options { flags, ..opts(&["r1"], &["r2"]) }, "hello", vec![1.into()])
        }
        "emitter-sockets-join" => Body::SocketsJoin(RoomsChange { opts: opts(&["r1"], &[]), rooms: names(&["r2"]) }),
        "emitter-server-side-emit" => server_side_emit(None, "sum", vec![1.into(), 2.into()]),
        _ => return None,
    })
}

fn request(name: &str, ids: &Ids) -> Option<Body> {
    let timeout = |opts: Options, ms: u64| Options { flags: opts.flags.clone().with("timeout", ms), ..opts };
    let far = || opts(&[&ids.far], &[]);
    Some(match name {
        "fetch-sockets-1" => Body::FetchSockets(FetchSockets { opts: Options::everyone(), request_id: id(4) }),
        "fetch-sockets-nobody-1" => {
            Body::FetchSockets(FetchSockets { opts: timeout(Options::room("nobody"), 700), request_id: id(5) })
        }
        "server-side-emit" => server_side_emit(None, "sum", vec![1.into(), "two".into()]),
        "server-side-emit-ack-1" => server_side_emit(Some(6), "sum", vec![1.into(), 2.into()]),
        "server-side-emit-ack-binary-1" => server_side_emit(Some(7), "blob", vec![]),
        "server-side-emit-ack-nothing-1" => server_side_emit(Some(8), "quiet", vec![]),
        "broadcast-ack-nobody-1" => ask(9, timeout(Options::room("nobody"), 300), "ask", vec![1.into()]),
        "broadcast-ack-one-1" => ask(10, timeout(far(), 2000), "ask", vec!["q".into()]),
        "broadcast-ack-several-1" => ask(11, timeout(Options::everyone(), 2000), "ask", vec!["all".into()]),
        "broadcast-ack-binary-1" => ask(12, timeout(far(), 2000), "ask-binary", vec![Value::Binary(vec![9, 8])]),
        "broadcast-ack-nothing-1" => ask(13, timeout(far(), 2000), "ask-nothing", vec![]),
        "remote-socket-ack-1" => {
            let flags = Flags::default().with("expectSingleResponse", true);
            ask(15, timeout(Options { flags, ..far() }, 2000), "ask", vec!["one".into()])
        }
        _ => return None,
    })
}

fn answer(name: &str) -> Option<Body> {
    let answered = |id_, packet| Answer { request_id: id(id_), packet };
    let count = |id_, client_count| Body::BroadcastClientCount(ClientCount { request_id: id(id_), client_count });
    let heard = |what: &str| map([("heard", what.into())]);
    Some(match name {
        "fetch-sockets-nobody-2" => {
            Body::FetchSocketsResponse(FetchSocketsResponse { request_id: id(5), sockets: vec![] })
        }
        "server-side-emit-ack-2" => Body::ServerSideEmitResponse(answered(6, 3.into())),
        "server-side-emit-ack-binary-2" => {
            let packet = map([("at", date(0)), ("bytes", Value::Binary(b"hi".to_vec()))]);
            Body::ServerSideEmitResponse(answered(7, packet))
        }
        "server-side-emit-ack-nothing-2" => Body::ServerSideEmitResponse(answered(8, Value::Nil)),
        "broadcast-ack-nobody-2" => count(9, 0),
        "broadcast-ack-one-2" => count(10, 1),
        "broadcast-ack-one-3" => Body::BroadcastAck(answered(10, heard("q"))),
        "broadcast-ack-several-2" => count(11, 2),
        "broadcast-ack-several-3" | "broadcast-ack-several-4" => Body::BroadcastAck(answered(11, heard("all"))),
        "broadcast-ack-binary-2" => count(12, 1),
        "broadcast-ack-binary-3" => Body::BroadcastAck(answered(12, Value::Binary(vec![0, 255, 7]))),
        "broadcast-ack-nothing-2" => count(13, 1),
        "broadcast-ack-nothing-3" => Body::BroadcastAck(answered(13, Value::Nil)),
        "remote-socket-ack-2" => count(15, 1),
        "remote-socket-ack-3" => Body::BroadcastAck(answered(15, heard("one"))),
        _ => return None,
    })
}

/// `2 ** 53` is beyond JavaScript's safe integers: its msgpack writes it as a float, its JSON by its digits.
fn values(two_pow_53: Value) -> Vec<Value> {
    let nested = Value::Array(vec![1.into(), Value::Array(vec![2.into(), Value::Array(vec![3.into()])])]);
    let numbers = vec![Value::Nil, true.into(), (-1).into(), 200.into(), (-40_000).into(), 5_000_000_000_i64.into()];
    let more = vec![(-5_000_000_000_i64).into(), two_pow_53, 0.1.into(), (-2.5).into(), "".into()];
    let rest = vec!["é ☃ 😀 \u{1} \"\\/".into(), Value::Array(vec![]), map([]), map([("n", map([("m", nested)]))])];
    [numbers, more, rest].concat()
}

fn emit(opts: Options, name: &str, args: Vec<Value>) -> Body {
    Body::Broadcast(Broadcast { packet: Packet::event(name, args), request_id: None, opts })
}

fn ask(request: u64, opts: Options, name: &str, args: Vec<Value>) -> Body {
    Body::Broadcast(Broadcast { packet: Packet::event(name, args), request_id: Some(id(request)), opts })
}

fn server_side_emit(request: Option<u64>, name: &str, args: Vec<Value>) -> Body {
    let packet = [vec![name.into()], args].concat();
    Body::ServerSideEmit(ServerSideEmit { request_id: request.map(id), packet })
}

fn opts(rooms: &[&str], except: &[&str]) -> Options {
    Options { rooms: names(rooms), except: names(except), flags: Flags::default() }
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|&name| name.to_owned()).collect()
}

pub(crate) fn map<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::Map(pairs.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

fn id(number: u64) -> String {
    format!("{number:016x}")
}
