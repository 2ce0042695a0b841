//! Ends a register: the newcomer gets the session, or is refused.

use std::sync::Arc;

use super::DeviceSessions;
use super::state::{HeldSession, PendingRegister, SocketStage, SwapPlan, Takeover};
use crate::decisions::Incumbent;
use crate::devices::command::DeviceCommand;
use crate::devices::event::{SessionEvent, SessionOutcome, SessionReason};
use crate::devices::record::{DeviceRecord, Fate};
use crate::devices::registration::{CloseReason, OpId, SwapResult, ThrottleReason};

impl DeviceSessions {
    /// The compare-and-set of a register is done.
    pub(super) fn register_swapped(
        &mut self,
        device: &Arc<str>,
        waiting: PendingRegister,
        record: DeviceRecord,
        plan: SwapPlan,
        swapped: SwapResult,
    ) {
        match (plan, swapped) {
            (SwapPlan::Take(take), SwapResult::Won) => self.accepted(device, waiting, record, take),
            // It was there a moment ago, and so was the holder, who can be told nothing that is not written: a second one beside it
            // would be worse than a newcomer that comes again.
            (SwapPlan::Take(take), SwapResult::Away) if take.is_from_another() => {
                let (word, retry_after_ms) = (ThrottleReason::SessionSettle, self.settings.settle_ms.max(1));
                self.send_throttled(waiting.socket, None, word, retry_after_ms, SessionReason::Unchecked);
                let offline_at = self.debounced();
                if let Some(entry) = self.devices.get_mut(device) {
                    // Should it be written all the same, the holder that it replaced is to go.
                    entry.replaced = entry.replaced.take().or(take.rival);
                    entry.debounce(offline_at);
                }
                self.mark_unsure(device);
            }
            (SwapPlan::Take(take), SwapResult::Away) => self.accept_provisionally(device, waiting, take, Some(record)),
            (SwapPlan::Refuse { retry_after_ms, ask, incumbent, is_gone, .. }, SwapResult::Won | SwapResult::Away) => {
                let is_gone = is_gone || incumbent.local && self.holder(device).is_none();
                match (is_gone, swapped) {
                    (false, _) => self.refused_by_settle(device, &waiting, retry_after_ms, ask, incumbent),
                    (true, SwapResult::Away) => {
                        self.accept_provisionally(device, waiting, Takeover::of(SessionReason::Provisional), None)
                    }
                    (true, _) => self.decide_again(device, waiting),
                }
            }
            (_, SwapResult::Lost) => self.decide_again(device, waiting),
            (SwapPlan::Touch { .. } | SwapPlan::Retake { .. } | SwapPlan::Release | SwapPlan::Offline, _) => {}
        }
    }

    /// `settle` refused the newcomer.
    pub(super) fn refused_by_settle(
        &mut self,
        device: &Arc<str>,
        waiting: &PendingRegister,
        retry_after_ms: u32,
        ask: OpId,
        incumbent: Incumbent,
    ) {
        let socket = waiting.socket;
        if self.end_socket(socket).is_none() {
            return;
        }
        let reason = ThrottleReason::SessionSettle;
        self.commands.push_back(DeviceCommand::Throttled { socket, reason, retry_after_ms });
        self.commands.push_back(DeviceCommand::Close { socket, why: CloseReason::Refused });
        let epoch = self.devices.get(device).map_or(0, |entry| entry.known.epoch);
        self.commands.push_back(DeviceCommand::Event(SessionEvent {
            device: Some(device.clone()),
            socket: Some(socket),
            outcome: SessionOutcome::Refused,
            reason: SessionReason::Settled,
            epoch,
            ask: Some(ask),
            incumbent: Some(incumbent),
            exposure: waiting.exposure.clone(),
        }));
    }

    /// The record names the newcomer: whoever had the session is evicted, and the newcomer has it.
    ///
    /// It may be gone by now, or even evicted by a newer one. Then it lost the session as any holder does; it was taken
    /// over all the same.
    pub(super) fn accepted(
        &mut self,
        device: &Arc<str>,
        waiting: PendingRegister,
        record: DeviceRecord,
        take: Takeover,
    ) {
        let epoch = record.holder.as_ref().map_or(record.epoch, |holder| holder.epoch);
        self.displace(device, take.beside_ms);
        if let Some(rival) = take.rival.clone().filter(|rival| rival.replica != self.replica) {
            self.evict_remote(device, epoch, &rival, take.beside_ms);
        }
        self.evict_replaced(device, epoch);
        // Changed or not: whoever wrote the last status may not have lived to tell it.
        self.tell_status(device, &record);
        if !self.is_queued(waiting.socket, device) {
            let offline_at = self.debounced();
            if let Some(entry) = self.devices.get_mut(device) {
                entry.debounce(offline_at);
                entry.is_reconcile_wanted = true;
            }
        } else if waiting.evicted_by > epoch {
            let (word, retry_after_ms) = (ThrottleReason::SessionSettle, self.settings.settle_ms);
            self.send_throttled(waiting.socket, None, word, retry_after_ms, SessionReason::Superseded);
        } else {
            self.install_holder(device, waiting, &record, true, take);
        }
    }

    /// The store is away: the newcomer has the session until it is known better. `written`: the record that may or may not
    /// have been written.
    pub(super) fn accept_provisionally(
        &mut self,
        device: &Arc<str>,
        waiting: PendingRegister,
        take: Takeover,
        written: Option<DeviceRecord>,
    ) {
        let offline_at = self.debounced();
        let is_queued = self.is_queued(waiting.socket, device);
        let Some(entry) = self.devices.get_mut(device) else { return };
        if let Some(rival) = take.rival.clone().filter(|rival| written.is_some() && rival.replica != self.replica) {
            entry.replaced.get_or_insert(rival);
        }
        if !is_queued {
            // If the record names it all the same, reconciling finds that.
            entry.debounce(offline_at);
            return self.mark_unsure(device);
        }
        let above = entry.holder.as_ref().map_or(0, |local| local.epoch);
        let claimed = waiting.claim.applied_to(&entry.known);
        let record =
            written.unwrap_or_else(|| claimed.accepted(self.holder_of(&waiting), Fate::Evicted, above, self.unix_ms));
        if waiting.evicted_by > record.epoch {
            let (word, retry_after_ms) = (ThrottleReason::SessionSettle, self.settings.settle_ms);
            self.send_throttled(waiting.socket, None, word, retry_after_ms, SessionReason::Superseded);
            return self.mark_unsure(device);
        }
        self.displace(device, take.beside_ms);
        self.tell_status(device, &record);
        if let Some(entry) = self.devices.get_mut(device) {
            entry.is_status_unsure = true;
        }
        self.install_holder(device, waiting, &record, false, take);
        self.mark_unsure(device);
    }

    /// The newcomer is the holder here.
    fn install_holder(
        &mut self,
        device: &Arc<str>,
        waiting: PendingRegister,
        record: &DeviceRecord,
        is_sure: bool,
        take: Takeover,
    ) {
        let (now, socket) = (self.now, waiting.socket);
        if let Some(known) = self.sockets.get_mut(&socket) {
            known.stage = SocketStage::Holder { device: device.clone() };
        }
        let epoch = record.holder.as_ref().map_or(record.epoch, |holder| holder.epoch);
        let exposure = waiting.exposure.filter(|_| take.ask.is_some());
        let Some(entry) = self.devices.get_mut(device) else { return };
        entry.known = record.clone();
        (entry.ended, entry.offline_at, entry.is_offline_due) = (None, None, false);
        entry.holder = Some(HeldSession {
            socket,
            epoch,
            accepted: now,
            accepted_ms: self.unix_ms,
            heartbeat: now,
            claim: waiting.claim,
            is_silent: false,
            is_sure,
            is_refreshed: false,
            refresh_written: now,
        });
        let (status, pairing_code) = (record.status_held(), record.pairing_code.clone());
        self.commands.push_back(DeviceCommand::Registered { socket, device: device.clone(), status, pairing_code });
        self.commands.push_back(DeviceCommand::Event(SessionEvent {
            device: Some(device.clone()),
            socket: Some(socket),
            outcome: SessionOutcome::Accepted,
            reason: if is_sure { take.reason } else { SessionReason::Provisional },
            epoch,
            ask: take.ask,
            incumbent: take.incumbent,
            exposure,
        }));
    }

    /// Tells dashboards.
    pub(super) fn tell_status(&mut self, device: &Arc<str>, record: &DeviceRecord) {
        if let Some(entry) = self.devices.get_mut(device) {
            entry.status_epoch = entry.status_epoch.max(record.epoch);
            entry.is_status_unsure = false;
        }
        self.commands.push_back(DeviceCommand::Status {
            device: device.clone(),
            status: record.status,
            epoch: record.epoch,
            owner: record.owner.clone(),
            last_seen_ms: record.last_seen_ms,
        });
    }
}
