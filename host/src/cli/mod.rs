//! The command line: one file for each command, with its arguments and what it does.

mod admin_client;
mod arguments;
mod exp;
mod json_fields;
mod policy;
mod run;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
mod token;

pub use arguments::Cli;
pub use run::run;
