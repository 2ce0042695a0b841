//! The commands that send requests which socketioxide's API does not offer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value as Json, json};
use socketioxide_redis_streams::Namespace;
use socketioxide_redis_streams::wire::{Options, Packet, RemoteSocket, Value};

use crate::fields::{names, text, timeout};
use crate::types::{BegunCommand, Failed, failed};
use crate::value::to_json;

/// The sockets of other servers, or of one.
pub(crate) async fn sockets(namespace: Arc<Namespace>, command: Json) -> Result<Json, Failed> {
    let opts = Options { rooms: names(&command["rooms"]), except: names(&command["except"]), ..Options::everyone() };
    let shown = |sockets: Vec<RemoteSocket>| -> Json {
        let socket = |socket: RemoteSocket| {
            json!({
                "id": socket.id,
                "rooms": socket.rooms,
                "handshake": to_json(&socket.handshake),
                "data": to_json(&socket.data),
            })
        };
        sockets.into_iter().map(socket).collect()
    };
    if let Some(server) = command["server"].as_str() {
        let answer = namespace.fetch_sockets_of(server, opts, timeout(&command)).await?;
        return Ok(answer.map_or(Json::Null, shown));
    }
    let answers = namespace.fetch_sockets(opts, timeout(&command)).await?;
    let given =
        answers.given.into_iter().map(|(server, sockets)| json!({ "server": server, "sockets": shown(sockets) }));
    Ok(json!({ "given": given.collect::<Vec<_>>(), "missing": answers.missing }))
}

/// Sends an event to the other servers themselves.
pub(crate) async fn server_side(
    namespace: Arc<Namespace>,
    command: Json,
    event: String,
    args: Vec<Value>,
) -> Result<Json, Failed> {
    if command["acked"] != true {
        return Ok(json!(namespace.server_side_emit(&event, args)?));
    }
    let answers = namespace.server_side_emit_with_ack(&event, args, timeout(&command)).await?;
    let given = answers.given.iter().map(|(server, answer)| json!({ "server": server, "answer": to_json(answer) }));
    Ok(json!({ "given": given.collect::<Vec<_>>(), "missing": answers.missing }))
}

/// Sends a request to one socket of one server, `count` times at once.
pub(crate) fn request(
    namespace: &Namespace,
    command: &Json,
    event: &str,
    args: &[Value],
) -> Result<BegunCommand, Failed> {
    let (server, socket) = (text(&command["server"]), text(&command["socket"]));
    let within = timeout(command).unwrap_or(Duration::from_secs(5));
    let count = command["count"].as_u64().unwrap_or(1);
    let ask = |_| namespace.request(&server, &socket, Packet::event(event, args.to_vec()), within);
    let requests: Vec<_> = (0..count).map(ask).collect::<Result<_, _>>()?;
    Ok(Box::pin(async move {
        let answers = join_all(requests.into_iter().map(|request| request.answer())).await;
        let shown = |answer: Result<Value, _>| answer.map_or_else(|error| failed(&error), |value| to_json(&value));
        Ok(answers.into_iter().map(shown).collect())
    }))
}
