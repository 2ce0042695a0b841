//! Names the reasons why a rollout is refused.

use pointwork_core::rollout::{NothingToUndo, PushRefused, RetryRefused};

use super::store::RolloutStoreError;

/// Why a push, undo, retry or pull is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RolloutError {
    /// The policy directory says what serves.
    #[error(
        "policy.source is `directory`: what lies in policy.dir serves, and is changed there; with policy.source = \"cluster\" it is pushed"
    )]
    Directory,
    /// Redis cannot be read or written.
    #[error("{0}; what serves goes on serving, and nothing is changed until Redis is back")]
    Store(#[from] RolloutStoreError),
    /// See [`PushRefused`].
    #[error(transparent)]
    Push(#[from] PushRefused),
    /// See [`NothingToUndo`].
    #[error(transparent)]
    Undo(#[from] NothingToUndo),
    /// See [`RetryRefused`].
    #[error(transparent)]
    Retry(#[from] RetryRefused),
    /// The slot's document does not name this digest.
    #[error(
        "there is no module {0} of this slot: it is kept while it serves, may be gone back to, or is in quarantine"
    )]
    NoModule(String),
    /// The former module is neither in Redis nor on this replica.
    #[error("the module {0} that an undo would go back to is not stored any more, nor here: push what is to serve")]
    Lost(String),
    /// The native rule serves.
    #[error("the native rule serves this slot: there is no module")]
    Native,
    /// Other changes were faster each time.
    #[error("others changed this slot at the same time: look, and try again")]
    Raced,
}
