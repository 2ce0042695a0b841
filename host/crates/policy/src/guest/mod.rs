//! Turns the bytes of a policy into instances that answer questions: checked components, prototypes, generations.

mod backtrace;
mod component;
mod configuration;
mod digest;
mod failure;
mod generation;
mod inspect;
mod instance;
mod load_error;
mod log;
mod module;
mod prototype;

pub use component::WASM_MAX_BYTES;
pub(crate) use component::{check_bytes, check_for};
pub use configuration::PolicyJson;
pub use digest::{Digest, NoDigest};
pub(crate) use failure::Failure;
pub use failure::FailureKind;
pub(crate) use generation::Generation;
pub use inspect::{Inspection, inspect};
pub(crate) use instance::GuestAnswer;
pub use load_error::LoadError;
pub use module::{Answer, AskError, Asker, Module};
