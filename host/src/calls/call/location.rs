//! Where a socket is: at this replica or at another one.

use std::sync::Arc;

use crate::edge::socketio::SocketRef;

/// Where a socket is.
#[derive(Clone)]
pub(in crate::calls) enum SocketLocation {
    /// Here.
    Here(SocketRef),
    /// At another replica.
    There(RemoteSocket),
}

/// A socket of another replica: whose it is, and its id there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::calls) struct RemoteSocket {
    pub(in crate::calls) owner: Arc<str>,
    pub(in crate::calls) id: Arc<str>,
}
