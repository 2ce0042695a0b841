//! Simulates replicas with the real machines, one store, the network between them, and devices with their sockets.

mod clients;
mod commands;
mod faults;
mod peers;
mod run;
mod sockets;
mod state;
mod store;

pub(super) use state::DeviceWorld;
