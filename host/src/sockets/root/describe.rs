//! How a socket is described to other servers, which may be Node's and read its handshake.

use socketioxide::socket::Sid;
use socketioxide_redis_streams::Description;

use super::connection::Connection;
use crate::edge::socketio::SocketIo;
use std::sync::Arc;

/// Headers that hold what a client proves itself by: they stay here.
const SECRET: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// The socket's handshake without its token, and as its data who it is.
pub(super) fn describe(io: &SocketIo, socket: Sid) -> Description {
    let Some(socket) = io.of("/").and_then(|root| root.get_socket(socket)) else { return Description::default() };
    let request = socket.req_parts();
    let headers = request.headers.iter().filter(|(name, _)| !SECRET.contains(&name.as_str()));
    let headers = headers.filter_map(|(name, value)| Some((name.as_str().into(), value.to_str().ok()?.into())));
    let query = request.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let query = query.map(|(name, value)| (name.into(), value.into()));
    let url = request.uri.path_and_query().map_or("/", |url| url.as_str());
    let connection = socket.extensions.get::<Arc<Connection>>();
    let who = connection.map(|connection| connection.who()).unwrap_or_default();
    Description {
        handshake: vec![
            ("headers".into(), rmpv::Value::Map(headers.collect())),
            ("xdomain".into(), request.headers.contains_key("origin").into()),
            ("url".into(), url.into()),
            ("query".into(), rmpv::Value::Map(query.collect())),
            ("auth".into(), rmpv::Value::Map(who.clone())),
        ],
        data: rmpv::Value::Map(who),
    }
}
