//! Judges what each socket is told: in which order, how often, and whether it is true.

use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::decisions::Liveness;
use pointwork_core::devices::{
    AuthError, CloseReason, DeviceCommand, DeviceRecord, DeviceStatus, SessionEvent, SessionOutcome, SessionReason,
    ThrottleReason,
};

use super::auditor::{DeviceAuditor, HISTORY_MAX, SocketRecord};

impl DeviceAuditor {
    pub(crate) fn registers(&mut self, socket: SocketId, is_pairing: bool) {
        let now_us = self.now_us;
        let record = self.sockets.entry(socket).or_default();
        if record.is_refused || record.is_told_to_close {
            return;
        }
        if record.is_registered {
            record.refreshes += 1;
        } else if record.arrived_us.is_none() {
            (record.arrived_us, record.is_proved) = (Some(now_us), is_pairing);
        }
    }

    pub(crate) fn proves(&mut self, socket: SocketId) {
        self.sockets.entry(socket).or_default().is_proved = true;
    }

    pub(crate) fn closes(&mut self, socket: SocketId) {
        self.sockets.remove(&socket);
    }

    /// A replica wants something done. `record` is what the store holds of the device that the command's socket is of.
    pub(crate) fn check_command<'r>(
        &mut self,
        command: &DeviceCommand,
        record: impl Fn(SocketId) -> Option<&'r DeviceRecord>,
    ) {
        match command {
            DeviceCommand::CheckToken { socket, .. } => {
                let known = self.sockets.entry(*socket).or_default();
                let is_first = !std::mem::replace(&mut known.is_checked, true);
                let is_due = is_first && known.arrived_us.is_some();
                self.demand(is_due, "order-of-gates", || format!("{socket:?} is checked twice, or for nothing"));
            }
            DeviceCommand::AskSettle { socket, history, incumbent, .. } => {
                let is_proved = self.sockets.get(socket).is_none_or(|known| known.is_proved);
                self.demand(history.len() <= HISTORY_MAX, "bounded-history", || format!("{} events", history.len()));
                self.demand(is_proved, "order-of-gates", || format!("{socket:?} comes to settle before its token"));
                let is_there = incumbent.liveness != Liveness::Gone;
                self.demand(is_there, "not-stranded", || "the rule is asked about one that is gone".to_owned());
            }
            DeviceCommand::Registered { socket, .. } => self.check_registered(*socket),
            DeviceCommand::Throttled { socket, reason, retry_after_ms } => {
                self.demand(*retry_after_ms > 0, "every-register-answered", || format!("{socket:?}: come back when?"));
                self.check_refused(*socket, *reason == ThrottleReason::ReconnectRate);
            }
            DeviceCommand::AuthError { error: AuthError::OtherDevice, .. } => {}
            DeviceCommand::AuthError { socket, error } => {
                self.check_refused(*socket, !matches!(error, AuthError::Missing | AuthError::BadToken));
            }
            DeviceCommand::Close { socket, why } => self.check_close(*socket, *why, record),
            DeviceCommand::Status { device, status, epoch, .. } => {
                self.shows(device, *epoch, *status);
                self.count(format_args!("status {status:?}"));
            }
            DeviceCommand::Event(event) => self.check_event(event),
            _ => {}
        }
    }

    /// A device's status is told to dashboards. Of two messages the one with the greater epoch is the newer.
    pub(crate) fn shows(&mut self, device: &Arc<str>, epoch: u64, status: DeviceStatus) {
        let known = self.device(device);
        if epoch >= known.shown.0 {
            known.shown = (epoch, status);
        }
    }

    fn check_registered(&mut self, socket: SocketId) {
        let Some(record) = self.sockets.get_mut(&socket) else { return };
        let &mut SocketRecord { is_refused, is_told_to_close, is_proved, is_registered, refreshes, .. } = record;
        let is_first = record.arrived_us.take().is_some();
        record.is_registered = true;
        record.refreshes -= usize::from(!is_first && refreshes > 0);
        let is_new = !is_refused && !is_told_to_close && (is_first || is_registered && refreshes > 0);
        self.demand(is_new, "every-register-answered", || format!("{socket:?} is registered twice, or was refused"));
        self.demand(is_proved || !is_first, "order-of-gates", || format!("{socket:?} is registered without proof"));
    }

    fn check_refused(&mut self, socket: SocketId, needs_proof: bool) {
        let Some(record) = self.sockets.get_mut(&socket) else { return };
        let was_refused = std::mem::replace(&mut record.is_refused, true);
        // One that had the session and lost it is told so, too.
        let has_asked = record.arrived_us.is_some() || record.is_registered;
        let is_passed = record.is_proved || !needs_proof;
        self.refused.push(socket);
        let is_new = has_asked && !was_refused;
        self.demand(is_new, "every-register-answered", || format!("{socket:?} is refused twice, or for nothing"));
        self.demand(is_passed, "order-of-gates", || format!("{socket:?} meets a later gate before the token"));
    }

    fn check_close<'r>(
        &mut self,
        socket: SocketId,
        why: CloseReason,
        record: impl Fn(SocketId) -> Option<&'r DeviceRecord>,
    ) {
        self.count(format_args!("closed {why:?}"));
        let is_in_trouble = self.is_in_trouble();
        let Some(known) = self.sockets.get_mut(&socket) else { return };
        known.is_told_to_close = true;
        if why == CloseReason::Evicted && known.is_registered && !is_in_trouble {
            let is_named =
                record(socket).and_then(|record| record.holder.as_ref()).is_some_and(|one| one.socket == socket);
            self.demand(!is_named, "one-holder", || format!("{socket:?} is evicted while the record names it"));
        }
    }

    fn check_event(&mut self, event: &SessionEvent) {
        self.count(format_args!("{:?} {:?}", event.outcome, event.reason));
        let (Some(device), Some(socket)) = (&event.device, event.socket) else { return };
        let Some(record) = self.sockets.get_mut(&socket) else { return };
        let arrived_us = record.arrived_us.take_if(|_| event.outcome == SessionOutcome::Refused);
        if event.reason == SessionReason::Settled && event.outcome == SessionOutcome::Refused {
            let arrived_us = arrived_us.unwrap_or(self.now_us);
            let last_step_us = self.last_step_us;
            let mut others = self.device(device).in_place.iter();
            let is_held =
                others.any(|(other, left_us)| *other != socket && left_us.unwrap_or(last_step_us) >= arrived_us);
            self.demand(is_held, "not-stranded", || format!("{socket:?} was refused in favour of nobody"));
        }
    }

    /// A step ends: what was refused in it was told to close.
    pub(crate) fn check_closed(&mut self) {
        for socket in std::mem::take(&mut self.refused) {
            let is_told = self.sockets.get(&socket).is_none_or(|record| record.is_told_to_close);
            self.demand(is_told, "refused-is-closed", || format!("{socket:?} was refused, and is not closed"));
        }
    }
}
