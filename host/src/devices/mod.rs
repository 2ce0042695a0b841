//! The sessions of devices: which of a device's sockets holds its session.
//!
//! The machine ([`pointwork_core::devices::DeviceSessions`]) decides. This room feeds it and carries out its commands: on sockets of the
//! namespace `/device`, on the records in the store, and at other replicas.

mod carry_out;
mod dashboards;
mod from_devices;
mod lag;
mod operate;
mod peers;
mod run;
mod settle_sources;
mod state;
mod tokens;

pub(crate) use self::{
    dashboards::Owners,
    state::{DASHBOARD_NSP, DEVICE_NSP},
};
pub use self::{
    operate::{Change, OperateError, Overview},
    state::Devices,
};
