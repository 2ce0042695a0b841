//! Carries out what the machine of sessions says, outside its lock.

use std::sync::Arc;

use pointwork_core::{
    SocketId,
    devices::{
        CloseReason, DeviceCommand, DeviceStatus, Holder, Moment, OwnerAnswer, RegisterId, SessionEvent, StoreAway,
    },
    time::span_ms,
};
use serde_json::json;

use super::state::{Devices, SessionsState, at_moment};
use crate::{
    cluster::device_store::Unread,
    edge::{disconnect::close_socket, send::emit, socketio::SocketRef, transport::silence},
    policies::slots::{DecisionSource, DeviceInArm, SettleDecision},
};

impl Devices {
    /// Takes one step of the machine and carries out all that follows from it.
    pub(super) fn drive<T>(self: &Arc<Self>, step: impl FnOnce(&mut SessionsState, Moment) -> T) -> T {
        self.driver.drive(at_moment(step), |command| self.carry_out(command))
    }

    /// The same for news that a task of the cluster brings; see [`Driver::drive_aside`](crate::driver::Driver::drive_aside).
    pub(super) fn drive_aside<T>(self: &Arc<Self>, step: impl FnOnce(&mut SessionsState, Moment) -> T) -> T {
        let devices = self.clone();
        self.driver.drive_aside(at_moment(step), move |command| devices.carry_out(command))
    }

    /// Carries out one command. Returns the commands that follow at once.
    fn carry_out(self: &Arc<Self>, command: DeviceCommand) -> Vec<DeviceCommand> {
        match command {
            DeviceCommand::CheckToken { socket, register } => return self.check_token(socket, register),
            DeviceCommand::AskSettle { .. } => return self.ask_settle(command),
            DeviceCommand::Read { .. }
            | DeviceCommand::Swap { .. }
            | DeviceCommand::AskOwner { .. }
            | DeviceCommand::EvictRemote { .. } => {
                tokio::spawn(self.clone().ask(command));
            }
            DeviceCommand::Registered { socket, device, status, pairing_code } => {
                self.tell_registered(socket, &device, status, pairing_code.as_deref());
            }
            DeviceCommand::Throttled { socket, reason, retry_after_ms } => {
                let throttled = json!({ "reason": reason.as_str(), "retry_after_ms": retry_after_ms });
                self.tell(socket, "device:throttled", &throttled);
            }
            DeviceCommand::AuthError { socket, error } => {
                self.tell(socket, "device:auth-error", &json!({ "error": error.to_string() }));
            }
            DeviceCommand::HeartbeatRefused { socket, device, holder } => {
                // Without the id of the holder's socket: it is also the id of its HTTP session, and whoever knows that can use it.
                let holder = holder.map(|it| json!({ "replica": &*it.replica, "since_ms": it.accepted_ms }));
                let refused = json!({ "device_id": &*device, "holder": holder });
                self.tell(socket, "device:heartbeat-refused", &refused);
            }
            DeviceCommand::Close { socket, why } => self.close(socket, why),
            DeviceCommand::Status { device, status, epoch, owner, last_seen_ms } => {
                self.tell_dashboards(&device, status, epoch, owner.as_deref(), last_seen_ms);
            }
            DeviceCommand::Event(event) => {
                let source = event.ask.and_then(|ask| self.driver.peek(|state| state.settle_sources.of(ask)));
                note(&event, source);
            }
        }
        Vec::new()
    }

    /// Asks `settle` which of two sockets holds the session.
    fn ask_settle(&self, command: DeviceCommand) -> Vec<DeviceCommand> {
        let DeviceCommand::AskSettle { device, op, window_ms, mut incumbent, newcomer, history, trial, pinned, .. } =
            command
        else {
            return Vec::new();
        };
        let silent_ms = if incumbent.local { self.silence_of_holder(&device) } else { u32::MAX };
        incumbent.idle_ms = incumbent.idle_ms.min(silent_ms);
        let whom = DeviceInArm { device: &device, trial: trial.as_deref(), pinned: pinned.as_deref() };
        let SettleDecision { verdict, exposure, source } =
            self.policies.settle_device(&whom, window_ms, &incumbent, &newcomer, &history);
        let settled = |state: &mut SessionsState, at| {
            state.settle_sources.note(op, source);
            if let Some(holder) = state.sessions.holder(&device) {
                state.sessions.handle_heard(holder.socket, silent_ms, at);
            }
            state.sessions.handle_verdict(&device, op, verdict, exposure, at);
        };
        self.driver.step(at_moment(settled)).1
    }

    /// Asks the store or another replica, and brings the machine the answer.
    async fn ask(self: Arc<Self>, command: DeviceCommand) {
        match command {
            DeviceCommand::Read { device, op } => {
                let record = self.store.read(&device).await;
                self.drive(|state, at| match record {
                    Ok(record) => state.sessions.handle_read(&device, op, Ok(record), at),
                    Err(Unread::Away) => state.sessions.handle_read(&device, op, Err(StoreAway), at),
                    Err(Unread::Unreadable) => state.sessions.handle_unreadable(&device, op, at),
                });
            }
            DeviceCommand::Swap { device, op, expected, record } => {
                let swapped = self.store.swap(&device, expected, &record).await;
                self.drive(|state, at| state.sessions.handle_swapped(&device, op, swapped, at));
            }
            DeviceCommand::AskOwner { device, op, replica, socket } => {
                let answer = self.ask_owner(&device, &replica, socket).await;
                self.drive(|state, at| state.sessions.handle_owner(&device, op, answer, at));
            }
            DeviceCommand::EvictRemote { device, epoch, replica, socket, after_ms } => {
                self.evict_at(device, epoch, replica, socket, after_ms).await;
            }
            _ => {}
        }
    }

    fn check_token(&self, socket: SocketId, register: RegisterId) -> Vec<DeviceCommand> {
        let take = |state: &mut SessionsState, _| {
            let client = state.clients.get_mut(&socket);
            client.map(|client| (client.token.take(), client.claimed.clone())).unwrap_or_default()
        };
        let ((token, claimed), mut commands) = self.driver.step(take);
        let proof = self.tokens.check(token.as_deref(), claimed.as_deref());
        let proven = |state: &mut SessionsState, at| state.sessions.handle_proof(socket, register, proof, at);
        commands.extend(self.driver.step(at_moment(proven)).1);
        commands
    }

    /// `device:registered`; one that is not paired yet gets the token that it is to come back with.
    fn tell_registered(&self, socket: SocketId, device: &str, status: DeviceStatus, pairing_code: Option<&str>) {
        let mut told = json!({ "device_id": device, "status": word(status) });
        if let (DeviceStatus::Provisioning, Some(code)) = (status, pairing_code) {
            match self.tokens.mint(device, None, Some(code)) {
                Ok(token) => told["device_token"] = token.into(),
                Err(error) => tracing::warn!(%error, device, "a device gets no token"),
            }
        }
        self.tell(socket, "device:registered", &told);
    }

    fn socket(&self, socket: SocketId) -> Option<SocketRef> {
        self.driver.peek(|state| state.clients.get(&socket).map(|client| client.socket.clone()))
    }

    pub(super) fn tell(&self, socket: SocketId, event: &str, data: &serde_json::Value) {
        let socket = self.socket(socket);
        if let Some(socket) = socket {
            emit(&socket, event, data);
        }
    }

    /// Closes a socket.
    fn close(&self, socket: SocketId, why: CloseReason) {
        let socket = self.socket(socket);
        let Some(socket) = socket else { return };
        tracing::debug!(socket = %socket.id, ?why, "a device's socket is closed");
        close_socket(socket);
    }

    /// What this replica says of a holder of its.
    pub(super) fn owner_answer(&self, device: &str, socket: SocketId) -> OwnerAnswer {
        let now = self.driver.clock().now();
        let answer = self.driver.peek(|state| state.sessions.owner_answer(device, socket, now));
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
        let socket = self.driver.peek(|state| {
            let holder = state.sessions.holder(device).and_then(|holder| state.clients.get(&holder.socket));
            holder.map(|client| client.socket.clone())
        });
        socket.and_then(|socket| silence(&socket)).map_or(u32::MAX, span_ms)
    }
}

/// A status as devices and dashboards read it.
pub(super) const fn word(status: DeviceStatus) -> &'static str {
    match status {
        DeviceStatus::Online => "online",
        DeviceStatus::Offline => "offline",
        DeviceStatus::Provisioning => "provisioning",
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
fn note(event: &SessionEvent, source: Option<DecisionSource>) {
    let outcome = format!("{:?}", event.outcome).to_lowercase();
    let reason = match event.reason {
        pointwork_core::devices::SessionReason::Auth(_) => "auth".to_owned(),
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
