//! Carries out the commands. Their recipients: `nsp`, `rooms` (none is everyone), `except`, `from` (a local socket that is left out),
//! `local`, `volatile`, `timeout` in ms.
//!
//! | `do` | beside that | answer |
//! |---|---|---|
//! | `emit` | `event`, `args`, `count` (that often, its number before the arguments) | |
//! | `join`, `leave` | `names` | |
//! | `disconnect` | | |
//! | `ack` | `event`, `args` | each ack, or `{"error"}` |
//! | `first-ack` | `event`, `args` | the first ack |
//! | `fetch` | | `{id, server}` of each socket that socketioxide's API shows |
//! | `sockets` | `server` (that one alone) | `{given: [{server, sockets}], missing}` |
//! | `server-side` | `event`, `args`, `acked` | `{given: [{server, answer}], missing}` |
//! | `request` | `server`, `socket`, `event`, `args`, `count` | that many answers or `{"error"}` |
//! | `servers`, `standing`, `metrics` | | |

use std::str::FromStr;

use futures_util::StreamExt;
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value as Json, json};
use socketioxide::operators::BroadcastOperators;
use socketioxide::{SocketIo, socket::Sid};
use socketioxide_redis_streams::wire::Value;
use socketioxide_redis_streams::{Args, Cluster};

use crate::fields::{items, names, text, timeout};
use crate::requests;
use crate::types::{Adapter, BegunCommand, Failed, failed};
use crate::value::{from_json, to_json};

/// What the commands use.
pub(crate) struct Replica {
    pub(crate) io: SocketIo<Adapter>,
    pub(crate) cluster: Cluster,
    pub(crate) metrics: PrometheusHandle,
}

impl Replica {
    /// Begins a command. Its broadcasts and requests are in the outbox when this returns.
    pub(crate) fn begin(&self, command: Json) -> BegunCommand {
        match self.try_begin(command) {
            Ok(begun) => begun,
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn try_begin(&self, command: Json) -> Result<BegunCommand, Failed> {
        let nsp = command["nsp"].as_str().unwrap_or("/").to_owned();
        let selected = self.selected(&nsp, &command)?;
        let namespace = self.cluster.namespace(&nsp);
        let event = text(&command["event"]);
        let args: Vec<Value> = items(&command["args"]).map(from_json).collect();
        Ok(match command["do"].as_str().unwrap_or_default() {
            "emit" => return Ok(self.emit(&nsp, command, &event, args)),
            "join" => Box::pin(async move { Ok(json!(selected.join(names(&command["names"])).await?)) }),
            "leave" => Box::pin(async move { Ok(json!(selected.leave(names(&command["names"])).await?)) }),
            "disconnect" => Box::pin(async move { Ok(json!(selected.disconnect().await?)) }),
            "ack" => Box::pin(async move {
                let acks = selected.emit_with_ack::<_, Args>(event, &Args(args)).await?;
                let shown = acks.map(|(_, ack)| ack.map_or_else(|error| failed(&error), first));
                Ok(shown.collect::<Vec<_>>().await.into())
            }),
            "first-ack" => {
                Box::pin(async move { Ok(first(selected.emit_with_ack::<_, Args>(event, &Args(args)).await?.await?)) })
            }
            "fetch" => Box::pin(async move {
                let sockets = selected.fetch_sockets().await?;
                let data = sockets.into_iter().map(|socket| socket.into_data());
                Ok(data.map(|data| json!({ "id": data.id, "server": data.server_id })).collect())
            }),
            "sockets" => Box::pin(requests::sockets(namespace, command)),
            "server-side" => Box::pin(requests::server_side(namespace, command, event, args)),
            "request" => return requests::request(&namespace, &command, &event, &args),
            "servers" => Box::pin(async move { Ok(json!(namespace.other_servers().await? + 1)) }),
            "standing" => {
                let standing = self.cluster.standing();
                let foreign = standing.foreign;
                let shown = json!({ "linked": standing.linked, "complete": standing.complete, "peers": standing.peers, "foreign": foreign });
                Box::pin(async move { Ok(shown) })
            }
            "metrics" => {
                let metrics = self.metrics.render();
                Box::pin(async move { Ok(metrics.into()) })
            }
            other => return Err(Failed(format!("no such command: {other:?}"))),
        })
    }

    fn emit(&self, nsp: &str, command: Json, event: &str, args: Vec<Value>) -> BegunCommand {
        let count = command["count"].as_u64();
        let packets = (0..count.unwrap_or(1)).map(|number| match count {
            Some(_) => Args([vec![number.into()], args.clone()].concat()),
            None => Args(args.clone()),
        });
        let mut begun = Vec::new();
        for packet in packets {
            let Ok(selected) = self.selected(nsp, &command) else { continue };
            // The first poll puts it into the outbox.
            begun.extend(futures_util::FutureExt::now_or_never(selected.emit(event, &packet)));
        }
        Box::pin(async move {
            begun.into_iter().collect::<Result<Vec<()>, _>>()?;
            Ok(Json::Null)
        })
    }

    fn selected(&self, nsp: &str, command: &Json) -> Result<BroadcastOperators<Adapter>, Failed> {
        let of = self.io.of(nsp).ok_or_else(|| Failed("no such namespace".to_owned()))?;
        let mut selected = match command["from"].as_str() {
            Some(sid) => {
                of.get_socket(Sid::from_str(sid)?).ok_or_else(|| Failed("no such socket".to_owned()))?.broadcast()
            }
            None => of.broadcast(),
        };
        selected = selected.to(names(&command["rooms"])).except(names(&command["except"]));
        if command["local"] == true {
            selected = selected.local();
        }
        if command["volatile"] == true {
            selected = selected.volatile();
        }
        Ok(match timeout(command) {
            Some(timeout) => selected.timeout(timeout),
            None => selected,
        })
    }
}

fn first(args: Args) -> Json {
    args.into_first().map_or(Json::Null, |arg| to_json(&arg))
}
