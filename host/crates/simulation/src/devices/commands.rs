//! Carries out what the machines say, as a host does: in order, and brings them what comes of it.

use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::decision::Departure;
use pointwork_core::device::{CloseReason, DeviceCommand, Proof};

use super::events::{EndHeard, Event, Op};
use super::rules::SettleQuestion;
use super::sockets::index;
use super::world::World;
use crate::draws::Drawn;

impl World<'_> {
    /// Hears all machines to the end.
    pub(super) fn run_commands(&mut self) {
        for place in 0..self.running.len() {
            let replica = self.running[place];
            while let Some(command) = self.replicas[replica].machine.next_command() {
                self.execute(replica, command);
            }
        }
    }

    fn execute(&mut self, replica: usize, command: DeviceCommand) {
        match command {
            DeviceCommand::CheckToken { socket, register } => {
                let at = self.moment(replica);
                let device = self.devices[self.sockets[index(socket)].device].id.clone();
                let proof = Proof::Good { device, owner: Some("owner".into()), pairing_code: None };
                self.replicas[replica].machine.handle_proof(socket, register, proof, at);
            }
            DeviceCommand::Read { device, op } => {
                let op = self.op(replica, &device, op);
                let delay_us = self.store_us(op.device);
                self.after(delay_us, Event::Read { op });
            }
            DeviceCommand::Swap { device, op, expected, record } => {
                let op = self.op(replica, &device, op);
                let delay_us = self.store_us(op.device);
                self.after(delay_us, Event::Swap { op, expected, record });
            }
            DeviceCommand::AskOwner { device, op, replica: uid, socket } => {
                let op = self.op(replica, &device, op);
                let (delay_us, is_lost) = (self.peer_us(op.device), self.is_lost(op.device));
                self.after(delay_us, Event::AskOwner { op, uid, socket, is_lost });
            }
            DeviceCommand::AskSettle { device, op, window_ms, incumbent, newcomer, history, .. } => {
                let op = self.op(replica, &device, op);
                let at = self.moment(replica);
                let known = &mut self.devices[op.device];
                known.questions += 1;
                let seed = self.draws.bits(Drawn::Question, op.device as u64, known.questions);
                let verdict = self.rules.settle(&SettleQuestion {
                    device: &device,
                    now_ms: at.unix_ms,
                    seed,
                    window_ms,
                    incumbent: &incumbent,
                    newcomer: &newcomer,
                    history: &history,
                });
                self.report.questions += 1;
                self.replicas[replica].machine.handle_verdict(&device, op.id, verdict, None, at);
            }
            DeviceCommand::Registered { socket, .. } => self.sockets[index(socket)].is_registered = true,
            DeviceCommand::Throttled { socket, retry_after_ms, .. } => self.refused(socket, Some(retry_after_ms)),
            DeviceCommand::AuthError { socket, .. } => self.refused(socket, None),
            DeviceCommand::Close { socket, why } => self.close(replica, socket, why),
            DeviceCommand::EvictRemote { device, epoch, replica: uid, socket, after_ms } => {
                let device = self.by_id[&device];
                let (delay_us, is_lost) = (self.peer_us(device), self.is_lost(device));
                if !is_lost {
                    self.after(delay_us, Event::Evict { from: replica, device, epoch, uid, socket, after_ms });
                }
            }
            DeviceCommand::Status { device, status, epoch, .. } => {
                let device = self.by_id[&device];
                self.devices[device].meter.shows(epoch, status, self.now_us);
            }
            DeviceCommand::HeartbeatRefused { .. } | DeviceCommand::Event(_) => {}
        }
    }

    fn op(&mut self, replica: usize, device: &Arc<str>, id: pointwork_core::device::OpId) -> Op {
        let device = self.by_id[device];
        self.touch(device);
        Op { replica, device, id }
    }

    fn refused(&mut self, socket: SocketId, retry_after_ms: Option<u32>) {
        let (is_measured, known) = (self.now_us < self.end_us, &mut self.sockets[index(socket)]);
        (known.wants, known.retry_after_ms) = (false, retry_after_ms);
        let device = known.device;
        self.devices[device].meter.refused += u64::from(is_measured);
        self.touch(device);
    }

    /// A replica closes a socket of its own.
    fn close(&mut self, replica: usize, socket: SocketId, why: CloseReason) {
        let at = self.moment(replica);
        let place = index(socket);
        if !self.sockets[place].is_known {
            return;
        }
        self.replicas[replica].machine.handle_close(socket, Departure::Evicted, at);
        let heard = match (why, self.sockets[place].retry_after_ms) {
            (CloseReason::Refused, Some(retry_after_ms)) => EndHeard::Refused { retry_after_ms },
            (CloseReason::Refused | CloseReason::NeverRegistered, _) => EndHeard::Lost,
            (CloseReason::Evicted | CloseReason::Operator, _) => EndHeard::Evicted,
        };
        self.sockets[place].wants = false;
        self.ended_at_replica(place, heard);
    }

    /// One way to the store or from it, for an operation about a device.
    pub(super) fn store_us(&mut self, device: usize) -> u64 {
        let nth = self.message(device);
        self.draws.micros(self.scenario.store.latency_ms, Drawn::Store, device as u64, nth)
    }

    /// One way between replicas, about a device.
    pub(super) fn peer_us(&mut self, device: usize) -> u64 {
        let nth = self.message(device);
        self.draws.micros(self.scenario.network.peer_ms, Drawn::Peer, device as u64, nth)
    }

    /// Whether a message between replicas is lost.
    pub(super) fn is_lost(&mut self, device: usize) -> bool {
        let nth = self.message(device);
        let percent = self.scenario.network.lost_percent;
        self.now_us < self.end_us && self.draws.percent(percent, Drawn::Lost, device as u64, nth)
    }

    pub(super) fn message(&mut self, device: usize) -> u64 {
        let known = &mut self.devices[device];
        known.messages += 1;
        known.messages
    }
}
