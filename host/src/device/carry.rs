//! Carries out what the machine of sessions says, outside its lock.

use std::{collections::VecDeque, sync::Arc};

use pointwork_core::{
    SocketId,
    device::{CloseReason, DeviceCommand, Holder, Moment, OwnerAnswer, RegisterId, SessionEvent, Status, StoreAway},
    time::span_ms,
};
use serde_json::json;

use super::{Devices, State, store::Unread};
use crate::{
    deliver::tell,
    io::SocketRef,
    lock::lock,
    policies::{DeviceInArm, Settled, Source},
    shed::{cut_off, silence},
};

impl Devices {
    /// Takes one step of the machine and carries out all that follows from it.
    pub(super) fn drive<T>(self: &Arc<Self>, step: impl FnOnce(&mut State, Moment) -> T) -> T {
        let (result, commands) = self.step(step);
        self.carry_out_all(commands);
        result
    }

    /// The same for what others brought, which comes from tasks that must not be held up.
    pub(super) fn drive_aside<T>(self: &Arc<Self>, step: impl FnOnce(&mut State, Moment) -> T) -> T {
        let (result, commands) = self.step(step);
        if !commands.is_empty() {
            let devices = self.clone();
            tokio::spawn(async move { devices.carry_out_all(commands) });
        }
        result
    }

    fn carry_out_all(self: &Arc<Self>, commands: Vec<DeviceCommand>) {
        let mut commands = VecDeque::from(commands);
        while let Some(command) = commands.pop_front() {
            commands.extend(self.carry_out(command));
        }
    }

    /// Gives what follows at once.
    fn carry_out(self: &Arc<Self>, command: DeviceCommand) -> Vec<DeviceCommand> {
        match command {
            DeviceCommand::CheckToken { socket, register } => return self.check_token(socket, register),
            DeviceCommand::AskSettle {
                device, op, window_ms, mut incumbent, newcomer, history, trial, pinned, ..
            } => {
                let silent_ms = if incumbent.local { self.silence_of_holder(&device) } else { u32::MAX };
                incumbent.idle_ms = incumbent.idle_ms.min(silent_ms);
                let whom = DeviceInArm { device: &device, trial: trial.as_deref(), pinned: pinned.as_deref() };
                let Settled { verdict, exposure, source } =
                    self.policies.settle_device(&whom, window_ms, &incumbent, &newcomer, &history);
                let told = |state: &mut State, at| {
                    state.asked.note(op, source);
                    if let Some(holder) = state.sessions.holder(&device) {
                        state.sessions.handle_heard(holder.socket, silent_ms, at);
                    }
                    state.sessions.handle_verdict(&device, op, verdict, exposure, at);
                };
                return self.step(told).1;
            }
            DeviceCommand::Read { device, op } => {
                let devices = self.clone();
                tokio::spawn(async move {
                    let record = devices.store.read(&device).await;
                    devices.drive(|state, at| match record {
                        Ok(record) => state.sessions.handle_read(&device, op, Ok(record), at),
                        Err(Unread::Away) => state.sessions.handle_read(&device, op, Err(StoreAway), at),
                        Err(Unread::Unreadable) => state.sessions.handle_unreadable(&device, op, at),
                    });
                });
            }
            DeviceCommand::Swap { device, op, expected, record } => {
                let devices = self.clone();
                tokio::spawn(async move {
                    let swapped = devices.store.swap(&device, expected, &record).await;
                    devices.drive(|state, at| state.sessions.handle_swapped(&device, op, swapped, at));
                });
            }
            DeviceCommand::AskOwner { device, op, replica, socket } => {
                let devices = self.clone();
                tokio::spawn(async move {
                    let answer = devices.ask_owner(&device, &replica, socket).await;
                    devices.drive(|state, at| state.sessions.handle_owner(&device, op, answer, at));
                });
            }
            DeviceCommand::EvictRemote { device, epoch, replica, socket, after_ms } => {
                let devices = self.clone();
                tokio::spawn(async move { devices.evict_at(device, epoch, replica, socket, after_ms).await });
            }
            DeviceCommand::Registered { socket, device, status, pairing_code } => {
                self.tell_registered(socket, &device, status, pairing_code.as_deref());
            }
            DeviceCommand::Throttled { socket, reason, retry_after_ms } => {
                let told = json!({ "reason": reason.as_str(), "retry_after_ms": retry_after_ms });
                self.tell(socket, "device:throttled", &told);
            }
            DeviceCommand::AuthError { socket, error } => {
                self.tell(socket, "device:auth-error", &json!({ "error": error.to_string() }));
            }
            DeviceCommand::HeartbeatRefused { socket, device, holder } => {
                // Not the socket: its id is that of its HTTP session, by which others could speak for it.
                let shown = |holder: Holder| json!({ "replica": &*holder.replica, "since_ms": holder.accepted_ms });
                let told = json!({ "device_id": &*device, "holder": holder.map(shown) });
                self.tell(socket, "device:heartbeat-refused", &told);
            }
            DeviceCommand::Close { socket, why } => self.close(socket, why),
            DeviceCommand::Status { device, status, epoch, owner, last_seen_ms } => {
                self.tell_dashboards(&device, status, epoch, owner.as_deref(), last_seen_ms);
            }
            DeviceCommand::Event(event) => {
                let source = event.ask.and_then(|ask| lock(&self.state).asked.source(ask));
                note(&event, source);
            }
        }
        Vec::new()
    }

    fn check_token(self: &Arc<Self>, socket: SocketId, register: RegisterId) -> Vec<DeviceCommand> {
        let (token, claimed) = {
            let mut state = lock(&self.state);
            let client = state.sockets.get_mut(&socket);
            client.map(|client| (client.token.take(), client.claimed.clone())).unwrap_or_default()
        };
        let proof = self.tokens.check(token.as_deref(), claimed.as_deref());
        self.step(|state, at| state.sessions.handle_proof(socket, register, proof, at)).1
    }

    /// `device:registered`; one that is not paired yet gets the token that it is to come back with.
    fn tell_registered(&self, socket: SocketId, device: &str, status: Status, pairing_code: Option<&str>) {
        let mut told = json!({ "device_id": device, "status": word(status) });
        if let (Status::Provisioning, Some(code)) = (status, pairing_code) {
            match self.tokens.mint(device, None, Some(code)) {
                Ok(token) => told["device_token"] = token.into(),
                Err(error) => tracing::warn!(%error, device, "a device gets no token"),
            }
        }
        self.tell(socket, "device:registered", &told);
    }

    pub(super) fn tell(&self, socket: SocketId, event: &str, data: &serde_json::Value) {
        let socket = lock(&self.state).sockets.get(&socket).map(|client| client.socket.clone());
        if let Some(socket) = socket {
            tell(&socket, event, data);
        }
    }

    /// Closes a socket.
    fn close(&self, socket: SocketId, why: CloseReason) {
        let socket = lock(&self.state).sockets.get(&socket).map(|client| client.socket.clone());
        let Some(socket) = socket else { return };
        tracing::debug!(socket = %socket.id, ?why, "a device's socket is closed");
        close(socket);
    }

    /// What this replica says of a holder of its.
    pub(super) fn owner_answer(&self, device: &str, socket: SocketId) -> OwnerAnswer {
        let answer = lock(&self.state).sessions.owner_answer(device, socket, self.moment().now);
        match answer {
            OwnerAnswer::Alive { age_ms, idle_ms, heartbeat_ms } => {
                OwnerAnswer::Alive { age_ms, idle_ms: idle_ms.min(self.silence_of_holder(device)), heartbeat_ms }
            }
            other => other,
        }
    }

    /// How long nothing was heard of the holder of a device here, the engine's own packets included, in milliseconds; the
    /// longest there is if that is not known.
    fn silence_of_holder(&self, device: &str) -> u32 {
        let socket = {
            let state = lock(&self.state);
            let holder = state.sessions.holder(device).and_then(|holder| state.sockets.get(&holder.socket));
            holder.map(|client| client.socket.clone())
        };
        socket.and_then(|socket| silence(&socket)).map_or(u32::MAX, span_ms)
    }
}

/// Closes a socket, by a task of its own: this may be in the middle of one of the socket's events, and its end is one, too. One that
/// takes nothing more has its connection cut.
pub(super) fn close(socket: SocketRef) {
    tokio::spawn(async move {
        if socket.clone().disconnect().is_err() {
            cut_off(&socket);
        }
    });
}

/// A status as devices and dashboards read it.
pub(super) const fn word(status: Status) -> &'static str {
    match status {
        Status::Online => "online",
        Status::Offline => "offline",
        Status::Provisioning => "provisioning",
    }
}

/// A holder as operators read it.
pub(super) fn shown(holder: &Holder) -> serde_json::Value {
    let socket = holder.socket.0.to_be_bytes();
    json!({
        "replica": &*holder.replica,
        "socket": std::str::from_utf8(&socket).unwrap_or_default(),
        "since_ms": holder.accepted_ms,
    })
}

/// One line in the log and one count for each decision.
fn note(event: &SessionEvent, source: Option<Source>) {
    let outcome = format!("{:?}", event.outcome).to_lowercase();
    let reason = match event.reason {
        pointwork_core::device::Reason::Auth(_) => "auth".to_owned(),
        reason => format!("{reason:?}").to_lowercase(),
    };
    metrics::counter!("pointwork_device_sessions_total", "outcome" => outcome.clone(), "reason" => reason.clone())
        .increment(1);
    tracing::info!(
        device = event.device.as_deref(),
        outcome,
        reason,
        epoch = event.epoch,
        arm = event.exposure.as_ref().map(|exposure| exposure.arm.as_str()),
        decision = source.map(|source| source.decision),
        generation =
            source.map(|source| source.generation.map_or_else(|| "native".to_owned(), |digest| digest.short())),
        incumbent_age_ms = event.incumbent.map(|incumbent| incumbent.age_ms),
        incumbent_idle_ms = event.incumbent.map(|incumbent| incumbent.idle_ms),
        "device session"
    );
}
