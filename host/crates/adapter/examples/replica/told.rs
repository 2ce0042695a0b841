//! What the replica tells by itself, and how it describes its sockets to others.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use socketioxide::SocketIo;
use socketioxide_redis_streams::wire::{Value, value::date};
use socketioxide_redis_streams::{Description, Listener, Namespace, PeerEvent};

use crate::value::to_json;
use crate::{Adapter, Auth, write};

/// Writes a line.
pub(crate) fn line(line: Json) {
    write(&line);
}

/// Tells of peers and of what was missed.
pub(crate) struct Told;

impl Listener for Told {
    fn revision(&self) -> u64 {
        0
    }

    fn peer(&self, event: PeerEvent) {
        match event {
            PeerEvent::Link { up } => line(json!({ "told": "link", "up": up })),
            PeerEvent::Lost { peer, loss } => line(json!({ "told": "lost", "peer": peer, "loss": loss.name() })),
            PeerEvent::Heard { .. } => {}
        }
    }

    fn note(&self, peer: &str, number: u32, data: Value) {
        line(json!({ "told": "note", "peer": peer, "number": number, "data": to_json(&data) }));
    }

    fn missed(&self, broadcasts: Option<u64>) {
        line(json!({ "told": "missed", "broadcasts": broadcasts }));
    }
}

/// Answers for a namespace: what other servers are told of its sockets, and what they get for a `serverSideEmit`.
pub(crate) fn describe(namespace: &Arc<Namespace>, io: SocketIo<Adapter>) {
    let path = namespace.path().to_owned();
    namespace.describe_sockets(move |sid| {
        let socket = io.of(&path).and_then(|of| of.get_socket(sid));
        let Some(socket) = socket else { return Description::default() };
        let parts = socket.req_parts();
        let headers = parts.headers.iter().map(|(name, value)| {
            (Value::from(name.as_str()), Value::from(String::from_utf8_lossy(value.as_bytes()).into_owned()))
        });
        let auth = socket.extensions.get::<Auth>().map_or(Value::Nil, |auth| auth.0);
        let handshake = vec![
            ("headers".into(), Value::Map(headers.collect())),
            ("address".into(), "127.0.0.1".into()),
            ("url".into(), parts.uri.to_string().into()),
            ("query".into(), Value::Map(vec![("EIO".into(), "4".into())])),
            ("auth".into(), auth.clone()),
        ];
        let data = vec![("auth".into(), auth), ("since".into(), date(0)), ("key".into(), Value::Binary(vec![1, 2]))];
        Description { handshake, data: Value::Map(data) }
    });
    let nsp = namespace.path().to_owned();
    namespace.answer_server_side(move |event, args| {
        let shown: Vec<Json> = args.iter().map(to_json).collect();
        line(json!({ "told": "server-side", "nsp": nsp, "event": event, "args": shown }));
        Value::Array(vec!["from rust".into(), Value::Array(args)])
    });
}
