//! From the bytes of a policy to instances that answer: checked components, configured instances, generations.

mod backtrace;
pub(crate) mod component;
mod configuration;
mod digest;
mod failure;
pub(crate) mod generation;
mod inspect;
mod instance;
mod load_error;
mod log;
mod module;

pub use component::WASM_MAX_BYTES;
pub use configuration::PolicyJson;
pub use digest::{Digest, NoDigest};
pub(crate) use failure::Failure;
pub use failure::FailureKind;
pub use inspect::{Inspection, inspect};
pub use load_error::LoadError;
pub use module::{Answer, AskError, Asker, Module};
