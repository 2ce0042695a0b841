//! What devices do: connect, register, give heartbeats, disconnect.

use std::sync::Arc;

use pointwork_core::{SocketId, decisions::Departure, devices::Registration, time::span_ms};

use super::state::{DeviceClient, Devices};
use crate::edge::{
    auth::{AuthError, TokenClaims},
    disconnect::close_socket,
    socketio::{SocketRef, socket_id},
    transport::silence,
};

impl Devices {
    /// A socket of the namespace is connected.
    pub(crate) fn connect(self: &Arc<Self>, socket: &SocketRef) {
        let id = socket_id(socket.id);
        let connected = self.drive(|state, at| {
            let client = DeviceClient { socket: socket.clone(), claimed: None, token: None };
            state.sessions.handle_open(id, at).map(|()| state.clients.insert(id, client))
        });
        if connected.is_err() {
            metrics::counter!("pointwork_device_sockets_refused_total").increment(1);
            close_socket(socket.clone());
        }
    }

    /// `device:register`, with the device token if the device brought one.
    pub(crate) fn register(self: &Arc<Self>, socket: SocketId, registration: Registration, token: Option<String>) {
        self.drive(|state, at| {
            if let Some(client) = state.clients.get_mut(&socket) {
                client.claimed.clone_from(&registration.device);
                client.token = token;
            }
            state.sessions.handle_register(socket, registration, at);
        });
    }

    /// `device:heartbeat`.
    pub(crate) fn heartbeat(self: &Arc<Self>, socket: SocketId, device: &Arc<str>) {
        self.drive(|state, at| state.sessions.handle_heartbeat(socket, device, at));
    }

    /// Any other event of a device.
    pub(crate) fn touch(self: &Arc<Self>, socket: SocketId) {
        self.drive(|state, at| state.sessions.handle_packet(socket, at));
    }

    /// The socket is gone.
    pub(crate) fn disconnect(self: &Arc<Self>, socket: SocketId, departure: Departure) {
        self.drive(|state, at| {
            if let Some(client) = state.clients.remove(&socket) {
                if let Some(silent) = silence(&client.socket) {
                    state.sessions.handle_heard(socket, span_ms(silent), at);
                }
                state.sessions.handle_close(socket, departure, at);
            }
        });
    }

    /// Whether the host can make device tokens, and so pair devices.
    pub(crate) fn can_pair(&self) -> bool {
        self.tokens.can_mint()
    }

    /// Verifies the token of a user who watches devices.
    pub(crate) fn verify_user(&self, token: &str) -> Result<TokenClaims, AuthError> {
        self.tokens.user(token)
    }
}
