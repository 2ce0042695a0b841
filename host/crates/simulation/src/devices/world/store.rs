//! Simulates the store of the records: it changes them by compare-and-set, and is away now and then.

use pointwork_core::devices::{DeviceRecord, StoreAway, SwapResult};

use super::state::DeviceWorld;
use crate::devices::events::{DeviceEvent, DeviceOperation};
use crate::devices::sockets::{SimulatedSocket, index};

impl DeviceWorld<'_> {
    pub(super) fn read(&mut self, op: DeviceOperation) {
        let record = &self.records[op.device];
        let result = Box::new(if self.is_store_away { Err(StoreAway) } else { Ok(record.clone()) });
        // What is not answered at all counts as failed after a while.
        if !(self.is_store_away && self.conditions.is_one_in_four(op.device)) {
            let delay_us = self.store_answer_us(op.device);
            self.after(delay_us, DeviceEvent::ReadDone { op, result });
        }
    }

    pub(super) fn swap(&mut self, op: DeviceOperation, expected: u64, record: DeviceRecord) {
        self.touch(op.device);
        let is_away = self.is_store_away;
        if is_away && let Some(late_us) = self.conditions.late_swap_us() {
            return self.after(late_us, DeviceEvent::Swap { op, expected, record: Box::new(record) });
        }
        // An operation that nobody hears of may have been done.
        let is_done = !is_away || self.conditions.is_one_in_four(op.device);
        let done = if is_done { self.compare_and_set(op.device, expected, record) } else { SwapResult::Away };
        let swapped = if is_away { SwapResult::Away } else { done };
        self.auditor.count(format_args!("swap {swapped:?}"));
        if !(is_away && self.conditions.is_one_in_four(op.device)) {
            let delay_us = self.store_answer_us(op.device);
            self.after(delay_us, DeviceEvent::SwapDone { op, swapped });
        }
    }

    /// One way back from the store.
    fn store_answer_us(&mut self, device: usize) -> u64 {
        let Some(stuck_us) = self.conditions.stuck_us() else { return self.conditions.store_us(device) };
        self.auditor.trouble();
        self.auditor.count(format_args!("store stuck"));
        stuck_us
    }

    pub(crate) fn compare_and_set(&mut self, device: usize, expected: u64, record: DeviceRecord) -> SwapResult {
        #[cfg(test)]
        let expected = self.expected_epoch(device, expected);
        if self.records[device].epoch != expected {
            return SwapResult::Lost;
        }
        let believed = self.believed(device);
        #[cfg(test)]
        let now_ms = self.unix_ms();
        let (known, old) = (&mut self.devices[device], &self.records[device]);
        let socket = |record: &DeviceRecord| record.holder.as_ref().map(|holder| holder.socket);
        let holder = |record: &DeviceRecord| self.sockets.get(index(socket(record)?)).filter(|its| its.is_known);
        let silence_us = holder(&record).map(|its| its.longest_silence_us(self.now_us));
        self.auditor.check_written(&known.id, (old, &record), &believed, silence_us);
        let is_alive = holder(old).is_some_and(SimulatedSocket::is_open);
        #[cfg(test)]
        self.auditor.trials.written(&known.id, old, &record, is_alive, now_ms);
        // The session was taken from a socket that is alive.
        let is_flip = is_alive && record.holder.is_some() && socket(old) != socket(&record);
        known.meter.flips += u64::from(is_flip && self.now_us < self.end_us);
        self.records[device] = record;
        SwapResult::Won
    }

    pub(super) fn store_away(&mut self) {
        self.is_store_away = true;
        self.auditor.trouble();
        self.auditor.count(format_args!("store away"));
    }

    pub(super) fn store_back(&mut self, is_empty: bool) {
        if !std::mem::take(&mut self.is_store_away) {
            return;
        }
        self.auditor.trouble();
        if is_empty && self.now_us < self.end_us {
            self.records.fill(DeviceRecord::default());
            self.auditor.count(format_args!("store emptied"));
        }
        for place in 0..self.running.len() {
            let replica = self.running[place];
            let delay_us = self.conditions.store_back_us(replica, self.now_us);
            self.after(delay_us, DeviceEvent::StoreReconnected { replica });
        }
    }

    pub(super) fn store_reconnected(&mut self, replica: usize) {
        self.auditor.trouble();
        if self.replicas[replica].is_running {
            let at = self.moment(replica);
            self.replicas[replica].machine.handle_store_back(at);
        }
    }
}
