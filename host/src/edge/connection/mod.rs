//! A client's TCP connection. It ends when the client is silent for too long, and the host can abort it at any time.
//!
//! The engine has a ping timeout of its own, but checks it only between two packets. A client that reads slowly blocks the write of
//! a packet, and with it that check. A disconnect by Socket.IO does not help: it needs room in the same full buffer.

mod handle;
mod listener;
mod read_ahead;
mod stream;
mod tcp_connection;

pub(crate) use self::{
    handle::{ConnectionHandle, WeakConnectionHandle},
    listener::ConnectionListener,
    tcp_connection::TcpConnection,
};
