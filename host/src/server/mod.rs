//! The server: settings, parts, listeners, signal, drain. One phase a file.

mod assemble;
mod drain;
mod listeners;
pub mod memory;
mod run;
mod settings;
mod shutdown;
mod signals;

pub use self::{listeners::Listening, run::run};
