//! Reconciles a device: its record in the store and its holder on this replica are made to agree.

use std::sync::Arc;
use std::time::Duration;

use super::state::{JobPurpose, SwapPlan};
use super::{DeviceSessions, SWAPS_MAX};
use crate::decisions::Departure;
use crate::devices::command::DeviceCommand;
use crate::devices::event::{SessionEvent, SessionOutcome, SessionReason};
use crate::devices::record::{DeviceRecord, DeviceStatus, Fate, Holder};
use crate::devices::registration::{AuthError, CloseReason, Moment, OwnerAnswer, SwapResult, ThrottleReason};
use crate::ids::SocketId;
use crate::time::millis;

/// How soon reconciling is tried again after the record changed under every attempt.
const RECONCILE_RETRY: Duration = Duration::from_millis(200);

impl DeviceSessions {
    /// A device's record names a replica that is known to be dead. To be said at every other replica, of every device of that
    /// one, and again a little later: what the dead one sent last may be on its way to the store. If nobody has the session
    /// after the debounce, one of the replicas says that the device is offline.
    pub fn handle_orphan(&mut self, device: &Arc<str>, replica: Arc<str>, at: Moment) {
        self.advance(at);
        if !self.devices.contains_key(device) && self.devices.len() >= self.settings.devices_max {
            return;
        }
        let offline_at = self.debounced();
        let entry = self.devices.entry(device.clone()).or_default();
        let is_known = entry.orphan_of.as_ref() == Some(&replica);
        entry.orphan_of = Some(replica);
        if entry.holder.is_some() {
            // One here that the dead one had taken the session from, and not yet evicted: it has it again.
            entry.is_reconcile_wanted = true;
        } else if is_known {
            entry.offline_at.get_or_insert(offline_at);
        } else {
            entry.debounce(offline_at);
        }
        self.run_device(device);
    }

    /// The record was read.
    pub(super) fn reconcile(&mut self, device: &Arc<str>, record: DeviceRecord, attempts: u32) {
        match self.devices.get(device).and_then(|entry| entry.holder.as_ref()) {
            Some(local) if record.is_held_by(&self.replica, local.socket) => {
                self.confirm_holder(device, record, attempts)
            }
            Some(_) if record.is_blocked => self.lose_session(device, SessionReason::Operator),
            Some(local) => match record.holder.clone() {
                Some(holder) if holder.epoch > local.epoch && holder.replica != self.replica => {
                    self.ask_owner(device, JobPurpose::Reconcile { attempts }, record, holder);
                }
                None if record.epoch > local.epoch && record.is_ended_by_operator() => {
                    self.lose_session(device, SessionReason::Operator);
                }
                rival => {
                    let rival = rival.filter(|rival| rival.replica != self.replica);
                    self.retake(device, record, rival, attempts);
                }
            },
            None => self.clear_record(device, record, attempts),
        }
    }

    /// What was found of a newer holder at another replica than the one here.
    pub(super) fn rival_found(
        &mut self,
        device: &Arc<str>,
        record: DeviceRecord,
        rival: Holder,
        answer: OwnerAnswer,
        attempts: u32,
    ) {
        match (answer, self.holder(device)) {
            (_, None) => self.clear_record(device, record, attempts),
            (OwnerAnswer::Gone, Some(_)) => self.retake(device, record, None, attempts),
            // The record is the authority, unless the one it names is proven gone.
            (OwnerAnswer::Alive { .. } | OwnerAnswer::Silent, Some(local)) if rival.epoch > local.epoch => {
                self.lose_session(device, SessionReason::Superseded);
            }
            (OwnerAnswer::Alive { .. } | OwnerAnswer::Silent, Some(_)) => {
                self.retake(device, record, Some(rival), attempts);
            }
        }
    }

    /// The record names the holder here: it is sure, and the record says how it is.
    fn confirm_holder(&mut self, device: &Arc<str>, record: DeviceRecord, attempts: u32) {
        let Some(entry) = self.devices.get_mut(device) else { return };
        entry.is_offline_due = false;
        let Some(local) = &mut entry.holder else { return };
        local.epoch = record.holder.as_ref().map_or(local.epoch, |holder| holder.epoch);
        // What was said of it while the store was away may not be what the record says.
        let is_news = !std::mem::replace(&mut local.is_sure, true);
        let (epoch, is_refresh) = (local.epoch, std::mem::take(&mut local.is_refreshed));
        let status = if local.is_silent { DeviceStatus::Offline } else { record.status_held() };
        self.evict_replaced(device, epoch);
        let (is_stale, told) = self.is_stale(device, &record);
        if is_refresh || status != record.status || is_stale {
            let next = record.touched(status, is_refresh, told, self.unix_ms);
            let plan = SwapPlan::Touch { is_news: is_news || is_stale };
            return self.swap(device, JobPurpose::Reconcile { attempts }, record, next, plan);
        }
        if is_news {
            self.tell_status(device, &record);
        }
        self.end_reconcile(device);
    }

    /// The record does not name the holder here and should.
    fn retake(&mut self, device: &Arc<str>, record: DeviceRecord, rival: Option<Holder>, attempts: u32) {
        let Some(local) = self.devices.get(device).and_then(|entry| entry.holder.as_ref()) else { return };
        if record.is_paired && !local.claim.has_proved {
            return self.lose_session(device, SessionReason::Superseded);
        }
        let holder = Holder {
            replica: self.replica.clone(),
            socket: local.socket,
            epoch: 0,
            accepted_ms: local.accepted_ms,
            has_proved: local.claim.has_proved,
            fingerprint: local.claim.fingerprint,
            address: local.claim.address,
        };
        let fate = if rival.is_some() { Fate::Evicted } else { Fate::Gone(Departure::ReplicaLost) };
        let next = local.claim.applied_to(&record).accepted(holder, fate, local.epoch, self.unix_ms);
        self.swap(device, JobPurpose::Reconcile { attempts }, record, next, SwapPlan::Retake { rival });
    }

    /// Nobody here holds the session: the record names none of this replica's, and none of a dead one's; and if it is time it
    /// says that the device is offline.
    fn clear_record(&mut self, device: &Arc<str>, record: DeviceRecord, attempts: u32) {
        let (now, unix_ms, debounce) = (self.now, self.unix_ms, millis(self.settings.offline_debounce_ms));
        let settled_at = self.store.back_at.map(|at| at + debounce);
        let replica = self.replica.clone();
        let Some(entry) = self.devices.get_mut(device) else { return };
        let is_due = std::mem::take(&mut entry.is_offline_due);
        let is_mine = |holder: &Holder| holder.replica == replica;
        let is_orphan = |holder: &Holder| is_due && entry.orphan_of.as_ref() == Some(&holder.replica);
        let work = JobPurpose::Reconcile { attempts };
        match &record.holder {
            Some(holder) if is_mine(holder) || is_orphan(holder) => {
                let ended = entry.ended.filter(|end| is_mine(holder) && end.socket == holder.socket);
                let is_lost = if is_mine(holder) { Departure::TransportLost } else { Departure::ReplicaLost };
                let known = ended.map_or_else(|| record.clone(), |end| record.silent_for(end.silent_ms));
                let next = known.released(ended.map_or(is_lost, |end| end.how), unix_ms);
                let replaced_by = is_mine(holder).then_some(holder.epoch);
                // Said in a second step, if somebody else has not come by then.
                (entry.is_offline_due, entry.is_reconcile_wanted) = (is_due, is_due);
                self.swap(device, work, record, next, SwapPlan::Release);
                if let Some(epoch) = replaced_by {
                    self.evict_replaced(device, epoch);
                }
            }
            // It may have been there before the store was lost, and its replica be about to say so.
            None if is_due && settled_at.is_some_and(|at| at > now) => {
                entry.offline_at = settled_at;
                self.end_reconcile(device);
            }
            // It came back meanwhile and went again. The replica where that was is to say so in its time; and this one somewhat later, should
            // that one not live to do it.
            None if is_due && entry.knows_no_such_end(&record, &replica) => {
                (entry.ended_since, entry.offline_at) = (record.ended, Some(now + debounce));
                self.end_reconcile(device);
            }
            // If it says so already, but by an epoch that dashboards take for an old one, it is to say so again.
            None if is_due && (record.status != DeviceStatus::Offline || record.epoch <= entry.status_epoch) => {
                let next = record.offline(entry.status_epoch, unix_ms);
                self.swap(device, work, record, next, SwapPlan::Offline);
            }
            Some(_) | None => self.leave_record(device, record, attempts, is_due),
        }
    }

    /// The record names somebody else, or nobody and says so. `is_due`: it is time to say that the device is offline.
    fn leave_record(&mut self, device: &Arc<str>, record: DeviceRecord, attempts: u32, is_due: bool) {
        let Some(entry) = self.devices.get_mut(device) else { return };
        entry.replaced = None;
        if is_due {
            (entry.orphan_of, entry.ended, entry.ended_since) = (None, None, None);
        }
        let is_status_unsure = entry.is_status_unsure;
        let (is_stale, told) = self.is_stale(device, &record);
        if is_status_unsure || is_due && record.holder.is_none() {
            // Whoever wrote it may not have lived to tell it, or not know that it was written.
            self.tell_status(device, &record);
        }
        if is_stale {
            let next = record.touched(record.status, false, told, self.unix_ms);
            return self.swap(
                device,
                JobPurpose::Reconcile { attempts },
                record,
                next,
                SwapPlan::Touch { is_news: true },
            );
        }
        self.end_reconcile(device);
    }

    /// Whether a record needs a greater epoch although it says what it should, and one above which: with it what nobody
    /// waits for can no longer be done, and dashboards believe it more than what they were told while the store was away.
    fn is_stale(&self, device: &str, record: &DeviceRecord) -> (bool, u64) {
        let told = self.devices.get(device).map_or(0, |entry| entry.status_epoch);
        let has_stray_swap = self.devices.get(device).is_some_and(|entry| entry.has_stray_swap);
        (has_stray_swap || record.epoch < told, told)
    }

    /// The compare-and-set of a reconciliation has a result.
    pub(super) fn reconcile_swapped(
        &mut self,
        device: &Arc<str>,
        attempts: u32,
        before: &DeviceRecord,
        record: &DeviceRecord,
        plan: SwapPlan,
        swapped: SwapResult,
    ) {
        match swapped {
            SwapResult::Won => {
                self.end_reconcile(device);
                self.reconciled(device, before, record, plan);
            }
            SwapResult::Away => {
                self.wants_again(device, &plan, before, record);
                // What follows from its having been written is done when the record is read.
                if let Some(entry) = self.devices.get_mut(device) {
                    if let SwapPlan::Retake { rival: Some(rival) } = plan {
                        entry.replaced.get_or_insert(rival);
                    }
                    if let Some(local) = &mut entry.holder {
                        local.is_sure = false;
                    }
                }
                self.mark_unsure(device);
            }
            SwapResult::Lost => {
                self.wants_again(device, &plan, before, record);
                if attempts + 1 < SWAPS_MAX {
                    self.read(device, JobPurpose::Reconcile { attempts: attempts + 1 });
                } else {
                    self.end_reconcile(device);
                    let retry_at = self.now + RECONCILE_RETRY;
                    if let Some(entry) = self.devices.get_mut(device) {
                        entry.retry_at = Some(retry_at);
                    }
                }
            }
        }
    }

    fn reconciled(&mut self, device: &Arc<str>, before: &DeviceRecord, record: &DeviceRecord, plan: SwapPlan) {
        let Some(entry) = self.devices.get_mut(device) else { return };
        let has_new_status = before.status != record.status;
        let is_news = match plan {
            SwapPlan::Touch { is_news } => {
                if has_new_status && record.status == DeviceStatus::Offline {
                    let socket = record.holder.as_ref().map(|holder| holder.socket);
                    self.event(Some(device), socket, SessionOutcome::Offline, SessionReason::Silent, record.epoch);
                }
                is_news
            }
            SwapPlan::Offline => {
                (entry.orphan_of, entry.ended, entry.ended_since) = (None, None, None);
                self.event(Some(device), None, SessionOutcome::Offline, SessionReason::HolderGone, record.epoch);
                // If it said so before, dashboards were told otherwise before the store was lost.
                true
            }
            SwapPlan::Retake { rival } => {
                let socket = entry.holder.as_mut().map(|local| {
                    (local.epoch, local.is_sure) = (record.epoch, true);
                    local.socket
                });
                // A silent one is to be said to be so, and one that went meanwhile to have gone.
                entry.is_reconcile_wanted = true;
                if let Some(rival) = rival {
                    self.evict_remote(device, record.epoch, &rival, 0);
                }
                self.event(Some(device), socket, SessionOutcome::Accepted, SessionReason::Reconciled, record.epoch);
                true
            }
            SwapPlan::Release | SwapPlan::Take(_) | SwapPlan::Refuse { .. } => false,
        };
        if has_new_status || is_news {
            self.tell_status(device, record);
        }
    }

    /// What a plan was to write is not written yet.
    fn wants_again(&mut self, device: &Arc<str>, plan: &SwapPlan, before: &DeviceRecord, record: &DeviceRecord) {
        let Some(entry) = self.devices.get_mut(device) else { return };
        match plan {
            SwapPlan::Offline => entry.is_offline_due = true,
            SwapPlan::Touch { is_news } => {
                if let Some(local) = &mut entry.holder {
                    local.is_refreshed |= record.events != before.events;
                    local.is_sure &= !is_news;
                }
            }
            _ => {}
        }
    }

    /// The holder here has the session no longer, and is told so.
    fn lose_session(&mut self, device: &Arc<str>, reason: SessionReason) {
        self.end_reconcile(device);
        let offline_at = self.debounced();
        let Some(entry) = self.devices.get_mut(device) else { return };
        let Some(local) = entry.holder.take() else { return };
        if !local.is_sure || reason == SessionReason::Operator {
            // Dashboards were told that it is there, of which the record may know nothing.
            entry.offline_at.get_or_insert(offline_at);
        }
        let socket = local.socket;
        if self.end_socket(socket).is_none() {
            return;
        }
        let is_blocked = self.devices.get(device).is_some_and(|entry| entry.known.is_blocked);
        let why = match reason {
            SessionReason::Operator if is_blocked => {
                self.commands.push_back(DeviceCommand::AuthError { socket, error: AuthError::Blocked });
                CloseReason::Operator
            }
            SessionReason::Operator => CloseReason::Operator,
            _ => {
                let retry_after_ms = self.settings.settle_ms;
                let reason = ThrottleReason::SessionSettle;
                self.commands.push_back(DeviceCommand::Throttled { socket, reason, retry_after_ms });
                CloseReason::Evicted
            }
        };
        self.commands.push_back(DeviceCommand::Close { socket, why });
        self.event(Some(device), Some(socket), SessionOutcome::Evicted, reason, local.epoch);
    }

    /// Reports a decision.
    pub(super) fn event(
        &mut self,
        device: Option<&Arc<str>>,
        socket: Option<SocketId>,
        outcome: SessionOutcome,
        reason: SessionReason,
        epoch: u64,
    ) {
        let (device, ask, incumbent) = (device.cloned(), None, None);
        let event = SessionEvent { device, socket, outcome, reason, epoch, ask, incumbent, exposure: None };
        self.commands.push_back(DeviceCommand::Event(event));
    }
}

impl DeviceRecord {
    fn is_ended_by_operator(&self) -> bool {
        self.ended.as_ref().is_some_and(|ended| ended.how == Departure::Evicted)
    }
}
