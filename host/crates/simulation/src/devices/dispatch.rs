//! One event: whom it happens to.

use super::events::{Event, Op};
use super::world::World;

impl World<'_> {
    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::OpenNext { device } => self.open_next(device),
            Event::Reopen { device, connector } => self.reopen(device, connector),
            Event::Arrive { socket } => {
                self.touch(self.sockets[socket].device);
                self.arrive(socket);
            }
            Event::Register { socket } => self.register(socket),
            Event::Ping { socket } => self.ping(socket),
            Event::Beat { socket } => self.beat(socket),
            Event::ClientCloses { socket } => self.client_closes(socket),
            Event::Fades { socket } => self.fades(socket),
            Event::Hears { socket, heard } => self.hears(socket, heard),
            Event::Notices { socket, how } => self.notices(socket, how),
            Event::Drop { device, nth } => self.drop_network(device, nth),
            Event::Move { device, nth } => self.move_device(device, nth),
            Event::Kill { nth } => self.kill(nth),
            Event::DeadKnown { replica, scans_left } => self.dead_known(replica, scans_left),
            Event::Start => self.start_another(),
            Event::StoreAway { nth } => self.store_away(nth),
            Event::StoreBack { is_empty } => self.store_back(is_empty),
            Event::StoreSaidBack { replica } => self.store_said_back(replica),
            Event::Read { op } => self.read(op),
            Event::Swap { op, expected, record } => {
                self.touch(op.device);
                self.swap(op, expected, *record);
            }
            Event::AskOwner { op, uid, socket, is_lost } => self.ask_owner(op, &uid, socket, is_lost),
            Event::ReadDone { .. } | Event::SwapDone { .. } | Event::OwnerSays { .. } => self.answered(event),
            Event::Evict { from, device, epoch, uid, socket, after_ms } => {
                let Some(replica) = self.running.iter().copied().find(|one| self.replicas[*one].uid == uid) else {
                    return;
                };
                let at = self.moment(replica);
                self.touch(device);
                let machine = &mut self.replicas[replica].machine;
                machine.handle_evict(&self.devices[device].id, epoch, socket, after_ms, at);
                let (delay_us, is_lost) = (self.peer_us(device), self.is_lost(device));
                if !is_lost {
                    self.after(delay_us, Event::EvictConfirmed { replica: from, device, epoch });
                }
            }
            Event::EvictConfirmed { replica, device, epoch } if self.replicas[replica].is_running => {
                let at = self.moment(replica);
                self.replicas[replica].machine.handle_evict_confirmed(&self.devices[device].id, epoch, at);
            }
            Event::EvictConfirmed { .. } => {}
        }
    }

    /// A replica has its answer, if it still runs.
    fn answered(&mut self, event: Event) {
        let (Event::ReadDone { op, .. } | Event::SwapDone { op, .. } | Event::OwnerSays { op, .. }) = &event else {
            return;
        };
        let Op { replica, device, id } = *op;
        if !self.replicas[replica].is_running {
            return;
        }
        let at = self.moment(replica);
        self.touch(device);
        let (machine, name) = (&mut self.replicas[replica].machine, &self.devices[device].id);
        match event {
            Event::ReadDone { result, .. } => machine.handle_read(name, id, *result, at),
            Event::SwapDone { swapped, .. } => machine.handle_swapped(name, id, swapped, at),
            Event::OwnerSays { answer, .. } => machine.handle_owner(name, id, answer, at),
            _ => {}
        }
    }
}
