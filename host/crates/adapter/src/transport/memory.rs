//! A Redis inside the process, for clusters inside one test. Its time is simulated if the runtime's clock is paused.
//!
//! ```
//! # use socketioxide_redis_streams::transport::{Transport, memory::Memory};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let server = Memory::new();
//! let (one, other) = (server.connect(), server.connect());
//! other.subscribe(vec!["channel".to_owned()]).await.unwrap();
//! assert_eq!(one.subscribers(vec!["channel".to_owned()]).await.unwrap(), [1]);
//! server.cut(other.id());
//! assert_eq!(one.subscribers(vec!["channel".to_owned()]).await.unwrap(), [0]);
//! # }
//! ```

mod connection;
mod inbox;
mod server;
mod stream;

use std::sync::Arc;

use self::server::Server;

pub use self::connection::MemoryConnection;
pub use self::server::ConnectionId;

/// A Redis server in memory. Clones are handles of the same server.
///
/// It has streams, which it trims exactly, and PUB/SUB. The id of an entry is the time since the server was made, so it follows the
/// runtime's clock. A connection behaves like one to a real Redis, but never gives up a server that hangs.
#[derive(Clone, Default)]
pub struct Memory {
    server: Arc<Server>,
}

impl Memory {
    /// An empty server that runs.
    #[must_use]
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Makes a connection.
    #[must_use]
    pub fn connect(&self) -> MemoryConnection {
        MemoryConnection::new(self.server.clone())
    }

    /// Cuts a connection: its requests fail, and it misses published messages.
    pub fn cut(&self, connection: ConnectionId) {
        self.server.change(|state| state.set_cut(connection, true));
    }

    /// Restores a connection after [`cut`](Self::cut), with its subscriptions.
    pub fn restore(&self, connection: ConnectionId) {
        self.server.change(|state| state.set_cut(connection, false));
    }

    /// Stops the server: all connections are interrupted, and their requests fail.
    pub fn stop(&self) {
        self.server.change(|state| state.stop());
    }

    /// Starts the server again. With `empty` it has lost its streams.
    pub fn start(&self, empty: bool) {
        self.server.change(|state| state.start(empty));
    }

    /// Lets the server hang: it answers nothing. Requests that are sent meanwhile take effect when the server resumes, although their
    /// senders got [`Timeout`](crate::transport::TransportError::Timeout).
    pub fn hang(&self) {
        self.server.change(|state| state.is_hung = true);
    }

    /// Lets the server continue after [`hang`](Self::hang).
    pub fn resume(&self) {
        self.server.change(|state| state.resume());
    }

    /// Drops the next `messages` that are published to a connection. The connection receives one
    /// [`Missed`](crate::transport::Received::Missed) in place of the last of them.
    pub fn lag(&self, connection: ConnectionId, messages: u64) {
        self.server.change(|state| state.lag(connection, messages));
    }

    /// How many messages of a channel were put into the inboxes of connections.
    #[must_use]
    pub fn delivered(&self, channel: &str) -> u64 {
        self.server.look(|state| state.delivered.get(channel).copied().unwrap_or_default())
    }
}
