//! The commands and the bounds of the directory of peers.

use std::sync::Arc;
use std::time::Duration;

use crate::decisions::Departure;
use crate::ids::SocketId;

/// What one [`super::peer_directory::PeerDirectory`] holds at most. What is over a bound is counted and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerSettings {
    /// Peers, silent ones included; when it is reached, the one that has been silent longest is forgotten for a new
    /// one. Default 256.
    pub peers_max: usize,
    /// Sockets of one peer. Default 1,000,000.
    pub sockets_per_peer_max: usize,
    /// Methods of one socket. Default 1,024.
    pub methods_per_socket_max: usize,
    /// Bytes of a method's name. Default 4,096.
    pub method_bytes_max: usize,
    /// Bytes of a user's id. Default 256.
    pub user_bytes_max: usize,
}

impl Default for PeerSettings {
    fn default() -> PeerSettings {
        PeerSettings {
            peers_max: 256,
            sockets_per_peer_max: 1_000_000,
            methods_per_socket_max: 1_024,
            method_bytes_max: 4_096,
            user_bytes_max: 256,
        }
    }
}

impl PeerSettings {
    /// Whether a user's id and a method's name are within the bounds.
    pub(super) fn takes(&self, user: &str, method: &str) -> bool {
        let is_user = user.len() <= self.user_bytes_max;
        is_user && !method.is_empty() && method.len() <= self.method_bytes_max
    }
}

/// One thing to do. All but `AskSnapshot` are events for the [`crate::calls::CallMachine`] of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerCommand<P> {
    /// Ask a peer for a snapshot.
    AskSnapshot {
        /// The peer.
        peer: P,
    },
    /// A peer has a socket.
    Connect {
        /// The socket.
        socket: SocketId,
        /// Its user.
        user: Arc<str>,
        /// The peer's replica number.
        replica: u32,
        /// It can hand in a result after a reconnect.
        resumable: bool,
    },
    /// A socket has registered a method.
    Register {
        /// The socket.
        socket: SocketId,
        /// Its user.
        user: Arc<str>,
        /// The method.
        method: Arc<str>,
        /// How long ago.
        age: Duration,
    },
    /// A socket has taken a method back.
    Unregister {
        /// The socket.
        socket: SocketId,
        /// Its user.
        user: Arc<str>,
        /// The method.
        method: Arc<str>,
    },
    /// A socket is gone, or not heard of any more, with all its methods.
    Gone {
        /// The socket.
        socket: SocketId,
        /// Its user.
        user: Arc<str>,
        /// Why. [`Departure::Unregistered`]: it has taken its last method back, and is not announced any more.
        cause: Departure,
    },
}
