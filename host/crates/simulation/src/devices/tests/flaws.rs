//! Makes a world of devices make mistakes.

use pointwork_core::devices::{CloseReason, DeviceCommand, DeviceRecord, DeviceStatus, OwnerAnswer};

use crate::devices::events::DeviceEvent;
use crate::devices::world::DeviceWorld;
use crate::time::SECOND;

/// A mistake, to show that the simulation would notice it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceFlaw {
    /// The store writes a record whatever its epoch is.
    SwapWithoutEpoch,
    /// A holder is evicted before another socket has won the session.
    EvictBeforeWon,
    /// The end of an evicted socket says that its device is offline.
    EvictedArmsOffline,
    /// A socket of a dead replica is said to be alive.
    RefuseForTheDead,
    /// A socket that was refused is not closed.
    NewcomerNotClosed,
}

impl DeviceWorld<'_> {
    /// Evicts the holder as soon as another socket may get the session.
    pub(crate) fn evict_too_early(&mut self, device: usize, record: &DeviceRecord) {
        if self.conditions.has_flaw(DeviceFlaw::EvictBeforeWon)
            && let (Some(old), Some(new)) = (self.records[device].holder.clone(), &record.holder)
            && (&old.replica, old.socket) != (&new.replica, new.socket)
            && let Some(replica) = self.running_by_uid(&old.replica)
        {
            self.execute(replica, DeviceCommand::Close { socket: old.socket, why: CloseReason::Evicted });
        }
    }

    /// Says that a device is offline.
    pub(crate) fn write_offline(&mut self, device: usize) {
        let record = &self.records[device];
        self.write(device, record.touched(DeviceStatus::Offline, false, 0, self.unix_ms()));
    }

    /// Whether the host forgets to close a socket that was refused.
    pub(crate) fn forgets(&self, command: &DeviceCommand) -> bool {
        let is_refusal = matches!(command, DeviceCommand::Close { why: CloseReason::Refused, .. });
        is_refusal && self.conditions.has_flaw(DeviceFlaw::NewcomerNotClosed)
    }

    /// The epoch that the store expects to find.
    pub(crate) fn expected_epoch(&self, device: usize, expected: u64) -> u64 {
        let is_any = self.conditions.has_flaw(DeviceFlaw::SwapWithoutEpoch);
        if is_any { self.records[device].epoch } else { expected }
    }

    /// Says that a socket of a replica that is known to be dead is alive.
    pub(crate) fn answer_for_the_dead(&self, uid: &str, answer: OwnerAnswer) -> OwnerAnswer {
        let is_dead = answer == OwnerAnswer::Gone && self.running_by_uid(uid).is_none();
        if is_dead && self.conditions.has_flaw(DeviceFlaw::RefuseForTheDead) {
            return OwnerAnswer::Alive { age_ms: 0, idle_ms: 0, heartbeat_ms: 0 };
        }
        answer
    }

    /// Says some time after a socket was evicted that its device is offline.
    pub(crate) fn arm_false_offline(&mut self, socket: usize, why: CloseReason, delay_us: u64) {
        if why == CloseReason::Evicted && self.conditions.has_flaw(DeviceFlaw::EvictedArmsOffline) {
            self.after(delay_us + 5 * SECOND, DeviceEvent::FalseOffline { device: self.sockets[socket].device });
        }
    }
}
