//! Evicts holders: a holder of this replica at once, and a holder of another replica until that replica confirms it.

use std::sync::Arc;
use std::time::Duration;

use super::DeviceSessions;
use super::state::{Eviction, JobPurpose, JobStep, SocketStage, SwapPlan, TimerOwner};
use crate::decisions::SettleVerdict;
use crate::devices::command::DeviceCommand;
use crate::devices::event::{SessionOutcome, SessionReason};
use crate::devices::record::Holder;
use crate::devices::registration::{CloseReason, Moment, OwnerAnswer};
use crate::ids::SocketId;
use crate::time::{millis, span_ms};

/// Sockets of one device that are closed later; when there are more, the oldest is closed at once.
const BESIDE_MAX: usize = 4;
/// The longest span after which an eviction is said again.
const RETRY_MAX: Duration = Duration::from_secs(30);

impl DeviceSessions {
    /// Another replica says that a newer socket holds a device's session: `epoch` is that of its holding, and `socket` the one
    /// that it replaced. The holder here is evicted if its holding is older, and closed after `after_ms`. The host always
    /// confirms: whatever there was is no holder any more.
    pub fn handle_evict(&mut self, device: &Arc<str>, epoch: u64, socket: SocketId, after_ms: u32, at: Moment) {
        self.advance(at);
        // One that is about to get the session back may have it already: whether it has, the record says.
        let is_retaking = self.devices.get(device).and_then(|entry| entry.job.as_ref()).is_some_and(
            |job| matches!(&job.step, JobStep::Swapping { plan: SwapPlan::Retake { .. }, record, .. } if record.epoch > epoch),
        );
        if !is_retaking && self.holder(device).is_some_and(|local| local.epoch < epoch) {
            self.displace(device, after_ms);
        }
        let job = self.devices.get_mut(device).and_then(|entry| entry.job.as_mut());
        if let Some(JobPurpose::Register(waiting)) = job.map(|job| &mut job.work)
            && waiting.socket == socket
        {
            waiting.evicted_by = waiting.evicted_by.max(epoch);
        }
        self.run_device(device);
    }

    /// A replica confirmed an eviction.
    pub fn handle_evict_confirmed(&mut self, device: &Arc<str>, epoch: u64, at: Moment) {
        self.advance(at);
        self.forget_eviction(device.clone(), epoch);
    }

    /// A replica is known to be dead: its sockets are gone.
    pub fn handle_replica_gone(&mut self, replica: &str, at: Moment) {
        self.advance(at);
        let is_there = |eviction: &Eviction| *eviction.replica == *replica;
        let moot: Vec<_> = self.evictions.iter().filter(|(_, one)| is_there(one)).map(|(key, _)| key.clone()).collect();
        for (device, epoch) in moot {
            self.forget_eviction(device, epoch);
        }
        let devices: Vec<Arc<str>> = self.devices.keys().cloned().collect();
        for device in devices {
            let Some(entry) = self.devices.get_mut(&device) else { continue };
            let Some(job) = &mut entry.job else { continue };
            match &mut job.step {
                JobStep::AskingOwner { holder, .. } if *holder.replica == *replica => {
                    let Some(job) = entry.job.take() else { continue };
                    self.on_owner(&device, *job, OwnerAnswer::Gone);
                }
                JobStep::AskingSettle { holder: Some(holder), is_gone, .. } if *holder.replica == *replica => {
                    *is_gone = true;
                    let Some(job) = entry.job.take() else { continue };
                    self.on_verdict(&device, *job, SettleVerdict::Accept, None);
                }
                JobStep::Swapping { plan: SwapPlan::Refuse { holder, is_gone, .. }, .. }
                    if *holder.replica == *replica =>
                {
                    *is_gone = true;
                }
                _ => continue,
            }
            self.run_device(&device);
        }
    }

    /// The holder here, if there is one, loses the session to another socket, and is closed after `after_ms`.
    pub(super) fn displace(&mut self, device: &Arc<str>, after_ms: u32) {
        let close_at = self.now + millis(after_ms);
        let Some(entry) = self.devices.get_mut(device) else { return };
        let Some(local) = entry.holder.take() else { return };
        let crowded = if entry.beside.len() >= BESIDE_MAX { Some(entry.beside.remove(0)) } else { None };
        if after_ms > 0 {
            entry.beside.push((close_at, local.socket));
            if let Some(known) = self.sockets.get_mut(&local.socket) {
                known.stage = SocketStage::Beside { device: device.clone() };
            }
        } else {
            self.close_evicted(local.socket);
        }
        if let Some((_, socket)) = crowded {
            self.close_evicted(socket);
        }
        self.event(Some(device), Some(local.socket), SessionOutcome::Evicted, SessionReason::Superseded, local.epoch);
    }

    pub(super) fn close_evicted(&mut self, socket: SocketId) {
        if self.end_socket(socket).is_some() {
            self.commands.push_back(DeviceCommand::Close { socket, why: CloseReason::Evicted });
        }
    }

    /// Has another replica evict its socket. Beyond the bound that is said once and not again: the socket then finds it out
    /// when it registers again.
    pub(super) fn evict_remote(&mut self, device: &Arc<str>, epoch: u64, rival: &Holder, after_ms: u32) {
        let retry = millis(self.settings.evict_retry_ms.max(1));
        let (replica, socket) = (rival.replica.clone(), rival.socket);
        if self.evictions.len() < self.settings.evictions_max {
            let (close_at, retry_at) = (self.now + millis(after_ms), self.now + retry);
            let eviction = Eviction { replica: replica.clone(), socket, close_at, retry_at, retry };
            self.forget_eviction(device.clone(), epoch);
            self.evictions.insert((device.clone(), epoch), eviction);
            self.timers.insert((retry_at, TimerOwner::Eviction(device.clone(), epoch)));
        }
        self.commands.push_back(DeviceCommand::EvictRemote {
            device: device.clone(),
            epoch,
            replica,
            socket,
            after_ms,
        });
    }

    /// The record is known to name a socket of this replica now: whom that replaced is evicted.
    pub(super) fn evict_replaced(&mut self, device: &Arc<str>, epoch: u64) {
        if let Some(rival) = self.devices.get_mut(device).and_then(|entry| entry.replaced.take()) {
            self.evict_remote(device, epoch, &rival, 0);
        }
    }

    /// It is not confirmed yet: it is said again.
    pub(super) fn eviction_due(&mut self, device: Arc<str>, epoch: u64) {
        let now = self.now;
        let Some(eviction) = self.evictions.get_mut(&(device.clone(), epoch)) else { return };
        eviction.retry = (eviction.retry * 2).min(RETRY_MAX);
        eviction.retry_at = now + eviction.retry;
        self.timers.insert((eviction.retry_at, TimerOwner::Eviction(device.clone(), epoch)));
        let (replica, socket) = (eviction.replica.clone(), eviction.socket);
        let after_ms = span_ms(eviction.close_at.saturating_since(now));
        self.commands.push_back(DeviceCommand::EvictRemote { device, epoch, replica, socket, after_ms });
    }

    fn forget_eviction(&mut self, device: Arc<str>, epoch: u64) {
        if let Some(eviction) = self.evictions.remove(&(device.clone(), epoch)) {
            self.timers.remove(&(eviction.retry_at, TimerOwner::Eviction(device, epoch)));
        }
    }
}
