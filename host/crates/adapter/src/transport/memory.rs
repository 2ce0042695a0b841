//! A Redis of the process's own: clusters inside one test, with simulated time if the runtime's is paused.
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

/// A Redis server in memory. Clones are handles of the same one.
///
/// It has streams, which it trims exactly, and PUB/SUB. An entry's id is the time since the server was made, so that it is
/// simulated with the runtime's clock. A connection tells the same as one to a real Redis, but never gives up a server that
/// hangs.
#[derive(Clone, Default)]
pub struct Memory {
    server: Arc<Server>,
}

impl Memory {
    /// A server that runs and is empty.
    #[must_use]
    pub fn new() -> Memory {
        Memory::default()
    }

    /// A connection, as a replica has one.
    #[must_use]
    pub fn connect(&self) -> MemoryConnection {
        MemoryConnection::new(self.server.clone())
    }

    /// Cuts a connection: what it asks for fails, and what is published it misses.
    pub fn cut(&self, connection: ConnectionId) {
        self.server.change(|state| state.set_cut(connection, true));
    }

    /// Ends what [`cut`](Self::cut) began. The connection has its subscriptions again.
    pub fn restore(&self, connection: ConnectionId) {
        self.server.change(|state| state.set_cut(connection, false));
    }

    /// Stops the server: all connections are interrupted, and what they ask for fails.
    pub fn stop(&self) {
        self.server.change(|state| state.stop());
    }

    /// Starts it again; without its streams if `empty`, as if it had nothing on its disk.
    pub fn start(&self, empty: bool) {
        self.server.change(|state| state.start(empty));
    }

    /// Nothing is answered from here on. What is sent meanwhile happens when the server resumes, though its sender was
    /// told [`Timeout`](crate::transport::TransportError::Timeout).
    pub fn hang(&self) {
        self.server.change(|state| state.is_hung = true);
    }

    /// Ends what [`hang`](Self::hang) began.
    pub fn resume(&self) {
        self.server.change(|state| state.resume());
    }

    /// Drops the next `messages` that are published to a connection. It is told
    /// [`Missed`](crate::transport::Received::Missed) once, where the last of them would have been.
    pub fn lag(&self, connection: ConnectionId, messages: u64) {
        self.server.change(|state| state.lag(connection, messages));
    }

    /// How many messages of a channel were put into the inboxes of connections.
    #[must_use]
    pub fn delivered(&self, channel: &str) -> u64 {
        self.server.look(|state| state.delivered.get(channel).copied().unwrap_or_default())
    }
}
