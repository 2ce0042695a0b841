//! The `settle` slot: which of two sockets holds a device's session.

use serde::de::DeserializeOwned;

pub use crate::bindings::settle::exports::pointwork::policy::settle::{
    Event, Happening, Incumbent, Liveness, Newcomer, Verdict,
};
use crate::{Moment, PolicyError};

/// A rule for the `settle` slot.
pub trait Settle: Sized + Send + Sync + 'static {
    /// What the operator may set; its default is what `{}` means.
    type Config: DeserializeOwned + Default;

    /// Makes the policy from its configuration.
    ///
    /// # Errors
    /// What is wrong with it, in words for the operator: the load is refused and the serving generation stays.
    fn configure(config: Self::Config) -> Result<Self, String>;

    /// Accepts the newcomer, refuses it, or lets both stand for a hand-over. `window_ms` is the operator's settle window,
    /// `history` what happened to the session, newest first and at most 16.
    ///
    /// # Errors
    /// When it cannot decide: the native rule does.
    fn decide(
        &self,
        at: &Moment,
        window_ms: u32,
        incumbent: &Incumbent,
        newcomer: &Newcomer,
        history: &[Event],
    ) -> Result<Verdict, PolicyError>;
}

/// Makes this crate a component for the `settle` slot out of a type that implements [`Settle`].
#[macro_export]
macro_rules! export_settle {
    ($policy:ty) => {
        $crate::__export!(settle, $policy, Settle, {
            fn decide(
                at: $crate::Moment,
                window_ms: u32,
                incumbent: $crate::settle::Incumbent,
                newcomer: $crate::settle::Newcomer,
                history: Vec<$crate::settle::Event>,
            ) -> Result<$crate::settle::Verdict, $crate::PolicyError> {
                $crate::settle::Settle::decide(POLICY.get()?, &at, window_ms, &incumbent, &newcomer, &history)
            }
        });
    };
}
