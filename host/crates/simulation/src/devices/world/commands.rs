//! Carries out the commands of the machines in order, as a host does.

use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::decisions::Departure;
use pointwork_core::devices::{CloseReason, DeviceCommand, OpId, Proof, RegisterId};

use super::state::DeviceWorld;
use crate::devices::events::{DeviceEvent, DeviceOperation, SocketEnd};
use crate::devices::rules::SettleQuestion;
use crate::devices::sockets::{Credential, index, number};

impl DeviceWorld<'_> {
    /// Carries out everything that the running replicas want done.
    pub(super) fn run_commands(&mut self) {
        for place in 0..self.running.len() {
            let replica = self.running[place];
            while let Some(command) = self.replicas[replica].machine.next_command() {
                self.execute(replica, command);
            }
        }
    }

    pub(crate) fn execute(&mut self, replica: usize, command: DeviceCommand) {
        if self.trace.is_on() {
            let uid = self.replicas[replica].uid.clone();
            self.trace(&uid, || format!("  {command:?}"));
        }
        #[cfg(test)]
        if self.forgets(&command) {
            return;
        }
        let (sockets, records) = (&self.sockets, &self.records);
        let record = |socket| sockets.get(index(socket)).map(|socket| &records[socket.device]);
        self.auditor.check_command(&command, record);
        match command {
            DeviceCommand::CheckToken { socket, register } => self.check_token(replica, index(socket), register),
            DeviceCommand::Read { device, op } => {
                let op = self.operation(replica, &device, op);
                let delay_us = self.conditions.store_us(op.device);
                self.after(delay_us, DeviceEvent::Read { op });
            }
            DeviceCommand::Swap { device, op, expected, record } => {
                let op = self.operation(replica, &device, op);
                #[cfg(test)]
                self.evict_too_early(op.device, &record);
                let delay_us = self.conditions.store_us(op.device);
                self.after(delay_us, DeviceEvent::Swap { op, expected, record });
            }
            DeviceCommand::AskOwner { device, op, replica: uid, socket } => {
                let op = self.operation(replica, &device, op);
                let (delay_us, is_lost) = self.send_to_peer(op.device);
                self.after(delay_us, DeviceEvent::AskOwner { op, uid, socket, is_lost });
            }
            DeviceCommand::AskSettle { .. } => self.ask_rule(replica, command),
            DeviceCommand::Registered { socket, .. } => self.sockets[index(socket)].is_registered = true,
            DeviceCommand::Throttled { socket, retry_after_ms, .. } => self.refused(socket, Some(retry_after_ms)),
            DeviceCommand::AuthError { socket, .. } => self.refused(socket, None),
            DeviceCommand::Close { socket, why } => self.close(replica, index(socket), why),
            DeviceCommand::EvictRemote { device, epoch, replica: uid, socket, after_ms } => {
                let device = self.by_id[&device];
                let (delay_us, is_lost) = self.send_to_peer(device);
                if !is_lost {
                    self.after(delay_us, DeviceEvent::Evict { from: replica, device, epoch, uid, socket, after_ms });
                }
            }
            DeviceCommand::Status { device, status, epoch, .. } => {
                let device = self.by_id[&device];
                self.devices[device].meter.shows(epoch, status, self.now_us);
            }
            DeviceCommand::HeartbeatRefused { .. } | DeviceCommand::Event(_) => {}
        }
    }

    fn operation(&mut self, replica: usize, device: &Arc<str>, id: OpId) -> DeviceOperation {
        let device = self.by_id[device];
        self.touch(device);
        DeviceOperation { replica, device, id }
    }

    fn check_token(&mut self, replica: usize, socket: usize, register: RegisterId) {
        match self.conditions.answer_us() {
            Some(0) => self.proof(replica, socket, register),
            Some(delay_us) => self.after(delay_us, DeviceEvent::Proof { replica, socket, register }),
            None => {}
        }
    }

    /// The host has looked at the token of a socket.
    pub(super) fn proof(&mut self, replica: usize, socket: usize, register: RegisterId) {
        let known = &self.sockets[socket];
        if !known.is_known {
            return;
        }
        let id = number(socket);
        let proof = if matches!(known.credential, Credential::GoodToken | Credential::TokenWithoutDevice) {
            self.auditor.proves(id);
            let device = self.devices[known.device].id.clone();
            Proof::Good { device, owner: Some("owner".into()), pairing_code: None }
        } else {
            Proof::Bad
        };
        let at = self.moment(replica);
        self.replicas[replica].machine.handle_proof(id, register, proof, at);
    }

    fn ask_rule(&mut self, replica: usize, command: DeviceCommand) {
        let DeviceCommand::AskSettle { device, op, window_ms, incumbent, newcomer, history, trial, pinned, .. } =
            command
        else {
            return;
        };
        let op = self.operation(replica, &device, op);
        let at = self.moment(replica);
        let seed = self.conditions.question_seed(op.device);
        let question = SettleQuestion {
            device: &device,
            now_ms: at.unix_ms,
            seed,
            window_ms,
            incumbent: &incumbent,
            newcomer: &newcomer,
            history: &history,
        };
        let verdict = self.rules.settle(&question);
        self.questions += 1;
        let exposure = self.conditions.exposure(&device, op.id, trial.as_deref(), pinned.as_deref(), at.unix_ms);
        match self.conditions.answer_us() {
            Some(0) => self.replicas[replica].machine.handle_verdict(&device, op.id, verdict, exposure, at),
            Some(delay_us) => self.after(delay_us, DeviceEvent::Verdict { op, verdict, exposure }),
            None => {}
        }
    }

    fn refused(&mut self, socket: SocketId, retry_after_ms: Option<u32>) {
        let (is_measured, known) = (self.now_us < self.end_us, &mut self.sockets[index(socket)]);
        (known.wants, known.retry_after_ms) = (false, retry_after_ms);
        let device = known.device;
        self.devices[device].meter.refused += u64::from(is_measured);
        self.touch(device);
    }

    /// A replica closes a socket of its own.
    fn close(&mut self, replica: usize, socket: usize, why: CloseReason) {
        if !self.sockets[socket].is_known {
            return;
        }
        self.sockets[socket].wants = false;
        if let Some(delay_us) = self.conditions.close_us() {
            self.after(delay_us, DeviceEvent::ReplicaNotices { socket, how: Departure::Evicted });
            #[cfg(test)]
            self.arm_false_offline(socket, why, delay_us);
            return;
        }
        let at = self.moment(replica);
        self.replicas[replica].machine.handle_close(number(socket), Departure::Evicted, at);
        let end = match (why, self.sockets[socket].retry_after_ms) {
            (CloseReason::Refused, Some(retry_after_ms)) => SocketEnd::Refused { retry_after_ms },
            (CloseReason::Refused | CloseReason::NeverRegistered, _) => SocketEnd::Lost,
            (CloseReason::Evicted | CloseReason::Operator, _) => SocketEnd::Evicted,
        };
        self.ended_at_replica(socket, end);
    }
}
