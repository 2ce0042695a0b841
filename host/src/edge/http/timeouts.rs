//! How long a client may take for the parts of a request.

use std::time::Duration;

/// How long a client may take for the parts of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpTimeouts {
    /// From the start of the connection until the head of its first request is complete, TLS handshake included.
    pub(crate) first_head: Duration,
    /// From one request until the head of the next is complete. It is longer than load balancers keep idle connections, usually a
    /// minute: a load balancer that sends on a connection just being closed reports an error to its client.
    pub(crate) next_head: Duration,
    /// Until the body of a request is complete.
    pub(crate) body: Duration,
}
