//! `pointwork policy`: works with the file of a policy, and with the policies of running hosts.

mod command;
mod convergence;
mod list;
mod pull;
mod push;
mod record;
mod retry;
mod slot_wording;
mod status;
mod undo;

pub(super) use command::PolicyCommand;
