//! Brings a policy to every replica of a cluster: all replicas prepare it, then all switch to it. If one cannot prepare
//! it, none switches, and the document says which one failed.
//!
//! Each slot has one shared [`Document`], which only changes by compare-and-set. Each replica has a [`Follower`]: it sees the
//! document, the live replicas and their reports, and decides the replica's next step ([`RolloutStep`]). Any replica may take
//! a step that concerns all. The first write wins, and the others look again.
//!
//! # Invariants
//!
//! `tests/rollout` asserts them after every write of a simulated cluster.
//!
//! - **all-or-forced**: the pointer moves to a pushed generation only when every live and ready replica has it prepared, or the
//!   push was forced.
//! - **only-what-was-pointed-to**: a replica switches only to what the document names as current.
//! - **a-failed-push-changes-nothing**: what serves, and since when, stays as it was.
//! - **pushes-end**: some time after its timeout at the latest, a push has moved the pointer or failed.
//! - **undo-served**: an undo, and the breaker, go back to a generation that served before.
//! - **converged**: when nothing goes wrong for a while, all live replicas serve what the document names, and the document exists.
//! - **newest-wins**: whatever serves fills an emptied store again, and the newest pointer stands.

mod document;
mod follower;
mod view;

pub use document::{
    Digest, Document, FORMER_MAX, FailedPush, NothingToUndo, PendingPush, PushRefused, QUARANTINED_MAX,
    QuarantinedDigest, RetryRefused, Uid,
};
pub use follower::{Follower, RolloutStep};
pub use view::{ReplicaReport, ReportError, RolloutView};
