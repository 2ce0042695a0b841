//! Runs a development host, follows the sources of its policies, and runs the demo against it.

pub(crate) mod demo;
pub(crate) mod host;
pub(crate) mod up;
pub(crate) mod watch;
