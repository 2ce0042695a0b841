//! Carries questions about owners of sessions, and evictions, between replicas.

use pointwork_core::SocketId;
use pointwork_core::devices::OwnerAnswer;

use super::state::DeviceWorld;
use crate::devices::events::{DeviceEvent, DeviceOperation};

impl DeviceWorld<'_> {
    /// How long a message to another replica about a device takes, and whether it is lost.
    pub(super) fn send_to_peer(&mut self, device: usize) -> (u64, bool) {
        let delay_us = self.conditions.peer_us(device);
        (delay_us, self.conditions.is_lost(device, self.now_us >= self.end_us))
    }

    pub(super) fn ask_owner(&mut self, op: DeviceOperation, uid: &str, socket: SocketId, is_lost: bool) {
        let answer = match self.replicas.iter().position(|replica| *replica.uid == *uid) {
            Some(asked) if self.replicas[asked].is_running && !is_lost => {
                let now = self.moment(asked).now;
                self.replicas[asked].machine.owner_answer(&self.devices[op.device].id, socket, now)
            }
            Some(asked) if self.replicas[asked].is_known_dead => OwnerAnswer::Gone,
            _ => OwnerAnswer::Silent,
        };
        #[cfg(test)]
        let answer = self.answer_for_the_dead(uid, answer);
        let what = match answer {
            OwnerAnswer::Alive { .. } => "Alive",
            OwnerAnswer::Gone => "Gone",
            OwnerAnswer::Silent => "Silent",
        };
        self.auditor.count(format_args!("owner {what}"));
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

    /// A replica knows that its peer was told to evict a socket.
    pub(super) fn evict_confirmed(&mut self, replica: usize, device: usize, epoch: u64) {
        if self.replicas[replica].is_running {
            let at = self.moment(replica);
            self.replicas[replica].machine.handle_evict_confirmed(&self.devices[device].id, epoch, at);
            self.auditor.count(format_args!("eviction confirmed"));
        }
    }

    pub(crate) fn running_by_uid(&self, uid: &str) -> Option<usize> {
        self.running.iter().copied().find(|replica| *self.replicas[*replica].uid == *uid)
    }
}
