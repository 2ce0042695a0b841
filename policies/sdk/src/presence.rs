//! The `presence` slot: whether a call in flight is given up when its target has left or is in doubt.

use serde::de::DeserializeOwned;

pub use crate::bindings::presence::exports::pointwork::policy::presence::{Doubt, Verdict};
use crate::{Call, Moment, PolicyError};

/// A rule for the `presence` slot.
pub trait Presence: Sized + Send + Sync + 'static {
    /// What the operator may set; its default is what `{}` means.
    type Config: DeserializeOwned + Default;

    /// Makes the policy from its configuration.
    ///
    /// # Errors
    /// What is wrong with it, in words for the operator: the load is refused and the serving generation stays.
    fn configure(config: Self::Config) -> Result<Self, String>;

    /// Gives the call up, or holds it and says in how many milliseconds to ask again.
    ///
    /// # Errors
    /// When it cannot decide: the native rule does.
    fn judge(&self, at: &Moment, call: &Call, doubt: &Doubt) -> Result<Verdict, PolicyError>;
}

/// Makes this crate a component for the `presence` slot out of a type that implements [`Presence`].
#[macro_export]
macro_rules! export_presence {
    ($policy:ty) => {
        $crate::__export!(presence, $policy, Presence, {
            fn judge(
                at: $crate::Moment,
                call: $crate::Call,
                doubt: $crate::presence::Doubt,
            ) -> Result<$crate::presence::Verdict, $crate::PolicyError> {
                $crate::presence::Presence::judge(POLICY.get()?, &at, &call, &doubt)
            }
        });
    };
}
