//! The store of the records, and the replicas' questions to each other.

use pointwork_core::SocketId;
use pointwork_core::device::{OwnerAnswer, Record, StoreAway, Swapped};

use super::events::{Event, Op};
use super::world::{MS, World};
use crate::draws::Drawn;

/// How long it takes until a replica that does not answer is known not to.
const SILENT_US: u64 = 500 * MS;

impl World<'_> {
    pub(super) fn read(&mut self, op: Op) {
        let result = if self.store.is_away { Err(StoreAway) } else { Ok(self.store.records[op.device].clone()) };
        // What is not answered at all counts as failed after a while.
        if !(self.store.is_away && self.is_one_in_four(op)) {
            let delay_us = self.store_us(op.device);
            self.after(delay_us, Event::ReadDone { op, result: Box::new(result) });
        }
    }

    pub(super) fn swap(&mut self, op: Op, expected: u64, record: Record) {
        let is_away = self.store.is_away;
        // An operation that nobody hears of may have been done.
        let is_done = !is_away || self.is_one_in_four(op);
        let done = if is_done { self.compare_and_set(op.device, expected, record) } else { Swapped::Away };
        let swapped = if is_away { Swapped::Away } else { done };
        if !(is_away && self.is_one_in_four(op)) {
            let delay_us = self.store_us(op.device);
            self.after(delay_us, Event::SwapDone { op, swapped });
        }
    }

    fn compare_and_set(&mut self, device: usize, expected: u64, record: Record) -> Swapped {
        if self.store.records[device].epoch != expected {
            return Swapped::Lost;
        }
        self.check_epoch(device, &record);
        let socket = |record: &Record| record.holder.as_ref().map(|holder| holder.socket);
        let is_flip = self.is_flip(socket(&self.store.records[device]), socket(&record));
        self.devices[device].meter.flips += u64::from(is_flip && self.now_us < self.end_us);
        self.store.records[device] = record;
        Swapped::Won
    }

    fn is_one_in_four(&mut self, op: Op) -> bool {
        let nth = self.message(op.device);
        self.draws.percent(25, Drawn::StoreAway, op.device as u64, nth)
    }

    /// A replica is asked about its socket.
    pub(super) fn ask_owner(&mut self, op: Op, uid: &str, socket: SocketId, is_lost: bool) {
        let asked = self.replicas.iter().position(|replica| *replica.uid == *uid);
        let answer = match asked {
            Some(asked) if self.replicas[asked].is_running && !is_lost => {
                let now = self.moment(asked).now;
                self.replicas[asked].machine.owner_answer(&self.devices[op.device].id, socket, now)
            }
            Some(asked) if self.replicas[asked].is_known_dead => OwnerAnswer::Gone,
            _ => OwnerAnswer::Silent,
        };
        let delay_us = if answer == OwnerAnswer::Silent { SILENT_US } else { self.peer_us(op.device) };
        self.after(delay_us, Event::OwnerSays { op, answer });
    }
}
