//! Reports events of the cluster, and describes the sockets of the replica to other servers.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use socketioxide::SocketIo;
use socketioxide_redis_streams::wire::{Value, value::date};
use socketioxide_redis_streams::{Description, Listener, Namespace, PeerEvent};

use crate::lines::write;
use crate::types::{Adapter, Auth};
use crate::value::to_json;

/// Writes a line for each change of a peer, each note, and each loss.
pub(crate) struct EventWriter;

impl Listener for EventWriter {
    fn revision(&self) -> u64 {
        0
    }

    fn peer(&self, event: PeerEvent) {
        match event {
            PeerEvent::Link { up } => write(&json!({ "told": "link", "up": up })),
            PeerEvent::Lost { peer, loss } => write(&json!({ "told": "lost", "peer": peer, "loss": loss.name() })),
            PeerEvent::Heard { .. } => {}
        }
    }

    fn note(&self, peer: &str, number: u32, data: Value) {
        write(&json!({ "told": "note", "peer": peer, "number": number, "data": to_json(&data) }));
    }

    fn missed(&self, broadcasts: Option<u64>) {
        write(&json!({ "told": "missed", "broadcasts": broadcasts }));
    }
}

/// Sets how a namespace describes its sockets to other servers, and how it answers a `serverSideEmit`.
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
        write(&json!({ "told": "server-side", "nsp": nsp, "event": event, "args": shown }));
        Value::Array(vec!["from rust".into(), Value::Array(args)])
    });
}
