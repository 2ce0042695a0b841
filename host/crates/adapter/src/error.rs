//! Why something did not reach the cluster.

use socketioxide_core::adapter::errors::AdapterError;
use socketioxide_core::parser::ParserError;
use thiserror::Error;

use crate::outbox::OutboxError;
use crate::transport::TransportError;
use crate::wire::EncodeError;

/// Why something did not reach the cluster. Local sockets got it nevertheless.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// It was not taken by the outbox.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// It cannot be written on the wire.
    #[error("not fit for the wire: {0}")]
    Encode(#[from] EncodeError),
    /// The namespace's parser did not understand the packet.
    #[error("not fit for the parser: {0}")]
    Parse(#[from] ParserError),
    /// More requests are open than may be.
    #[error("too many requests are open")]
    TooManyRequests,
    /// Redis did not do it.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

impl From<ClusterError> for AdapterError {
    fn from(error: ClusterError) -> Self {
        AdapterError(Box::new(error))
    }
}
