//! Calls from one client to another: feeds clients' events to the call machine and carries out its commands.
//!
//! A user's sockets, methods and calls live in one shard: a [`pointwork_core::CallMachine`] behind a lock. An event is handled where
//! it arrives, under the shard's lock, and the commands that follow are carried out after it. Policies are asked without the lock,
//! so a slow policy delays its own call alone.

mod action;
mod call;
mod carry_out;
mod daemon_requests;
mod daemons;
mod drain;
mod from_clients;
mod run;
mod shard;
mod state;

pub(crate) use self::daemons::resume::Superseded;
pub use self::{
    call::deadlines::Deadlines,
    state::{Calls, CallsConfig, LookupSettings, Participant},
};
