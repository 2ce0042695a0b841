//! Decides a register whose turn it is: who holds the session, and whether the newcomer gets it.

use std::sync::Arc;

use super::state::{HeldSession, Job, JobPurpose, JobStep, PendingRegister, SwapPlan, Takeover};
use super::{DeviceSessions, SHORT_RETRY_MS, SWAPS_MAX};
use crate::decisions::{Departure, Incumbent, Liveness, Newcomer, SettleVerdict};
use crate::devices::command::DeviceCommand;
use crate::devices::event::SessionReason;
use crate::devices::record::{DeviceRecord, Fate, Holder};
use crate::devices::registration::{AuthError, OpId, OwnerAnswer, ThrottleReason};
use crate::experiments::Exposure;
use crate::time::{SPAN_UNKNOWN, span_ms};

impl DeviceSessions {
    /// The record was read.
    pub(super) fn decide(&mut self, device: &Arc<str>, waiting: PendingRegister, record: DeviceRecord) {
        let socket = waiting.socket;
        if !self.is_queued(socket, device) {
            return;
        }
        if self.holder(device).is_some_and(|local| !record.is_held_by(&self.replica, local.socket)) {
            // First the record and the holder here are brought in line.
            if let Some(entry) = self.devices.get_mut(device) {
                entry.queue.push_front(waiting);
            }
            return self.reconcile(device, record, 0);
        }
        if let Some(error) = self.rejection(&waiting, &record) {
            return self.reject(socket, None, error);
        }
        match record.holder.clone() {
            None => self.take(device, waiting, record, Fate::Evicted, Takeover::of(SessionReason::Free)),
            Some(holder) if holder.replica != self.replica => {
                self.ask_owner(device, JobPurpose::Register(waiting), record, holder)
            }
            // It was accepted by a compare-and-set that was said to be lost.
            Some(holder) if holder.socket == socket => {
                let take = Takeover { rival: waiting.rival.clone(), ..Takeover::of(SessionReason::Free) };
                self.accepted(device, waiting, record, take);
            }
            Some(holder) => match self.local_incumbent(device) {
                Some(incumbent) => self.ask_settle(device, waiting, record, incumbent, Some(holder)),
                None => self.take_from_the_gone(device, waiting, record, None),
            },
        }
    }

    /// Why a register is not let in, whoever holds the session.
    pub(super) fn rejection(&self, waiting: &PendingRegister, record: &DeviceRecord) -> Option<AuthError> {
        if record.is_blocked {
            return Some(AuthError::Blocked);
        }
        let claim = &waiting.claim;
        if record.is_paired && !claim.has_proved {
            return Some(AuthError::AlreadyPaired);
        }
        // It was made for whoever brought that code, and another one was paired.
        let is_anothers = record.is_paired && claim.pairing_code.is_some() && claim.pairing_code != record.pairing_code;
        is_anothers.then_some(AuthError::BadToken)
    }

    pub(super) fn ask_owner(&mut self, device: &Arc<str>, work: JobPurpose, record: DeviceRecord, holder: Holder) {
        let (replica, socket) = (holder.replica.clone(), holder.socket);
        let op = self.begin(device, work, JobStep::AskingOwner { record, holder });
        self.commands.push_back(DeviceCommand::AskOwner { device: device.clone(), op, replica, socket });
    }

    pub(super) fn on_owner(&mut self, device: &Arc<str>, job: Job, answer: OwnerAnswer) {
        let JobStep::AskingOwner { record, holder } = job.step else { return };
        let waiting = match job.work {
            JobPurpose::Reconcile { attempts } => return self.rival_found(device, record, holder, answer, attempts),
            JobPurpose::Register(waiting) => waiting,
        };
        let incumbent = match answer {
            OwnerAnswer::Gone => return self.take_from_the_gone(device, waiting, record, None),
            OwnerAnswer::Alive { age_ms, idle_ms, heartbeat_ms } => {
                Incumbent { liveness: Liveness::Alive, age_ms, idle_ms, heartbeat_ms, local: false }
            }
            OwnerAnswer::Silent => {
                let age_ms = u32::try_from(self.unix_ms.saturating_sub(holder.accepted_ms)).unwrap_or(SPAN_UNKNOWN);
                let (idle_ms, heartbeat_ms) = (SPAN_UNKNOWN, SPAN_UNKNOWN);
                Incumbent { liveness: Liveness::Doubtful, age_ms, idle_ms, heartbeat_ms, local: false }
            }
        };
        self.ask_settle(device, waiting, record, incumbent, Some(holder));
    }

    /// `holder` is `None` while the store is away.
    pub(super) fn ask_settle(
        &mut self,
        device: &Arc<str>,
        waiting: PendingRegister,
        record: DeviceRecord,
        incumbent: Incumbent,
        holder: Option<Holder>,
    ) {
        let local = self.devices.get(device).and_then(|entry| entry.holder.as_ref());
        let of_local = |local: &HeldSession| (local.claim.fingerprint, local.claim.address);
        let of_holder = holder.as_ref().map(|holder| (holder.fingerprint, holder.address));
        let (fingerprint, address) = of_holder.or(local.map(of_local)).unwrap_or_default();
        let claim = &waiting.claim;
        let newcomer = Newcomer {
            paired: claim.has_proved,
            same_fingerprint: claim.fingerprint.is_some() && claim.fingerprint == fingerprint,
            same_address: claim.address.is_some() && claim.address == address,
            polling: claim.is_polling,
        };
        let (socket, history) = (waiting.socket, record.history(self.unix_ms));
        let (trial, pinned) = (record.trial.clone(), waiting.exposure.clone());
        let step = JobStep::AskingSettle { record, incumbent, holder, is_gone: false };
        let op = self.begin(device, JobPurpose::Register(waiting), step);
        self.commands.push_back(DeviceCommand::AskSettle {
            device: device.clone(),
            op,
            socket,
            window_ms: self.settings.settle_ms,
            incumbent,
            newcomer,
            history,
            trial,
            pinned,
        });
    }

    pub(super) fn on_verdict(
        &mut self,
        device: &Arc<str>,
        job: Job,
        verdict: SettleVerdict,
        exposure: Option<Exposure>,
    ) {
        let (JobStep::AskingSettle { record, incumbent, holder, is_gone }, JobPurpose::Register(mut waiting)) =
            (job.step, job.work)
        else {
            return;
        };
        if !self.is_queued(waiting.socket, device) {
            return;
        }
        let record = exposure.as_ref().map_or_else(|| record.clone(), |arm| record.exposed(arm, self.unix_ms));
        waiting.exposure = exposure.map(Box::new);
        // What its transport knows may have been brought since it was asked about.
        let incumbent = match self.local_incumbent(device).filter(|_| incumbent.local) {
            Some(known) => Incumbent { idle_ms: incumbent.idle_ms.min(known.idle_ms), ..incumbent },
            None => incumbent,
        };
        let is_heard_of = incumbent.idle_ms != SPAN_UNKNOWN;
        let record = if is_heard_of { record.silent_for(incumbent.idle_ms) } else { record };
        let is_gone = is_gone || incumbent.local && self.holder(device).is_none();
        let ask = Some(job.op);
        let beside_ms = match verdict {
            _ if is_gone => 0,
            SettleVerdict::Accept => 0,
            SettleVerdict::Beside(beside_ms) => beside_ms,
            SettleVerdict::Refuse(retry_after_ms) => {
                let retry_after_ms = retry_after_ms.max(1);
                let Some(holder) = holder else {
                    return self.refused_by_settle(device, &waiting, retry_after_ms, job.op, incumbent);
                };
                let plan = SwapPlan::Refuse { retry_after_ms, ask: job.op, incumbent, holder, is_gone: false };
                let next = record.refused(self.unix_ms);
                return self.swap(device, JobPurpose::Register(waiting), record, next, plan);
            }
        };
        let reason = if beside_ms > 0 { SessionReason::Beside } else { SessionReason::Settled };
        match holder {
            None if is_gone => {
                self.accept_provisionally(device, waiting, Takeover::of(SessionReason::Provisional), None)
            }
            None => {
                let take = Takeover { rival: None, reason, ask, incumbent: Some(incumbent), beside_ms };
                self.accept_provisionally(device, waiting, take, None);
            }
            Some(_) if is_gone => self.take_from_the_gone(device, waiting, record, ask),
            Some(holder) => {
                let take = Takeover { rival: Some(holder), reason, ask, incumbent: Some(incumbent), beside_ms };
                self.take(device, waiting, record, Fate::Evicted, take);
            }
        }
    }

    fn take_from_the_gone(
        &mut self,
        device: &Arc<str>,
        waiting: PendingRegister,
        record: DeviceRecord,
        ask: Option<OpId>,
    ) {
        let ended = self.devices.get(device).and_then(|entry| entry.ended);
        let ended = ended.filter(|end| record.is_held_by(&self.replica, end.socket));
        let how = ended.map_or(Departure::TransportLost, |end| end.how);
        let record = ended.map_or_else(|| record.clone(), |end| record.silent_for(end.silent_ms));
        let take = Takeover { ask, ..Takeover::of(SessionReason::HolderGone) };
        self.take(device, waiting, record, Fate::Gone(how), take);
    }

    /// Has the record written that gives the newcomer the session.
    fn take(
        &mut self,
        device: &Arc<str>,
        mut waiting: PendingRegister,
        record: DeviceRecord,
        fate: Fate,
        take: Takeover,
    ) {
        let next = waiting.claim.applied_to(&record).accepted(self.holder_of(&waiting), fate, 0, self.unix_ms);
        waiting.rival = take.rival.clone();
        self.swap(device, JobPurpose::Register(waiting), record, next, SwapPlan::Take(take));
    }

    /// The holder that a register would be; its epoch is the record's to give.
    pub(super) fn holder_of(&self, waiting: &PendingRegister) -> Holder {
        Holder {
            replica: self.replica.clone(),
            socket: waiting.socket,
            epoch: 0,
            accepted_ms: self.unix_ms,
            has_proved: waiting.claim.has_proved,
            fingerprint: waiting.claim.fingerprint,
            address: waiting.claim.address,
        }
    }

    /// What is known of the holder here.
    pub(super) fn local_incumbent(&self, device: &str) -> Option<Incumbent> {
        let local = self.devices.get(device)?.holder.as_ref()?;
        let since = |at| span_ms(self.now.saturating_since(at));
        let idle_ms = self.sockets.get(&local.socket).map_or(SPAN_UNKNOWN, |known| since(known.last_packet));
        Some(Incumbent {
            liveness: Liveness::Alive,
            age_ms: since(local.accepted),
            idle_ms,
            heartbeat_ms: since(local.heartbeat),
            local: true,
        })
    }

    /// The record had changed, or the decision does not hold any more: it is made anew, a few times at most.
    pub(super) fn decide_again(&mut self, device: &Arc<str>, mut waiting: PendingRegister) {
        waiting.attempts += 1;
        if !self.is_queued(waiting.socket, device) {
            return;
        }
        if waiting.attempts >= SWAPS_MAX || self.is_late(&waiting) {
            let word = ThrottleReason::SessionSettle;
            return self.send_throttled(waiting.socket, None, word, SHORT_RETRY_MS, SessionReason::Contended);
        }
        self.read(device, JobPurpose::Register(waiting));
    }
}
