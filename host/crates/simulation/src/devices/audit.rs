//! What must hold whatever a policy says: one-holder and epoch-grows after every event, not-stranded at the end.

use pointwork_core::device::Record;

use super::world::World;
use crate::violation::Violation;

/// How long after the store was in trouble its record may not be the truth: every step may have waited in vain.
const TROUBLE_US: u64 = 20_000_000;
/// How long a device may be stranded at the end: its register may wait for a replica that is silent, or for its turn.
const STRANDED_US: u64 = 20_000_000;

impl World<'_> {
    /// At most one socket is authoritative: whom a replica takes for the holder is named by the record, or was superseded.
    pub(super) fn check_one_holder(&mut self, device: usize) {
        let record = &self.store.records[device];
        let is_in_trouble = self.trouble_us.is_some_and(|at| self.now_us - at < TROUBLE_US);
        let id = &self.devices[device].id;
        let mut epochs = Vec::new();
        for replica in self.running.iter().map(|running| &self.replicas[*running]) {
            let Some(holder) = replica.machine.holder(id).filter(|holder| holder.is_sure) else { continue };
            let is_named = record.is_held_by(&replica.uid, holder.socket);
            let is_alone = !epochs.contains(&holder.epoch);
            epochs.push(holder.epoch);
            if !(is_in_trouble || is_alone && (is_named || holder.epoch < record.epoch)) {
                let what = format!("{id}: {} takes {holder:?} for the holder beside {record:?}", replica.uid);
                return self.broken("one-holder", what);
            }
        }
    }

    /// Every change of a record gives it a greater epoch.
    pub(super) fn check_epoch(&mut self, device: usize, new: &Record) {
        let old = self.store.records[device].epoch;
        if new.epoch <= old {
            self.broken("epoch-grows", format!("{}: {old} -> {}", self.devices[device].id, new.epoch));
        }
    }

    /// When all has been quiet for long, no device has a socket that wants the session while nobody has it.
    pub(super) fn check_not_stranded(&mut self) {
        let stranded = self
            .devices
            .iter()
            .find(|device| device.meter.stranded_for_us(self.now_us) > STRANDED_US)
            .map(|one| one.id.clone());
        if let Some(id) = stranded {
            self.broken("not-stranded", format!("{id} has a socket that wants the session, and no living one has it"));
        }
    }

    pub(super) fn broken(&mut self, invariant: &'static str, what: String) {
        self.report.broken.get_or_insert(Violation { invariant, what });
    }
}
