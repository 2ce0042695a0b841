//! The sandbox of a guest: its time and memory, what it prints, and the host functions that it may call.

mod bindings;
mod limits;
mod output;
mod state;
pub(crate) mod wasi;

pub use limits::SlotLimits;
pub(crate) use output::{Captured, Stream};
pub(crate) use state::Sandbox;
