//! What replicas ask and tell each other: about the owner of a session, and evictions.

use pointwork_core::SocketId;
use pointwork_core::devices::{CloseReason, DeviceCommand, DeviceRecord, OwnerAnswer};

use super::state::DeviceWorld;
use crate::devices::events::{DeviceEvent, DeviceOperation};
use crate::devices::flaw::DeviceFlaw;

impl DeviceWorld<'_> {
    /// How long a message to another replica about a device takes, and whether it is lost.
    pub(super) fn send_to_peer(&mut self, device: usize) -> (u64, bool) {
        let delay_us = self.conditions.peer_us(device);
        (delay_us, self.conditions.is_lost(device, self.now_us >= self.end_us))
    }

    /// A replica is asked about its socket.
    pub(super) fn ask_owner(&mut self, op: DeviceOperation, uid: &str, socket: SocketId, is_lost: bool) {
        let answer = match self.replicas.iter().position(|replica| *replica.uid == *uid) {
            Some(asked) if self.replicas[asked].is_running && !is_lost => {
                let now = self.moment(asked).now;
                self.replicas[asked].machine.owner_answer(&self.devices[op.device].id, socket, now)
            }
            Some(asked) if self.replicas[asked].is_known_dead => {
                if self.conditions.has_flaw(DeviceFlaw::RefuseForTheDead) {
                    OwnerAnswer::Alive { age_ms: 0, idle_ms: 0, heartbeat_ms: 0 }
                } else {
                    OwnerAnswer::Gone
                }
            }
            _ => OwnerAnswer::Silent,
        };
        self.auditor.count(match answer {
            OwnerAnswer::Alive { .. } => "owner Alive",
            OwnerAnswer::Gone => "owner Gone",
            OwnerAnswer::Silent => "owner Silent",
        });
        let delay_us = self.conditions.owner_us(op.device, answer == OwnerAnswer::Silent);
        self.after(delay_us, DeviceEvent::OwnerAnswered { op, answer });
    }

    /// A replica is told to evict a socket, and confirms it.
    pub(super) fn evict(
        &mut self,
        (from, uid): (usize, &str),
        device: usize,
        (epoch, socket): (u64, SocketId),
        after_ms: u32,
    ) {
        let is_dead = self.replicas.iter().any(|replica| *replica.uid == *uid && replica.is_known_dead);
        if is_dead && self.replicas[from].is_running {
            // The host that is to tell it knows.
            let at = self.moment(from);
            return self.replicas[from].machine.handle_replica_gone(uid, at);
        }
        if self.evict_here(uid, device, (epoch, socket), after_ms) {
            let (delay_us, is_lost) = self.send_to_peer(device);
            if !is_lost {
                self.after(delay_us, DeviceEvent::EvictConfirmed { replica: from, device, epoch });
            }
        }
    }

    /// Evicts a socket of a replica, if that runs.
    pub(crate) fn evict_here(
        &mut self,
        uid: &str,
        device: usize,
        (epoch, socket): (u64, SocketId),
        after_ms: u32,
    ) -> bool {
        let Some(replica) = self.running_by_uid(uid) else { return false };
        let at = self.moment(replica);
        self.touch(device);
        self.replicas[replica].machine.handle_evict(&self.devices[device].id, epoch, socket, after_ms, at);
        true
    }

    /// A flaw: the holder is evicted as soon as another socket may get the session.
    pub(super) fn evict_too_early(&mut self, device: usize, record: &DeviceRecord) {
        if self.conditions.has_flaw(DeviceFlaw::EvictBeforeWon)
            && let (Some(old), Some(new)) = (self.records[device].holder.clone(), &record.holder)
            && (&old.replica, old.socket) != (&new.replica, new.socket)
            && let Some(replica) = self.running_by_uid(&old.replica)
        {
            self.execute(replica, DeviceCommand::Close { socket: old.socket, why: CloseReason::Evicted });
        }
    }

    fn running_by_uid(&self, uid: &str) -> Option<usize> {
        self.running.iter().copied().find(|replica| *self.replicas[*replica].uid == *uid)
    }
}
