//! The sandbox of a guest: limits its time and memory, captures what it prints, and offers the host functions it may call.

mod bindings;
mod limits;
mod output;
mod state;
pub(crate) mod wasi;

pub use limits::SlotLimits;
pub(crate) use output::{Captured, Stream};
pub(crate) use state::Sandbox;
