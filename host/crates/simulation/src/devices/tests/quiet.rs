//! Judges what must hold when all has been quiet for long.

use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::devices::{DeviceRecord, DeviceStatus};

use crate::devices::audit::{DeviceAuditor, SocketRecord};

impl DeviceAuditor {
    /// Whether a socket was told that it has the session, and not that it is to close.
    pub(crate) fn is_registered(&self, socket: SocketId) -> bool {
        self.sockets.get(&socket).is_some_and(|record| record.is_registered && !record.is_told_to_close)
    }

    /// When all is quiet: a device has one registered socket at most, which its record names, and record and dashboards
    /// show whether it is there. `registered` are its registered sockets; the record's status must be `expected`.
    /// `is_lost`: what dashboards were told may be lost.
    pub(crate) fn check_quiet(
        &mut self,
        device: &Arc<str>,
        record: &DeviceRecord,
        registered: &[(SocketId, bool)],
        expected: DeviceStatus,
        is_lost: bool,
    ) {
        let shown = if is_lost { record.status } else { self.device(device).shown.1 };
        self.demand(registered.len() <= 1, "one-holder", || format!("{device} has {registered:?}, of {record:?}"));
        let is_in_place = registered.iter().all(|(_, is_holder)| *is_holder);
        self.demand(is_in_place, "not-stranded", || format!("{device} has {registered:?}, its record is {record:?}"));
        let is_vacant = registered.is_empty() == record.holder.is_none();
        let is_true = is_vacant && (record.status, shown) == (expected, expected);
        self.demand(is_true, "status-is-true", || format!("{device}, {registered:?}: {record:?}, shown is {shown:?}"));
    }

    /// When all is quiet: every register was answered.
    pub(crate) fn check_answered(&mut self) {
        let is_open = |record: &SocketRecord| record.arrived_us.is_some() || record.refreshes > 0;
        let open = self.sockets.iter().find(|(_, record)| is_open(record)).map(|(socket, _)| *socket);
        self.demand(open.is_none(), "every-register-answered", || format!("{open:?} was not answered"));
    }
}
