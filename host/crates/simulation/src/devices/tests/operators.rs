//! Changes the records of devices as operators do.

use pointwork_core::devices::DeviceRecord;

use crate::devices::events::OperatorChange;
use crate::devices::world::DeviceWorld;

impl DeviceWorld<'_> {
    /// An operator changes a record, as a host does it.
    pub(crate) fn operate(&mut self, device: usize, change: OperatorChange) {
        if self.is_store_away {
            return;
        }
        let (old, unix_ms) = (self.records[device].clone(), self.unix_ms());
        let new = match change {
            OperatorChange::Disconnect => old.disconnected(unix_ms),
            OperatorChange::Block => old.blocked(unix_ms),
            OperatorChange::Unblock => old.unblocked(unix_ms),
            OperatorChange::Pair => old.paired_with(Some("owner".into()), unix_ms),
        };
        self.auditor.count(format_args!("{change:?}"));
        self.auditor.is_operating = true;
        self.write(device, new.clone());
        self.auditor.is_operating = false;
        if new.status != old.status {
            self.auditor.shows(&self.devices[device].id, new.epoch, new.status);
        }
        if let Some(holder) = old.holder.filter(|_| new.holder.is_none()) {
            self.evict_here(&holder.replica, device, (new.epoch, holder.socket), 0);
        }
    }

    pub(crate) fn write(&mut self, device: usize, record: DeviceRecord) {
        self.compare_and_set(device, self.records[device].epoch, record);
    }
}
