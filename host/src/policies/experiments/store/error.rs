//! Names the reasons why a store of experiments fails.

use socketioxide_redis_streams::transport::TransportError;

use crate::cluster::scripts::UnexpectedReply;

/// Why an operation of the store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExperimentStoreError {
    /// Redis is away, did not answer in time, or refuses.
    #[error("Redis is away: {0}")]
    Away(#[from] TransportError),
    /// The store does not hold experiments, or it holds those of a later version.
    #[error("what is stored of experiments cannot be read: {0}")]
    Unreadable(String),
    /// `policy.state_dir` cannot be read or written.
    #[error("policy.state_dir: {0}")]
    File(String),
    /// An arm's module is not stored.
    #[error("a module is not stored: it must be sent before the experiment is created")]
    NoModule,
}

impl From<UnexpectedReply> for ExperimentStoreError {
    fn from(_: UnexpectedReply) -> Self {
        Self::Unreadable("another kind of value".to_owned())
    }
}

/// The result of an operation of the store.
pub(super) type ExperimentStoreResult<T> = Result<T, ExperimentStoreError>;
