//! The four questions that policies answer, `wit/policy.wit` as plain types, and the native rule of each.
//!
//! The record `moment` (`at`) is not here: the host adds wall clock, seed and key when it asks. Spans are cut by
//! [`crate::time::span_ms`]: 4294967295 if they do not fit or are not known.

pub mod call;
pub mod grace;
pub mod presence;
pub mod rules;
pub mod settle;
pub mod target;

pub use call::{Call, Departure, RETURNS_MAX};
pub use grace::Absence;
pub use presence::{Doubt, Verdict};
pub use settle::{Event, HISTORY_MAX, Happening, Incumbent, Liveness, Newcomer, SettleVerdict};
pub use target::{CANDIDATES_MAX, Candidate, Choice, Traits};
