//! Names the mistakes that a test can have a world of devices make.

/// A mistake, to show that the simulation would notice it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceFlaw {
    /// The store writes a record whatever its epoch is.
    SwapWithoutEpoch,
    /// A holder is evicted before another socket has won the session.
    EvictBeforeWon,
    /// The end of an evicted socket says that its device is offline.
    EvictedArmsOffline,
    /// A socket of a dead replica is said to be alive.
    RefuseForTheDead,
    /// A socket that was refused is not closed.
    NewcomerNotClosed,
}
