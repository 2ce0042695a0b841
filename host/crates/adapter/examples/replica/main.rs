//! A replica that is driven by lines of JSON, for `tests/peers/node/conformance.test.mjs`: a socketioxide server with this
//! crate's adapter on a free port, the namespaces `/`, `/second` and `/rust`, whose sockets join the room of their own id.
//!
//! REDIS_URL says where Redis is; STREAM_NAME and CHANNEL_PREFIX replace the default names, and with SHARDED the channels are
//! sharded ones. A line on stdin is a command
//! `{"id", "do", ...}` and is answered by a line `{"id", "ok"}` or `{"id", "error"}` ([`command`]); commands are begun in order
//! and answered when they are done. What happens by itself is a line `{"told", ...}`. The first line is `{"listening", "uid"}`.

mod command;
mod events;
mod fields;
mod lines;
mod requests;
mod types;
mod value;

use std::env;
use std::error::Error;
use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::{Value as Json, json};
use socketioxide::SocketIo;
use socketioxide::extract::{SocketRef, TryData};
use socketioxide_redis_streams::transport::redis::{Redis, RedisOptions};
use socketioxide_redis_streams::wire::Value;
use socketioxide_redis_streams::{Cluster, Settings};
use tokio::net::TcpListener;

use crate::command::Replica;
use crate::events::EventWriter;
use crate::types::{Adapter, Auth};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let metrics = PrometheusBuilder::new().install_recorder()?;
    let options = RedisOptions { sharded: env::var_os("SHARDED").is_some(), ..RedisOptions::default() };
    let redis = Redis::start(&env::var("REDIS_URL")?, options)?;
    let cluster = Cluster::new(Arc::new(redis), settings());
    cluster.listen(Arc::new(EventWriter));
    cluster.start();
    let (layer, io) = SocketIo::builder().max_buffer_size(8192).with_adapter::<Adapter>(cluster.clone()).build_layer();
    for path in ["/", "/second", "/rust"] {
        io.ns(path, async |socket: SocketRef<Adapter>, TryData(auth): TryData<Value>| {
            socket.join(socket.id);
            socket.extensions.insert(Auth(auth.unwrap_or(Value::Nil)));
            lines::write(&json!({ "told": "connected", "nsp": socket.ns(), "socket": socket.id }));
        });
        events::describe(&cluster.namespace(path), io.clone());
    }

    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    lines::write(&json!({ "listening": format!("http://{address}"), "uid": cluster.uid() }));
    let server = tokio::spawn(axum::serve(listener, axum::Router::new().layer(layer)).into_future());

    let replica = Replica { io, cluster, metrics };
    let mut commands = lines::read();
    while let Some(line) = commands.recv().await {
        let command: Json = serde_json::from_str(&line)?;
        let id = command["id"].clone();
        if command["do"] == "close" {
            replica.cluster.close().await;
            replica.io.close().await;
            lines::write(&json!({ "id": id, "ok": null }));
            break;
        }
        let begun = replica.begin(command);
        tokio::spawn(async move {
            lines::write(&match begun.await {
                Ok(answer) => json!({ "id": id, "ok": answer }),
                Err(error) => json!({ "id": id, "error": error.0 }),
            });
        });
    }
    server.abort();
    Ok(())
}

fn settings() -> Settings {
    let default = Settings::default();
    Settings {
        stream_name: env::var("STREAM_NAME").unwrap_or(default.stream_name),
        channel_prefix: env::var("CHANNEL_PREFIX").unwrap_or(default.channel_prefix),
        ..Settings::default()
    }
}
