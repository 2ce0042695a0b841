//! Decides while the store is away, and compares devices with their records when it is back.
//!
//! Holders stay. A newcomer of a device that has a holder here is decided by `settle` with what is known here; any other that
//! proved its token is accepted for the time being. The store is tried again now and then; when it answers, the devices
//! that it could not be asked about are compared with their records, a bounded number at a time.

use std::sync::Arc;

use super::DeviceSessions;
use super::state::{PendingRegister, Takeover, TimerOwner};
use crate::devices::event::SessionReason;
use crate::devices::registration::{Moment, ThrottleReason};
use crate::time::millis;

impl DeviceSessions {
    /// The store is there again after the connection to it was lost: it may have been restarted, with an older state or none.
    /// To be said after every reconnect. Every holder here is compared with its record.
    pub fn handle_store_back(&mut self, at: Moment) {
        self.advance(at);
        self.store_answered();
        self.store.back_at = Some(self.now);
        let held = self.devices.iter().filter(|(_, entry)| entry.holder.is_some()).map(|(device, _)| device);
        self.store.unsure.extend(held.cloned());
        self.reconcile_unsure();
    }

    /// Decides a register by what is known here.
    pub(super) fn decide_alone(&mut self, device: &Arc<str>, waiting: PendingRegister) {
        if !self.is_queued(waiting.socket, device) {
            return;
        }
        let Some(entry) = self.devices.get(device) else { return };
        let known = entry.known.clone();
        if let Some(error) = self.rejection(&waiting, &known) {
            return self.reject(waiting.socket, None, error);
        }
        if known.epoch == 0 && !waiting.claim.has_proved {
            // It may be paired, and then a pairing code must not get it.
            let retry_after_ms = self.settings.store_retry_ms.max(1);
            let word = ThrottleReason::ReconnectRate;
            return self.send_throttled(waiting.socket, None, word, retry_after_ms, SessionReason::Unchecked);
        }
        match self.local_incumbent(device) {
            Some(incumbent) => self.ask_settle(device, waiting, known, incumbent, None),
            None => self.accept_provisionally(device, waiting, Takeover::of(SessionReason::Provisional), None),
        }
    }

    /// A device's record is to be read when the store is back.
    pub(super) fn mark_unsure(&mut self, device: &Arc<str>) {
        self.store.reconciling.remove(device);
        self.store.unsure.insert(device.clone());
        // It may be back by now, and nobody else ask it anything.
        let at = if self.is_store_resting() { self.store.probe_at } else { self.now };
        self.timers.insert((at, TimerOwner::Store));
    }

    /// Reconciling a device is done, and the next device may begin.
    pub(super) fn end_reconcile(&mut self, device: &Arc<str>) {
        if self.store.reconciling.remove(device) && !self.store.unsure.is_empty() {
            self.timers.insert((self.now, TimerOwner::Store));
        }
    }

    /// Whether the store is away and not to be tried yet.
    pub(super) fn is_store_resting(&self) -> bool {
        self.store.is_away && self.now < self.store.probe_at
    }

    pub(super) fn store_failed(&mut self) {
        self.timers.remove(&(self.store.probe_at, TimerOwner::Store));
        self.store.is_away = true;
        self.store.probe_at = self.now + millis(self.settings.store_retry_ms);
        self.timers.insert((self.store.probe_at, TimerOwner::Store));
    }

    pub(super) fn store_answered(&mut self) {
        if std::mem::take(&mut self.store.is_away) {
            self.timers.remove(&(self.store.probe_at, TimerOwner::Store));
            self.store.back_at = Some(self.now);
        }
    }

    /// Begins to compare devices with their records, as many as may be at once; one while the store may still be away.
    pub(super) fn reconcile_unsure(&mut self) {
        if self.is_store_resting() {
            return;
        }
        let at_once = if self.store.is_away { 1 } else { self.settings.reconciles_max.max(1) };
        while self.store.reconciling.len() < at_once
            && let Some(device) = self.store.unsure.pop_first()
        {
            let Some(entry) = self.devices.get_mut(&device) else { continue };
            entry.is_reconcile_wanted = true;
            self.store.reconciling.insert(device.clone());
            self.run_device(&device);
        }
    }
}
