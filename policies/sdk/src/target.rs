//! The `target` slot: which of the daemons that registered a method gets the call.

use serde::de::DeserializeOwned;

pub use crate::bindings::target::exports::pointwork::policy::target::{Candidate, Choice, Traits};
use crate::{Call, Moment, PolicyError};

/// A rule for the `target` slot.
pub trait Target: Sized + Send + Sync + 'static {
    /// What the operator may set; its default is what `{}` means.
    type Config: DeserializeOwned + Default;

    /// Makes the policy from its configuration.
    ///
    /// # Errors
    /// What is wrong with it, in words for the operator: the load is refused and the serving generation stays.
    fn configure(config: Self::Config) -> Result<Self, String>;

    /// Chooses one of 1 to 32 candidates, oldest registration first, or none.
    ///
    /// # Errors
    /// When it cannot decide: the native rule does.
    fn choose(&self, at: &Moment, call: &Call, candidates: &[Candidate]) -> Result<Choice, PolicyError>;
}

/// Makes this crate a component for the `target` slot out of a type that implements [`Target`].
#[macro_export]
macro_rules! export_target {
    ($policy:ty) => {
        $crate::__export!(target, $policy, Target, {
            fn choose(
                at: $crate::Moment,
                call: $crate::Call,
                candidates: Vec<$crate::target::Candidate>,
            ) -> Result<$crate::target::Choice, $crate::PolicyError> {
                $crate::target::Target::choose(POLICY.get()?, &at, &call, &candidates)
            }
        });
    };
}
