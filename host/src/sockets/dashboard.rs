//! The namespace `/dashboard`: users who watch the devices of their own and of their organisation.

use std::{future::ready, sync::Arc};

use serde::Deserialize;
use socketioxide::{extract::TryData, handler::ConnectHandler};

use crate::{
    devices::{DASHBOARD_NSP, Devices, Owners},
    edge::{
        identity::HandshakeRefusal,
        socketio::{SocketIo, SocketRef},
    },
};

/// The `auth` payload; a token of any other type proves nothing.
#[derive(Default, Deserialize)]
struct Handshake {
    #[serde(default)]
    token: serde_json::Value,
}

/// Mounts the namespace.
pub(crate) fn mount(devices: &Arc<Devices>, io: &SocketIo) {
    let verifying = devices.clone();
    let admit = move |socket: SocketRef, TryData(handshake): TryData<Handshake>| {
        let token = handshake.unwrap_or_default().token;
        let claims = match token.as_str().filter(|token| !token.is_empty()) {
            None => Err(HandshakeRefusal::MissingToken),
            Some(token) => verifying.verify_user(token).map_err(HandshakeRefusal::InvalidToken),
        };
        ready(claims.map(|claims| {
            let owners = Owners::of(&claims);
            socket.join(owners.rooms());
            socket.extensions.insert(owners);
        }))
    };
    let devices = devices.clone();
    let connected = move |socket: SocketRef| {
        if let Some(owners) = socket.extensions.get::<Owners>() {
            tokio::spawn(devices.clone().tell_all(socket, owners));
        }
        ready(())
    };
    io.ns(DASHBOARD_NSP, connected.with(admit));
}
