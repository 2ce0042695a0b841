//! Starts what the devices of a replica need while it runs: timers, answers to other replicas, the watch of the load.

use std::sync::Arc;

use super::{lag, peers, state::Devices};
use crate::{driver::keep_time, edge::socketio::SocketIo};

impl Devices {
    /// Starts the timers, which run for as long as the current runtime.
    pub fn start(self: &Arc<Self>, io: &SocketIo) {
        let _ = self.io.set(io.clone());
        peers::serve(self);
        peers::subscribe(self);
        lag::watch(self);
        let timed_out = |devices: &Arc<Self>| devices.drive(|state, at| state.sessions.handle_timeout(at));
        keep_time(self, |devices: &Self| &devices.driver, timed_out);
    }
}
