//! The server: settings, parts, listeners, signal, drain. One phase a file.

mod assemble;
mod drain;
mod listeners;
mod memory;
mod process;
mod run;
mod settings;
mod shutdown;
mod signals;

pub use self::process::serve;
