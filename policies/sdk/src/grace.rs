//! The `grace` slot: how long a call waits when nobody has registered its method.

use serde::de::DeserializeOwned;

pub use crate::bindings::grace::exports::pointwork::policy::grace::Absence;
use crate::{Call, Moment, PolicyError};

/// A rule for the `grace` slot.
pub trait Grace: Sized + Send + Sync + 'static {
    /// What the operator may set; its default is what `{}` means.
    type Config: DeserializeOwned + Default;

    /// Makes the policy from its configuration.
    ///
    /// # Errors
    /// What is wrong with it, in words for the operator: the load is refused and the serving generation stays.
    fn configure(config: Self::Config) -> Result<Self, String>;

    /// For how many milliseconds from now the call is held; 0 fails it at once.
    ///
    /// # Errors
    /// When it cannot decide: the native rule does.
    fn wait(&self, at: &Moment, call: &Call, absence: &Absence) -> Result<u32, PolicyError>;
}

/// Makes this crate a component for the `grace` slot out of a type that implements [`Grace`].
#[macro_export]
macro_rules! export_grace {
    ($policy:ty) => {
        $crate::__export!(grace, $policy, Grace, {
            fn wait(
                at: $crate::Moment,
                call: $crate::Call,
                absence: $crate::grace::Absence,
            ) -> Result<u32, $crate::PolicyError> {
                $crate::grace::Grace::wait(POLICY.get()?, &at, &call, &absence)
            }
        });
    };
}
