//! The namespace `/device`: what devices send. Who a device is comes with `device:register`, not with the handshake.

use std::{future::ready, sync::Arc};

use pointwork_core::devices::{Credentials, LimiterKey, Registration};
use serde_json::json;
use socketioxide::{TransportType, extract::Event as Name, handler::ConnectHandler, socket::DisconnectReason};

use crate::{
    config::ID_BYTES_MAX,
    devices::{DEVICE_NSP, Devices},
    edge::{
        auth::TOKEN_BYTES_MAX,
        departure::departure,
        disconnect::close_socket,
        event_order::OrderedEvents,
        payload::{IncomingEvent, take_field},
        send::emit,
        socketio::{SocketIo, SocketRef, socket_id},
    },
};

/// The longest fingerprint, in bytes.
const FINGERPRINT_BYTES_MAX: usize = 4_096;
/// The longest pairing code, in bytes.
const CODE_BYTES_MAX: usize = 64;

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

/// Mounts the namespace. All is set up in the middleware, which runs before CONNECT is sent; see [`root`](super::root).
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
                let claims = incoming.into_first().map(Claims::of).unwrap_or_default();
                if claims.pairing_code.is_some() && claims.token.is_none() && !self.devices.can_pair() {
                    emit(socket, "device:auth-error", &json!({ "error": "this server pairs no devices" }));
                    return close_socket(socket.clone());
                }
                let address = forwarded_for(socket).map(hash);
                let is_polling = socket.transport_type() == TransportType::Polling;
                let registration = claims.registration(is_polling, address);
                self.devices.register(id, registration, claims.token);
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

/// What a device says of itself.
#[derive(Default)]
struct Claims {
    device: Option<Arc<str>>,
    token: Option<String>,
    pairing_code: Option<Arc<str>>,
    fingerprint: Option<u64>,
}

impl Claims {
    fn of(mut body: rmpv::Value) -> Self {
        Self {
            device: text(&mut body, "device_id", ID_BYTES_MAX).map(Arc::from),
            token: text(&mut body, "device_token", TOKEN_BYTES_MAX),
            pairing_code: text(&mut body, "pairing_code", CODE_BYTES_MAX).map(Arc::from),
            fingerprint: text(&mut body, "fingerprint", FINGERPRINT_BYTES_MAX).map(|fingerprint| hash(&fingerprint)),
        }
    }

    fn registration(&self, is_polling: bool, address: Option<u64>) -> Registration {
        let key = LimiterKey::of(self.device.clone(), self.fingerprint, self.token.as_deref().map(hash));
        let (device, credentials) = match (&self.token, &self.pairing_code) {
            (Some(_), _) => (self.device.clone(), Credentials::Token),
            (None, Some(code)) if self.fingerprint.is_some() => {
                // Always the same for one fingerprint, so that its duplicate sockets are one device.
                let seed = self.fingerprint.unwrap_or_default();
                (Some(format!("dev-{seed:016x}").into()), Credentials::Pairing { code: code.clone() })
            }
            (None, _) => (self.device.clone(), Credentials::Missing),
        };
        Registration { device, key, credentials, fingerprint: self.fingerprint, address, is_polling }
    }
}

/// A field's text, if it is one that is not empty and not too long.
fn text(body: &mut rmpv::Value, key: &str, bytes_max: usize) -> Option<String> {
    let rmpv::Value::String(text) = take_field(body, key)? else { return None };
    text.into_str().filter(|text| !text.is_empty() && text.len() <= bytes_max)
}

/// The same on every replica.
fn hash(text: &str) -> u64 {
    pointwork_policy::user_key(text)
}
