//! The errors of messages that did not reach the cluster.

use socketioxide_core::adapter::errors::AdapterError;
use socketioxide_core::parser::ParserError;
use thiserror::Error;

use crate::transport::TransportError;
use crate::wire::EncodeError;

/// Why a message did not reach the cluster. Local sockets got it nevertheless.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// The outbox did not take it.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// It cannot be written on the wire.
    #[error("not fit for the wire: {0}")]
    Encode(#[from] EncodeError),
    /// The namespace's parser did not understand the packet.
    #[error("not fit for the parser: {0}")]
    Parse(#[from] ParserError),
    /// As many requests are open as [`requests_max`](crate::Settings::requests_max) allows.
    #[error("too many requests are open")]
    TooManyRequests,
    /// Redis failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

impl From<ClusterError> for AdapterError {
    fn from(error: ClusterError) -> Self {
        AdapterError(Box::new(error))
    }
}

/// Why the outbox did not take a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OutboxError {
    /// Redis takes messages more slowly than they are published.
    #[error("too much waits to be sent to Redis")]
    Full,
    /// The replica left the cluster.
    #[error("the cluster was left")]
    Closed,
}
