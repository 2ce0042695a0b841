//! What the `export_*!` macros expand to, kept out of them as far as it goes.

use std::sync::OnceLock;

use serde::de::DeserializeOwned;

use crate::{PolicyError, parse_config};

/// The one policy of an instance, set by `configure`.
pub struct Configured<P>(OnceLock<P>);

impl<P> Configured<P> {
    /// An instance that has not been configured yet.
    pub const fn none() -> Self {
        Self(OnceLock::new())
    }

    /// Makes the policy from the operator's JSON.
    ///
    /// # Errors
    /// What is wrong with the JSON, what the policy says about it, or that it was configured before.
    pub fn set<C: DeserializeOwned + Default>(
        &self,
        json: &str,
        configure: impl FnOnce(C) -> Result<P, String>,
    ) -> Result<(), String> {
        let policy = configure(parse_config(json)?)?;
        self.0.set(policy).map_err(|_| "this instance is configured already".to_owned())
    }

    /// The policy.
    ///
    /// # Errors
    /// `Internal` before [`Configured::set`]: a host that skips it must not get decisions of a default nobody chose.
    pub fn get(&self) -> Result<&P, PolicyError> {
        self.0.get().ok_or_else(|| PolicyError::Internal("asked before it was configured".to_owned()))
    }
}

/// Exports a policy's `meta` and its slot. Only for wasm: elsewhere two policies in one program would export the
/// same symbols.
#[doc(hidden)]
#[macro_export]
macro_rules! __export {
    ($slot:ident, $policy:ty, $trait:ident, { $($decision:item)* }) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Component;

            static POLICY: $crate::export::Configured<$policy> = $crate::export::Configured::none();

            impl $crate::bindings::meta::exports::pointwork::policy::meta::Guest for Component {
                fn describe() -> $crate::bindings::meta::exports::pointwork::policy::meta::Info {
                    $crate::bindings::meta::exports::pointwork::policy::meta::Info {
                        name: env!("CARGO_PKG_NAME").into(),
                        version: env!("CARGO_PKG_VERSION").into(),
                        summary: env!("CARGO_PKG_DESCRIPTION").into(),
                    }
                }

                fn configure(json: String) -> Result<(), String> {
                    POLICY.set(&json, <$policy as $crate::$slot::$trait>::configure)
                }
            }

            impl $crate::bindings::$slot::exports::pointwork::policy::$slot::Guest for Component {
                $($decision)*
            }

            $crate::bindings::meta::export!(Component with_types_in $crate::bindings::meta);
            $crate::bindings::$slot::export!(Component with_types_in $crate::bindings::$slot);
        };
    };
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::NoConfig;

    #[test]
    fn decides_only_once_configured_and_is_configured_only_once() {
        let policy = Configured::none();
        assert!(matches!(policy.get(), Err(PolicyError::Internal(_))));
        assert_eq!(policy.set("{}", |_: NoConfig| Err("no".to_owned())), Err("no".to_owned()));
        assert!(policy.get().is_err());
        policy.set("{}", |_: NoConfig| Ok(1)).unwrap();
        assert!(policy.set("{}", |_: NoConfig| Ok(2)).is_err());
        assert_eq!(policy.get(), Ok(&1));
    }
}
