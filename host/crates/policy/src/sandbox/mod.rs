//! The sandbox of a guest: limits its time and memory, captures its output, and offers it host functions.

mod bindings;
mod limits;
mod output;
mod state;
pub(crate) mod wasi;

pub use limits::SlotLimits;
pub(crate) use output::{Captured, Stream};
pub(crate) use state::Sandbox;
