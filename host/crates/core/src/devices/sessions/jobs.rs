//! Runs the work of each device, one job at a time: begins the next job, handles its answers, and gives up when they
//! are late.

use std::sync::Arc;
use std::time::Duration;

use super::DeviceSessions;
use super::state::{DeviceState, Job, JobPurpose, JobStep, PendingRegister, SwapPlan, TimerOwner};
use crate::decisions::{Liveness, SettleVerdict, rules};
use crate::devices::command::DeviceCommand;
use crate::devices::event::SessionReason;
use crate::devices::record::{DeviceRecord, DeviceStatus, Ended};
use crate::devices::registration::{Moment, OpId, OwnerAnswer, ReadResult, StoreAway, SwapResult, ThrottleReason};
use crate::experiments::Exposure;
use crate::ids::SocketId;
use crate::time::{Time, millis};

impl DeviceSessions {
    /// The answer to a `Read`.
    pub fn handle_read(&mut self, device: &Arc<str>, op: OpId, result: ReadResult, at: Moment) {
        let Some(job) = self.answered(device, op, at, |step| matches!(step, JobStep::Reading)) else { return };
        self.on_read(device, job, result);
        self.run_device(device);
        self.reconcile_unsure();
    }

    /// The answer to a `Read`: there is a record that cannot be read. Nothing is known of this device; the store is there for
    /// others.
    pub fn handle_unreadable(&mut self, device: &Arc<str>, op: OpId, at: Moment) {
        let Some(job) = self.answered(device, op, at, |step| matches!(step, JobStep::Reading)) else { return };
        self.store_answered();
        match job.work {
            JobPurpose::Register(waiting) => self.busy(waiting.socket),
            JobPurpose::Reconcile { .. } => {
                let retry_at = self.now + millis(self.settings.step_timeout_ms);
                if let Some(entry) = self.devices.get_mut(device) {
                    entry.retry_at = Some(retry_at);
                }
                self.end_reconcile(device);
            }
        }
        self.run_device(device);
        self.reconcile_unsure();
    }

    /// The answer to an `AskOwner`.
    pub fn handle_owner(&mut self, device: &Arc<str>, op: OpId, answer: OwnerAnswer, at: Moment) {
        let is_asked = |step: &JobStep| matches!(step, JobStep::AskingOwner { .. });
        let Some(job) = self.answered(device, op, at, is_asked) else { return };
        self.on_owner(device, job, answer);
        self.run_device(device);
    }

    /// The answer to an `AskSettle`. If an arm gave it, that is written into the record with what comes of it.
    pub fn handle_verdict(
        &mut self,
        device: &Arc<str>,
        op: OpId,
        verdict: SettleVerdict,
        exposure: Option<Exposure>,
        at: Moment,
    ) {
        let is_asked = |step: &JobStep| matches!(step, JobStep::AskingSettle { .. });
        let Some(job) = self.answered(device, op, at, is_asked) else { return };
        self.on_verdict(device, job, verdict, exposure);
        self.run_device(device);
    }

    /// The answer to a `Swap`.
    pub fn handle_swapped(&mut self, device: &Arc<str>, op: OpId, swapped: SwapResult, at: Moment) {
        let is_swapping = |step: &JobStep| matches!(step, JobStep::Swapping { .. });
        let Some(job) = self.answered(device, op, at, is_swapping) else { return };
        self.on_swapped(device, job, swapped);
        self.run_device(device);
        self.reconcile_unsure();
    }

    /// The job that an answer is for; `None` if its device waits for another answer, or for none.
    fn answered(&mut self, device: &Arc<str>, op: OpId, at: Moment, is_it: fn(&JobStep) -> bool) -> Option<Job> {
        self.advance(at);
        self.devices.get_mut(device)?.job.take_if(|job| job.op == op && is_it(&job.step)).map(|job| *job)
    }

    /// Goes to a moment and does what was due on the way.
    pub(super) fn advance(&mut self, at: Moment) {
        self.now = self.now.max(at.now);
        self.unix_ms = at.unix_ms;
        // Taken out first: whatever becomes of it, the same timer is never met again.
        while self.timers.first().is_some_and(|(at, _)| *at <= self.now)
            && let Some((_, due)) = self.timers.pop_first()
        {
            match due {
                TimerOwner::Socket(socket) => self.socket_due(socket),
                TimerOwner::Device(device) => self.device_due(&device),
                TimerOwner::Eviction(device, epoch) => self.eviction_due(device, epoch),
                TimerOwner::Store => self.reconcile_unsure(),
            }
        }
    }

    /// Begins what a device needs next, as long as there is something and nothing is under way; then sets its timer, or
    /// forgets it if there is nothing left.
    pub(super) fn run_device(&mut self, device: &Arc<str>) {
        while self.begin_next(device) {}
        let is_unsure = self.store.unsure.contains(device) || self.store.reconciling.contains(device);
        let (silence, waits) = (millis(self.settings.heartbeat_timeout_ms), millis(self.settings.register_timeout_ms));
        let Some(entry) = self.devices.get_mut(device) else { return };
        let wake = if entry.is_done() && !is_unsure { None } else { entry.next_wake(silence, waits) };
        if entry.wake != wake {
            let old = std::mem::replace(&mut entry.wake, wake);
            old.map(|at| self.timers.remove(&(at, TimerOwner::Device(device.clone()))));
            wake.map(|at| self.timers.insert((at, TimerOwner::Device(device.clone()))));
        }
        if self.devices.get(device).is_some_and(DeviceState::is_done) && !is_unsure {
            self.devices.remove(device);
        }
    }

    /// When a device is said to be offline whose holder ends now, unless somebody comes.
    pub(super) fn debounced(&self) -> Time {
        self.now + millis(self.settings.offline_debounce_ms)
    }

    /// Gives whether there was something to begin.
    fn begin_next(&mut self, device: &Arc<str>) -> bool {
        let Some(entry) = self.devices.get_mut(device) else { return false };
        if entry.job.is_some() {
            return false;
        }
        let is_reconcile_first = entry.is_reconcile_wanted && entry.is_reconciles_turn;
        if !is_reconcile_first && let Some(waiting) = entry.queue.pop_front() {
            entry.is_reconciles_turn = true;
            self.begin_register(device, waiting);
            return true;
        }
        entry.is_reconciles_turn = false;
        if !std::mem::take(&mut entry.is_reconcile_wanted) {
            return false;
        }
        entry.retry_at = None;
        if self.is_store_resting() {
            self.store.reconciling.remove(device);
            self.store.unsure.insert(device.clone());
        } else {
            self.read(device, JobPurpose::Reconcile { attempts: 0 });
        }
        true
    }

    fn begin_register(&mut self, device: &Arc<str>, waiting: PendingRegister) {
        if self.is_late(&waiting) {
            self.busy(waiting.socket);
        } else if self.is_store_resting() {
            self.decide_alone(device, waiting);
        } else {
            self.read(device, JobPurpose::Register(waiting));
        }
    }

    pub(super) fn is_late(&self, waiting: &PendingRegister) -> bool {
        self.now.saturating_since(waiting.arrived) >= millis(self.settings.register_timeout_ms)
    }

    fn busy(&mut self, socket: SocketId) {
        self.send_throttled(socket, None, ThrottleReason::ReconnectRate, super::SHORT_RETRY_MS, SessionReason::Busy);
    }

    pub(super) fn read(&mut self, device: &Arc<str>, work: JobPurpose) {
        let op = self.begin(device, work, JobStep::Reading);
        self.commands.push_back(DeviceCommand::Read { device: device.clone(), op });
    }

    /// Has a record written in place of the one it was made from.
    pub(super) fn swap(
        &mut self,
        device: &Arc<str>,
        work: JobPurpose,
        before: DeviceRecord,
        record: DeviceRecord,
        plan: SwapPlan,
    ) {
        let (expected, boxed) = (before.epoch, Box::new(record.clone()));
        let op = self.begin(device, work, JobStep::Swapping { before, record, plan });
        self.commands.push_back(DeviceCommand::Swap { device: device.clone(), op, expected, record: boxed });
    }

    /// A step begins; its answer is awaited under the number that is given.
    pub(super) fn begin(&mut self, device: &Arc<str>, work: JobPurpose, step: JobStep) -> OpId {
        self.last_op += 1;
        let op = OpId(self.last_op);
        let deadline = self.now + millis(self.settings.step_timeout_ms);
        if let Some(entry) = self.devices.get_mut(device) {
            entry.job = Some(Box::new(Job { op, deadline, work, step }));
        }
        op
    }

    fn on_read(&mut self, device: &Arc<str>, job: Job, result: ReadResult) {
        match (result, job.work) {
            (Ok(record), work) => {
                self.store_answered();
                if let Some(entry) = self.devices.get_mut(device) {
                    entry.known = record.clone();
                }
                match work {
                    JobPurpose::Register(waiting) => self.decide(device, waiting, record),
                    JobPurpose::Reconcile { attempts } => self.reconcile(device, record, attempts),
                }
            }
            (Err(StoreAway), work) => {
                self.store_failed();
                match work {
                    JobPurpose::Register(waiting) => self.decide_alone(device, waiting),
                    JobPurpose::Reconcile { .. } => self.mark_unsure(device),
                }
            }
        }
    }

    fn on_swapped(&mut self, device: &Arc<str>, job: Job, swapped: SwapResult) {
        let JobStep::Swapping { before, record, plan } = job.step else { return };
        match swapped {
            SwapResult::Won | SwapResult::Lost => self.store_answered(),
            SwapResult::Away => self.store_failed(),
        }
        if let Some(entry) = self.devices.get_mut(device) {
            entry.has_stray_swap = swapped == SwapResult::Away || entry.has_stray_swap && swapped == SwapResult::Lost;
            if swapped == SwapResult::Won {
                entry.known = record.clone();
            }
        }
        match job.work {
            JobPurpose::Register(waiting) => self.register_swapped(device, waiting, record, plan, swapped),
            JobPurpose::Reconcile { attempts } => {
                self.reconcile_swapped(device, attempts, &before, &record, plan, swapped)
            }
        }
    }

    /// A device's timer went off: does all that is due.
    fn device_due(&mut self, device: &Arc<str>) {
        let (now, silence) = (self.now, millis(self.settings.heartbeat_timeout_ms));
        let waits = millis(self.settings.register_timeout_ms);
        let Some(entry) = self.devices.get_mut(device) else { return };
        entry.wake = None;
        let overdue = entry.job.take_if(|job| job.deadline <= now);
        let late: Vec<SocketId> = std::iter::from_fn(|| entry.queue.pop_front_if(|one| one.arrived + waits <= now))
            .map(|one| one.socket)
            .collect();
        let leaving: Vec<(Time, SocketId)> = entry.beside.extract_if(.., |(at, _)| *at <= now).collect();
        if entry.offline_at.take_if(|at| *at <= now).is_some() {
            (entry.is_offline_due, entry.is_reconcile_wanted) = (true, true);
        }
        entry.is_reconcile_wanted |= entry.retry_at.take_if(|at| *at <= now).is_some();
        if let Some(local) = entry.holder.as_mut().filter(|local| !local.is_silent && local.heartbeat + silence <= now)
        {
            local.is_silent = true;
            entry.is_reconcile_wanted = true;
        }
        for socket in late {
            self.busy(socket);
        }
        for (_, socket) in leaving {
            self.close_evicted(socket);
        }
        if let Some(job) = overdue {
            self.give_up_waiting(device, *job);
        }
        self.run_device(device);
    }

    /// The answer to a step did not come in time.
    fn give_up_waiting(&mut self, device: &Arc<str>, job: Job) {
        match &job.step {
            JobStep::Reading => self.on_read(device, job, Err(StoreAway)),
            JobStep::AskingOwner { .. } => self.on_owner(device, job, OwnerAnswer::Silent),
            JobStep::AskingSettle { incumbent, .. } => {
                let verdict = match incumbent.liveness {
                    Liveness::Gone => SettleVerdict::Accept,
                    Liveness::Alive | Liveness::Doubtful => rules::settle(self.settings.settle_ms, incumbent),
                };
                self.on_verdict(device, job, verdict, None);
            }
            JobStep::Swapping { .. } => self.on_swapped(device, job, SwapResult::Away),
        }
    }
}

impl DeviceState {
    /// A holder may have ended: the device is said to be offline then, unless somebody comes. What was due for an earlier end is not
    /// due any more.
    pub(super) fn debounce(&mut self, until: Time) {
        (self.offline_at, self.is_offline_due) = (Some(until), false);
    }

    /// Whether the end that the record tells of is not the one for which the debounce ran here, at `replica`.
    pub(super) fn knows_no_such_end(&self, record: &DeviceRecord, replica: &Arc<str>) -> bool {
        let is_foreign = |ended: &&Ended| ended.replica != *replica && self.orphan_of.as_ref() != Some(&ended.replica);
        let ended = record.ended.as_ref().filter(is_foreign);
        record.status != DeviceStatus::Offline && ended.is_some() && ended != self.ended_since.as_ref()
    }

    /// Whether there is nothing that it is kept for.
    fn is_done(&self) -> bool {
        let is_idle = self.holder.is_none() && self.queue.is_empty() && self.job.is_none() && self.beside.is_empty();
        is_idle && !self.is_reconcile_wanted && self.retry_at.is_none() && self.offline_at.is_none()
    }

    /// When something is due next.
    fn next_wake(&self, silence: Duration, waits: Duration) -> Option<Time> {
        let silent_at = self.holder.as_ref().filter(|local| !local.is_silent).map(|local| local.heartbeat + silence);
        let late_at = self.queue.front().map(|waiting| waiting.arrived + waits);
        let beside_at = self.beside.iter().map(|(at, _)| *at).min();
        let deadline = self.job.as_ref().map(|job| job.deadline);
        [silent_at, late_at, beside_at, deadline, self.retry_at, self.offline_at].into_iter().flatten().min()
    }
}
