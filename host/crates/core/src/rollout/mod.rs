//! A policy's way to every replica of a cluster: all prepare it, then all switch; or none does, and it is known who could not.
//!
//! Each slot has one shared [`Document`], which is changed by compare-and-set alone, and each replica a [`Follower`] that is shown the
//! document, who lives and what they report, and says what is to be done next ([`RolloutStep`]). Any replica may take the step that
//! concerns all: the first write wins, the others look again.
//!
//! What holds (asserted by `tests/rollout` after every step of a simulated cluster):
//! - **all-or-forced**: a pointer moves to what was pushed only when every replica that lives and is ready has it prepared, or the
//!   push was forced.
//! - **only-what-was-pointed-to**: a replica switches to nothing but what the document names as current.
//! - **a-failed-push-changes-nothing**: it leaves what serves, and since when.
//! - **pushes-end**: a push has moved the pointer or failed some time after its timeout at the latest.
//! - **undo-served**: an undo, and the breaker, go to what served before.
//! - **converged**: when nothing goes wrong for a while, all that live serve what the document names, and the document is there.
//! - **newest-wins**: an emptied store is filled again by what serves, and the newest pointer stands.

mod document;
mod follower;
mod view;

pub use document::{
    Digest, Document, FORMER_MAX, FailedPush, NothingToUndo, PendingPush, PushRefused, QUARANTINED_MAX,
    QuarantinedDigest, RetryRefused, Uid,
};
pub use follower::{Follower, RolloutStep};
pub use view::{ReplicaReport, ReportError, RolloutView};

// Former names.
pub use document::{FailedPush as Failed, PendingPush as Pending, QuarantinedDigest as Quarantined};
pub use follower::RolloutStep as Step;
pub use view::{ReplicaReport as Report, RolloutView as Seen};
