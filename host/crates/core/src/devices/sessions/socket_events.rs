//! Handles the events of a socket other than registers: it opens, gives signs of life, closes.

use std::sync::Arc;

use super::state::{DeviceSocket, DeviceState, JobPurpose, LocalEnd, SocketStage, TimerOwner};
use super::{DeviceSessions, SHORT_RETRY_MS};
use crate::decisions::Departure;
use crate::devices::command::DeviceCommand;
use crate::devices::event::SessionReason;
use crate::devices::registration::{CloseReason, Moment, OwnerAnswer, ThrottleReason, TooManySockets};
use crate::ids::SocketId;
use crate::time::{Time, millis, span_ms};

impl DeviceSessions {
    /// A socket connected. It is to register in time. If there are too many it is not taken on, and is to be closed.
    pub fn handle_open(&mut self, socket: SocketId, at: Moment) -> Result<(), TooManySockets> {
        self.advance(at);
        if self.sockets.len() >= self.settings.sockets_max {
            return Err(TooManySockets);
        }
        self.sockets.insert(socket, DeviceSocket { stage: SocketStage::Fresh, last_packet: self.now, wake: None });
        self.wake_socket(socket, Some(self.now + millis(self.settings.register_timeout_ms)));
        Ok(())
    }

    /// A packet of any kind came from a socket, engine pings included. Registers and heartbeats count by themselves.
    pub fn handle_packet(&mut self, socket: SocketId, at: Moment) {
        self.advance(at);
        if let Some(known) = self.sockets.get_mut(&socket) {
            known.last_packet = self.now;
        }
    }

    /// The last that came from a socket, of whatever kind, came so long ago: what its transport knows, engine packets included.
    pub fn handle_heard(&mut self, socket: SocketId, silent_ms: u32, at: Moment) {
        self.advance(at);
        if let Some(known) = self.sockets.get_mut(&socket) {
            let later = self.now.saturating_since(known.last_packet).saturating_sub(millis(silent_ms));
            known.last_packet = known.last_packet + later;
        }
    }

    /// A `device:heartbeat` came from a socket. It counts if the socket holds the device's session.
    pub fn handle_heartbeat(&mut self, socket: SocketId, device: &Arc<str>, at: Moment) {
        self.handle_packet(socket, at);
        let now = self.now;
        match self.devices.get_mut(device) {
            Some(DeviceState { holder: Some(local), is_reconcile_wanted, .. }) if local.socket == socket => {
                local.heartbeat = now;
                *is_reconcile_wanted |= std::mem::take(&mut local.is_silent);
                self.run_device(device);
            }
            known => {
                let holder = known.and_then(|entry| entry.known.holder.clone());
                let is_open = self.sockets.get(&socket).is_some_and(|known| !matches!(known.stage, SocketStage::Ended));
                if is_open {
                    self.commands.push_back(DeviceCommand::HeartbeatRefused { socket, device: device.clone(), holder });
                }
            }
        }
    }

    /// A socket is closed, and why. Of one that held no session nothing follows.
    pub fn handle_close(&mut self, socket: SocketId, how: Departure, at: Moment) {
        self.advance(at);
        let Some(known) = self.sockets.remove(&socket) else { return };
        if let Some(at) = known.wake {
            self.timers.remove(&(at, TimerOwner::Socket(socket)));
        }
        let silent_ms = span_ms(self.now.saturating_since(known.last_packet));
        let offline_at = self.debounced();
        let device = match known.stage {
            SocketStage::Queued { device } | SocketStage::Holder { device } | SocketStage::Beside { device } => device,
            SocketStage::Fresh | SocketStage::Proving { .. } | SocketStage::Ended => return,
        };
        let Some(entry) = self.devices.get_mut(&device) else { return };
        entry.queue.retain(|waiting| waiting.socket != socket);
        entry.beside.retain(|(_, beside)| *beside != socket);
        if entry.holder.take_if(|local| local.socket == socket).is_some() {
            entry.ended = Some(LocalEnd { socket, how, silent_ms });
            entry.debounce(offline_at);
            entry.is_reconcile_wanted = true;
        } else if entry.is_deciding(socket) {
            // Should it have got the session all the same, this is how it lost it.
            entry.ended = Some(LocalEnd { socket, how, silent_ms });
        }
        self.run_device(&device);
    }

    /// What this replica answers to another one's question about a socket of its: the truth about the device's holder here,
    /// be it this socket or another.
    pub fn owner_answer(&self, device: &str, socket: SocketId, now: Time) -> OwnerAnswer {
        let now = now.max(self.now);
        let Some(entry) = self.devices.get(device) else { return OwnerAnswer::Gone };
        let idle_ms = |socket| {
            let last = self.sockets.get(&socket).map(|known| known.last_packet);
            last.map_or(0, |last| span_ms(now.saturating_since(last)))
        };
        match &entry.holder {
            Some(local) => OwnerAnswer::Alive {
                age_ms: span_ms(now.saturating_since(local.accepted)),
                idle_ms: idle_ms(local.socket),
                heartbeat_ms: span_ms(now.saturating_since(local.heartbeat)),
            },
            // The record may name it already, and the news be on its way here.
            None if entry.is_deciding(socket) && self.is_queued(socket, device) => {
                OwnerAnswer::Alive { age_ms: 0, idle_ms: idle_ms(socket), heartbeat_ms: 0 }
            }
            None => OwnerAnswer::Gone,
        }
    }

    /// Whether a socket waits for what becomes of its register.
    pub(super) fn is_queued(&self, socket: SocketId, device: &str) -> bool {
        let stage = self.sockets.get(&socket).map(|known| &known.stage);
        matches!(stage, Some(SocketStage::Queued { device: of }) if **of == *device)
    }

    /// A socket is told to close: nothing that comes of it counts any more. Gives its device as far as it is known; `None`
    /// if it is gone or was told already.
    pub(super) fn end_socket(&mut self, socket: SocketId) -> Option<Option<Arc<str>>> {
        self.wake_socket(socket, None);
        let known = self.sockets.get_mut(&socket)?;
        match std::mem::replace(&mut known.stage, SocketStage::Ended) {
            SocketStage::Ended => None,
            SocketStage::Fresh => Some(None),
            SocketStage::Proving { registration, .. } => Some(registration.device),
            SocketStage::Queued { device } | SocketStage::Holder { device } | SocketStage::Beside { device } => {
                Some(Some(device))
            }
        }
    }

    /// Sets a socket's timer, or takes it away.
    pub(super) fn wake_socket(&mut self, socket: SocketId, at: Option<Time>) {
        let Some(known) = self.sockets.get_mut(&socket) else { return };
        if let Some(old) = std::mem::replace(&mut known.wake, at) {
            self.timers.remove(&(old, TimerOwner::Socket(socket)));
        }
        if let Some(at) = at {
            self.timers.insert((at, TimerOwner::Socket(socket)));
        }
    }

    /// A socket's timer went off.
    pub(super) fn socket_due(&mut self, socket: SocketId) {
        let Some(known) = self.sockets.get_mut(&socket) else { return };
        known.wake = None;
        match known.stage {
            SocketStage::Fresh => {
                known.stage = SocketStage::Ended;
                self.commands.push_back(DeviceCommand::Close { socket, why: CloseReason::NeverRegistered });
            }
            SocketStage::Proving { .. } => {
                self.send_throttled(
                    socket,
                    None,
                    ThrottleReason::ConnectRate,
                    SHORT_RETRY_MS,
                    SessionReason::Unchecked,
                );
            }
            SocketStage::Queued { .. }
            | SocketStage::Holder { .. }
            | SocketStage::Beside { .. }
            | SocketStage::Ended => {}
        }
    }
}

impl DeviceState {
    /// Whether this socket's register is the one being decided, and the record may be changed for it already.
    pub(super) fn is_deciding(&self, socket: SocketId) -> bool {
        self.job
            .as_ref()
            .is_some_and(|job| matches!(&job.work, JobPurpose::Register(waiting) if waiting.socket == socket))
    }
}
