//! `pointwork exp`: works with the experiments of a running host, through its admin API.

mod command;
mod create;
mod guardrails;
mod summary;
mod weights;

pub(super) use command::ExpCommand;
