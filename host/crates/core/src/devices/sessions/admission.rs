//! Admits a register to its device's queue: flap limiter, then token, then reconnect throttle.

use std::sync::Arc;
use std::time::Duration;

use super::state::{Claim, PendingRegister, SocketStage};
use super::{DeviceSessions, SHORT_RETRY_MS};
use crate::devices::command::DeviceCommand;
use crate::devices::event::{SessionOutcome, SessionReason};
use crate::devices::limiter::Admission;
use crate::devices::registration::{
    AuthError, CloseReason, Credentials, Moment, Proof, RegisterId, Registration, ThrottleReason,
};
use crate::ids::SocketId;
use crate::time::{millis, span_ms};

impl DeviceSessions {
    /// A socket registers a device. A socket that holds its session already refreshes it, past all gates.
    pub fn handle_register(&mut self, socket: SocketId, registration: Registration, at: Moment) {
        self.advance(at);
        let Some(known) = self.sockets.get_mut(&socket) else { return };
        known.last_packet = self.now;
        let device = match &known.stage {
            SocketStage::Fresh => return self.pass_limiter(socket, registration),
            SocketStage::Ended => return,
            SocketStage::Beside { .. } => {
                let retry_after_ms = self.settings.settle_ms;
                return self.send_throttled(
                    socket,
                    None,
                    ThrottleReason::SessionSettle,
                    retry_after_ms,
                    SessionReason::Superseded,
                );
            }
            SocketStage::Proving { registration: first, .. } => first.device.clone(),
            SocketStage::Queued { device } | SocketStage::Holder { device } => Some(device.clone()),
        };
        let is_same = registration.device.is_none() || device.is_none() || registration.device == device;
        if !is_same {
            let error = AuthError::OtherDevice;
            self.commands.push_back(DeviceCommand::AuthError { socket, error });
            self.refused_event(socket, registration.device, SessionReason::Auth(error));
        } else if let Some(device) = device
            && self.holder(&device).is_some_and(|holder| holder.socket == socket)
        {
            self.refresh(socket, &device);
        }
    }

    /// The token of a register was checked.
    pub fn handle_proof(&mut self, socket: SocketId, register: RegisterId, proof: Proof, at: Moment) {
        self.advance(at);
        let Some(known) = self.sockets.get_mut(&socket) else { return };
        if !matches!(&known.stage, SocketStage::Proving { register: open, .. } if *open == register) {
            return;
        }
        let SocketStage::Proving { registration, admission, .. } =
            std::mem::replace(&mut known.stage, SocketStage::Fresh)
        else {
            return;
        };
        match (proof, admission) {
            (Proof::Good { device, owner, pairing_code }, _) => {
                self.limiter.prove(&registration.key, self.now);
                let claim = Claim { has_proved: true, owner, pairing_code, ..Claim::of(&registration) };
                self.pass_throttle(socket, device, claim);
            }
            (Proof::Bad, Admission::OnProof { retry_after, is_quarantine }) => {
                self.flapping(socket, &registration, retry_after, is_quarantine);
            }
            (Proof::Bad, Admission::Pass | Admission::Refuse(_)) => {
                self.reject(socket, registration.device, AuthError::BadToken);
            }
        }
    }

    fn pass_limiter(&mut self, socket: SocketId, registration: Registration) {
        let admission = self.limiter.admit(&registration.key, self.now);
        let has_token = registration.credentials == Credentials::Token;
        match admission {
            Admission::Refuse(retry_after) => return self.flapping(socket, &registration, retry_after, false),
            Admission::OnProof { retry_after, is_quarantine } if !has_token => {
                return self.flapping(socket, &registration, retry_after, is_quarantine);
            }
            Admission::Pass | Admission::OnProof { .. } => {}
        }
        match (&registration.credentials, registration.device.clone()) {
            (Credentials::Token, _) => self.check_token(socket, registration, admission),
            (Credentials::Pairing { .. }, Some(device)) => {
                let claim = Claim::of(&registration);
                self.pass_throttle(socket, device, claim);
            }
            (Credentials::Pairing { .. } | Credentials::Missing, device) => {
                self.reject(socket, device, AuthError::Missing);
            }
        }
    }

    fn check_token(&mut self, socket: SocketId, registration: Registration, admission: Admission) {
        self.last_register += 1;
        let register = RegisterId(self.last_register);
        if let Some(known) = self.sockets.get_mut(&socket) {
            known.stage = SocketStage::Proving { register, registration: Box::new(registration), admission };
        }
        self.wake_socket(socket, Some(self.now + millis(self.settings.step_timeout_ms)));
        self.commands.push_back(DeviceCommand::CheckToken { socket, register });
    }

    fn pass_throttle(&mut self, socket: SocketId, device: Arc<str>, claim: Claim) {
        self.wake_socket(socket, None);
        if let Err(retry_after) = self.throttle.admit(&device, self.band, self.now) {
            let retry_after_ms = span_ms(retry_after).max(1);
            let word = ThrottleReason::ReconnectRate;
            return self.send_throttled(socket, Some(device), word, retry_after_ms, SessionReason::Reconnecting);
        }
        if !self.devices.contains_key(&device) && self.devices.len() >= self.settings.devices_max {
            return self.send_throttled(
                socket,
                Some(device),
                ThrottleReason::ConnectRate,
                SHORT_RETRY_MS,
                SessionReason::Full,
            );
        }
        let entry = self.devices.entry(device.clone()).or_default();
        if entry.queue.len() >= self.settings.registers_per_device_max {
            let word = ThrottleReason::ReconnectRate;
            self.send_throttled(socket, Some(device.clone()), word, SHORT_RETRY_MS, SessionReason::Busy);
        } else {
            entry.queue.push_back(PendingRegister {
                socket,
                arrived: self.now,
                claim,
                attempts: 0,
                rival: None,
                evicted_by: 0,
                exposure: None,
            });
            if let Some(known) = self.sockets.get_mut(&socket) {
                known.stage = SocketStage::Queued { device: device.clone() };
            }
        }
        self.run_device(&device);
    }

    fn refresh(&mut self, socket: SocketId, device: &Arc<str>) {
        let now = self.now;
        let write_again = millis(self.settings.refresh_write_ms);
        let Some(entry) = self.devices.get_mut(device) else { return };
        let Some(local) = &mut entry.holder else { return };
        let epoch = local.epoch;
        if now.saturating_since(local.refresh_written) >= write_again {
            (local.is_refreshed, local.refresh_written) = (true, now);
            entry.is_reconcile_wanted = true;
        }
        let (status, pairing_code) = (entry.known.status_held(), entry.known.pairing_code.clone());
        self.commands.push_back(DeviceCommand::Registered { socket, device: device.clone(), status, pairing_code });
        self.event(Some(device), Some(socket), SessionOutcome::Refreshed, SessionReason::Again, epoch);
        self.run_device(device);
    }

    fn flapping(&mut self, socket: SocketId, of: &Registration, retry_after: Duration, is_quarantine: bool) {
        let reason = if is_quarantine { SessionReason::Quarantined } else { SessionReason::Flapping };
        let device = of.device.clone();
        self.send_throttled(socket, device, ThrottleReason::ConnectRate, span_ms(retry_after).max(1), reason);
    }

    /// Tells a socket to come back later, and has it closed. `device` is that of a socket that has none yet.
    pub(super) fn send_throttled(
        &mut self,
        socket: SocketId,
        device: Option<Arc<str>>,
        word: ThrottleReason,
        retry_after_ms: u32,
        reason: SessionReason,
    ) {
        let Some(known) = self.end_socket(socket) else { return };
        self.commands.push_back(DeviceCommand::Throttled { socket, reason: word, retry_after_ms });
        self.commands.push_back(DeviceCommand::Close { socket, why: CloseReason::Refused });
        self.refused_event(socket, known.or(device), reason);
    }

    /// Tells a socket that it is not let in, and has it closed.
    pub(super) fn reject(&mut self, socket: SocketId, device: Option<Arc<str>>, error: AuthError) {
        let Some(known) = self.end_socket(socket) else { return };
        self.commands.push_back(DeviceCommand::AuthError { socket, error });
        self.commands.push_back(DeviceCommand::Close { socket, why: CloseReason::Refused });
        self.refused_event(socket, known.or(device), SessionReason::Auth(error));
    }

    fn refused_event(&mut self, socket: SocketId, device: Option<Arc<str>>, reason: SessionReason) {
        self.event(device.as_ref(), Some(socket), SessionOutcome::Refused, reason, 0);
    }
}

impl Claim {
    /// What a register says, of which nothing is proven.
    fn of(registration: &Registration) -> Claim {
        let pairing_code = match &registration.credentials {
            Credentials::Pairing { code } => Some(code.clone()),
            Credentials::Token | Credentials::Missing => None,
        };
        Claim {
            has_proved: false,
            owner: None,
            pairing_code,
            fingerprint: registration.fingerprint,
            address: registration.address,
            is_polling: registration.is_polling,
        }
    }
}
