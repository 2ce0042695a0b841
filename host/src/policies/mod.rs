//! Policies: which one answers in each slot, and how operators replace, record and compare them.

pub(crate) mod assignments;
pub mod directory;
pub mod experiments;
mod files;
mod module;
mod panic_message;
pub mod records;
pub mod rollout;
pub mod slots;

pub use self::module::PolicyModule;
