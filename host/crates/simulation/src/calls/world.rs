//! Simulates processes, their clients, the network between them, and a clock that jumps.

mod clients;
mod commands;
mod faults;
mod links;
mod measure;
mod messages;
mod peers;
mod requests;
mod run;
mod shutdown;
mod sockets;
mod state;
mod steps;

pub(super) use state::CallWorld;
