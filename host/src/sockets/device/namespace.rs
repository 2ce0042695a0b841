//! The namespace `/device`: what devices send. Who a device is comes with `device:register`, not with the handshake.

use std::{future::ready, sync::Arc};

use serde_json::json;
use socketioxide::{TransportType, extract::Event as Name, handler::ConnectHandler, socket::DisconnectReason};

use super::register_payload::{RegisterPayload, hash, text};
use crate::{
    config::ID_BYTES_MAX,
    devices::{DEVICE_NSP, Devices},
    edge::{
        departure::departure,
        disconnect::close_socket,
        event_order::OrderedEvents,
        payload::IncomingEvent,
        send::emit,
        socketio::{SocketIo, SocketRef, socket_id},
    },
};

/// What a device sends.
enum Event {
    Register(IncomingEvent),
    Heartbeat(IncomingEvent),
    /// Anything else is a sign of life.
    Other,
}

/// A device's connection, from the moment it was admitted.
struct Connection {
    devices: Arc<Devices>,
    events: OrderedEvents<Event>,
}

/// Mounts the namespace. All is set up in the middleware, which runs before CONNECT is sent; see [`root`](crate::sockets::root).
pub(crate) fn mount(devices: &Arc<Devices>, io: &SocketIo) {
    let devices = devices.clone();
    let admit = move |socket: SocketRef| {
        set_up(&socket, Arc::new(Connection { devices: devices.clone(), events: OrderedEvents::new() }));
        ready(Ok::<(), std::convert::Infallible>(()))
    };
    let connected = |socket: SocketRef| {
        if let Some(connection) = socket.extensions.get::<Arc<Connection>>() {
            connection.open(&socket);
        }
        ready(())
    };
    io.ns(DEVICE_NSP, connected.with(admit));
}

fn set_up(socket: &SocketRef, connection: Arc<Connection>) {
    // The room of its own id is how other replicas mean this socket alone.
    socket.join(socket.id.to_string());
    let taking = connection.clone();
    socket.on_fallback(move |socket: SocketRef, Name(name): Name, incoming: IncomingEvent| {
        let event = match name.as_str() {
            "device:register" => Event::Register(incoming),
            "device:heartbeat" => Event::Heartbeat(incoming),
            _ => Event::Other,
        };
        if taking.events.handle(event, |event| taking.handle(&socket, event)).is_err() {
            metrics::counter!("pointwork_events_dropped_total").increment(1);
        }
        ready(())
    });
    let leaving = connection.clone();
    socket.on_disconnect(move |socket: SocketRef, reason: DisconnectReason| {
        if leaving.events.close() {
            leaving.devices.disconnect(socket_id(socket.id), departure(&socket, reason));
        }
        ready(())
    });
    socket.extensions.insert(connection);
}

impl Connection {
    fn open(&self, socket: &SocketRef) {
        self.events.connect(|| self.devices.connect(socket), |event| self.handle(socket, event));
    }

    fn handle(&self, socket: &SocketRef, event: Event) {
        let id = socket_id(socket.id);
        match event {
            Event::Register(incoming) => {
                let payload = incoming.into_first().map(RegisterPayload::of).unwrap_or_default();
                if payload.pairing_code.is_some() && payload.token.is_none() && !self.devices.can_pair() {
                    emit(socket, "device:auth-error", &json!({ "error": "this server pairs no devices" }));
                    return close_socket(socket.clone());
                }
                let address = forwarded_for(socket).map(hash);
                let is_polling = socket.transport_type() == TransportType::Polling;
                let registration = payload.registration(is_polling, address);
                self.devices.register(id, registration, payload.token);
            }
            Event::Heartbeat(incoming) => {
                match incoming.into_first().and_then(|mut body| text(&mut body, "device_id", ID_BYTES_MAX)) {
                    Some(device) => self.devices.heartbeat(id, &device.into()),
                    None => metrics::counter!("pointwork_device_malformed_total").increment(1),
                }
            }
            Event::Other => self.devices.touch(id),
        }
    }
}

/// The first address of `X-Forwarded-For`: what a device behind a proxy says of its address.
fn forwarded_for(socket: &SocketRef) -> Option<&str> {
    let chain = socket.req_parts().headers.get("x-forwarded-for")?.to_str().ok()?;
    chain.split(',').next().map(str::trim)
}
