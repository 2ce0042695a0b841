//! Breaks the call machine on purpose.
//!
//! A simulation that finds nothing proves nothing unless it would have found something. Each [`Flaw`] is a mistake that
//! the machine could have made. The tests assert that the auditor finds every one of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use pointwork_core::decisions::Departure;
use pointwork_core::{
    Answer, CallCommand, CallId, CallLoad, CallMachine, CallRefused, CallSettings, RegisterError, RpcRoom, SocketId,
    Time,
};

/// A mistake that the machine is made to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A caller's leaving does not end what was held for its calls.
    DropCancel,
    /// A call that was answered is answered again at its deadline.
    AnswerOnTimeoutToo,
    /// An acknowledgement that ends without an answer is taken as proof that the target left.
    TrustAbsentReply,
    /// So is the silence of its replica.
    TrustSilence,
    /// The timer of a settled call stays.
    KeepTimer,
    /// When a daemon registers, the requests in flight are sent to it once more.
    ResendOnReconnect,
}

/// The machine of one process.
pub(crate) struct FlawedMachine {
    machine: CallMachine<u64>,
    pub(crate) flaw: Option<Flaw>,
    now: Time,
    /// The calls in flight, while there is a flaw.
    flights: BTreeMap<CallId, Flight>,
    rooms: BTreeMap<CallId, RpcRoom>,
    /// Calls that have ended and are not let go, with their deadlines.
    ghosts: BTreeSet<(Time, CallId)>,
    extra: VecDeque<CallCommand<u64>>,
}

#[derive(Clone, Copy)]
struct Flight {
    target: SocketId,
    deadline: Time,
    left: Duration,
    resumable: bool,
}

/// Inputs that no flaw changes go to the real machine.
impl Deref for FlawedMachine {
    type Target = CallMachine<u64>;

    fn deref(&self) -> &CallMachine<u64> {
        &self.machine
    }
}

impl DerefMut for FlawedMachine {
    fn deref_mut(&mut self) -> &mut CallMachine<u64> {
        &mut self.machine
    }
}

impl FlawedMachine {
    pub(crate) fn new(settings: CallSettings) -> FlawedMachine {
        FlawedMachine {
            machine: CallMachine::new(settings),
            flaw: None,
            now: Time::ZERO,
            flights: BTreeMap::new(),
            rooms: BTreeMap::new(),
            ghosts: BTreeSet::new(),
            extra: VecDeque::new(),
        }
    }

    pub(crate) fn handle_register(
        &mut self,
        socket: SocketId,
        method: Arc<str>,
        now: Time,
    ) -> Result<(), RegisterError> {
        self.resend(socket, &method);
        self.machine.handle_register(socket, method, now)
    }

    pub(crate) fn handle_registered(
        &mut self,
        socket: SocketId,
        method: Arc<str>,
        age: Duration,
        now: Time,
    ) -> Result<(), RegisterError> {
        self.resend(socket, &method);
        self.machine.handle_registered(socket, method, age, now)
    }

    pub(crate) fn handle_disconnect(&mut self, socket: SocketId, cause: Departure, now: Time) {
        let is_trusted = self.flaw == Some(Flaw::TrustSilence) && cause == Departure::ReplicaSilent;
        self.machine.handle_disconnect(socket, if is_trusted { Departure::ReplicaLost } else { cause }, now);
    }

    pub(crate) fn handle_call(
        &mut self,
        caller: SocketId,
        method: Arc<str>,
        bytes: u32,
        timeout: Duration,
        now: Time,
    ) -> Result<CallId, CallRefused> {
        let room = self.flaw.and_then(|_| self.machine.directory().user(caller)).cloned();
        let taken = self.machine.handle_call(caller, method.clone(), bytes, timeout, now);
        if let (Ok(id), Some(user)) = (taken, room) {
            self.rooms.insert(id, RpcRoom { user, method });
        }
        taken
    }

    pub(crate) fn handle_unanswerable(&mut self, call: CallId, now: Time) {
        if self.flaw == Some(Flaw::TrustAbsentReply)
            && let Some(flight) = self.flights.get(&call)
        {
            return self.machine.handle_disconnect(flight.target, Departure::TransportLost, now);
        }
        self.machine.handle_unanswerable(call, now);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let kept = self.kept().next().map(|(at, _)| *at);
        self.machine.poll_timeout().into_iter().chain(kept).min()
    }

    pub(crate) fn load(&self) -> CallLoad {
        let mut load = self.machine.load();
        load.timers += self.kept().count();
        load
    }

    pub(crate) fn next_command(&mut self) -> Option<CallCommand<u64>> {
        let Some(flaw) = self.flaw else { return self.machine.next_command() };
        while let Some(command) = self.machine.next_command() {
            self.watch(&command);
            if flaw != Flaw::DropCancel || !matches!(command, CallCommand::Forget { .. }) {
                return Some(command);
            }
        }
        self.extra.pop_front()
    }

    /// Timers of calls that have ended.
    fn kept(&self) -> impl Iterator<Item = &(Time, CallId)> {
        self.ghosts.iter().filter(|_| self.flaw == Some(Flaw::KeepTimer))
    }

    fn watch(&mut self, command: &CallCommand<u64>) {
        match command {
            CallCommand::Emit { call, target, left, resumable } => {
                let flight = Flight { target: *target, deadline: self.now + *left, left: *left, resumable: *resumable };
                self.flights.insert(*call, flight);
            }
            CallCommand::Answer { call, .. } | CallCommand::Forget { call } => {
                self.rooms.remove(call);
                if let Some(flight) = self.flights.remove(call) {
                    self.ghosts.insert((flight.deadline, *call));
                }
            }
            _ => {}
        }
    }

    /// Time has come so far.
    pub(crate) fn pass(&mut self, now: Time) {
        self.now = self.now.max(now);
        while self.ghosts.first().is_some_and(|(at, _)| *at <= self.now)
            && let Some((_, call)) = self.ghosts.pop_first()
        {
            if self.flaw == Some(Flaw::AnswerOnTimeoutToo) {
                self.extra.push_back(CallCommand::Answer { call, answer: Answer::TimedOut });
            }
        }
    }

    fn resend(&mut self, socket: SocketId, method: &Arc<str>) {
        if self.flaw != Some(Flaw::ResendOnReconnect) {
            return;
        }
        let user = self.machine.directory().user(socket);
        for (call, flight) in &self.flights {
            let is_its = |room: &RpcRoom| Some(&room.user) == user && room.method == *method;
            if self.rooms.get(call).is_some_and(is_its) {
                let Flight { left, resumable, .. } = *flight;
                self.extra.push_back(CallCommand::Emit { call: *call, target: socket, left, resumable });
            }
        }
    }
}
