//! From a TCP connection to a Socket.IO event, and from an answer back to the wire.

pub(crate) mod admission;
pub mod auth;
pub(crate) mod connection;
pub(crate) mod departure;
pub(crate) mod disconnect;
pub(crate) mod event_order;
pub(crate) mod http;
pub mod identity;
pub(crate) mod payload;
pub(crate) mod send;
pub mod socketio;
pub(crate) mod tls;
pub(crate) mod transport;
