//! Gives one call machine a clock and a caller, and reads what it tells the host.

use std::time::Duration;

use crate::calls::answer::{Answer, CallRefused};
use crate::calls::command::CallCommand;
use crate::calls::machine::CallMachine;
use crate::calls::settings::CallSettings;
use crate::decisions::{Absence, Candidate, Choice, Departure, Doubt, Traits, Verdict};
use crate::ids::{AskId, CallId, SocketId};
use crate::time::Time;

pub(super) const DAEMON: SocketId = SocketId(1);
pub(super) const SECOND: SocketId = SocketId(2);
pub(super) const CALLER: SocketId = SocketId(9);

pub(super) type Told = CallCommand<&'static str>;

/// A call machine at a moment, with a caller connected.
pub(super) struct Harness {
    pub(super) machine: CallMachine<&'static str>,
    pub(super) now: Time,
    /// What callers were told of being held, in milliseconds: since when, and for how long at most.
    pub(super) held: Vec<(CallId, u128, u128)>,
}

impl Harness {
    pub(super) fn new() -> Harness {
        Harness::with(CallSettings::default())
    }

    pub(super) fn with(settings: CallSettings) -> Harness {
        let mut harness = Harness { machine: CallMachine::new(settings), now: Time::ZERO, held: Vec::new() };
        harness.connect(CALLER);
        harness
    }

    /// With the daemon connected and registered for `m` too.
    pub(super) fn served() -> Harness {
        let mut harness = Harness::new();
        harness.connect(DAEMON);
        harness.register(DAEMON);
        harness
    }

    pub(super) fn connect(&mut self, socket: SocketId) {
        let traits = Traits { local: true, resumable: true, ..Traits::default() };
        self.machine.handle_connect(socket, "u".into(), 0, traits, self.now);
    }

    /// A daemon of replica 1 that registered `m` so long ago.
    pub(super) fn serve_remotely(&mut self, socket: SocketId, age_ms: u64) {
        let traits = Traits { resumable: true, ..Traits::default() };
        self.machine.handle_connect(socket, "u".into(), 1, traits, self.now);
        self.machine.handle_registered(socket, "m".into(), Duration::from_millis(age_ms), self.now).unwrap();
    }

    pub(super) fn leave(&mut self, socket: SocketId, cause: Departure) {
        self.machine.handle_disconnect(socket, cause, self.now);
    }

    pub(super) fn register(&mut self, socket: SocketId) {
        self.machine.handle_register(socket, "m".into(), self.now).unwrap();
    }

    pub(super) fn unregister(&mut self, socket: SocketId) {
        self.machine.handle_unregister(socket, &"m".into(), self.now).unwrap();
    }

    pub(super) fn disconnect(&mut self, socket: SocketId) {
        self.machine.handle_disconnect(socket, Departure::TransportLost, self.now);
    }

    pub(super) fn try_call(&mut self, method: &str) -> Result<CallId, CallRefused> {
        self.machine.handle_call(CALLER, method.into(), 3, Duration::from_secs(30), self.now)
    }

    pub(super) fn call(&mut self) -> CallId {
        self.try_call("m").unwrap()
    }

    /// A call that was emitted to the daemon; what was told until then is dropped.
    pub(super) fn call_in_flight(&mut self) -> CallId {
        let call = self.call();
        let ask = self.asked(call);
        self.choose(call, ask, 0);
        assert_eq!(self.machine.in_flight(DAEMON), 1);
        self.told();
        call
    }

    pub(super) fn choose(&mut self, call: CallId, ask: AskId, index: u32) {
        self.machine.handle_choice(call, ask, Choice::Pick(index), self.now);
    }

    pub(super) fn judge(&mut self, call: CallId, ask: AskId, verdict: Verdict) {
        self.machine.handle_judgement(call, ask, verdict, self.now);
    }

    pub(super) fn wait(&mut self, call: CallId, ask: AskId, wait_ms: u32) {
        self.machine.handle_wait(call, ask, wait_ms, self.now);
    }

    pub(super) fn pass(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
        self.machine.handle_timeout(self.now);
    }

    /// What there is to do, but for what callers are told of being held.
    pub(super) fn told(&mut self) -> Vec<Told> {
        let mut told = Vec::new();
        while let Some(command) = self.machine.next_command() {
            match command {
                CallCommand::Held { call, since, left } => self.held.push((call, since.as_millis(), left.as_millis())),
                other => told.push(other),
            }
        }
        told
    }

    /// The number of the only question that came up, which is about this call.
    pub(super) fn asked(&mut self, about: CallId) -> AskId {
        let told = self.told();
        match told.as_slice() {
            [
                CallCommand::AskTarget { call, ask, .. }
                | CallCommand::AskGrace { call, ask, .. }
                | CallCommand::AskPresence { call, ask, .. },
            ] if *call == about => *ask,
            other => panic!("one question expected: {other:?}"),
        }
    }

    pub(super) fn absence(&mut self) -> (crate::decisions::Call, Absence) {
        match self.told().pop() {
            Some(CallCommand::AskGrace { input, absence, .. }) => (input, absence),
            other => panic!("AskGrace expected: {other:?}"),
        }
    }

    pub(super) fn doubt(&mut self) -> (AskId, crate::decisions::Call, Doubt) {
        match self.told().pop() {
            Some(CallCommand::AskPresence { ask, input, doubt, .. }) => (ask, input, doubt),
            other => panic!("AskPresence expected: {other:?}"),
        }
    }

    pub(super) fn candidates(&mut self) -> (AskId, crate::decisions::Call, Vec<Candidate>) {
        match self.told().pop() {
            Some(CallCommand::AskTarget { ask, input, candidates, .. }) => (ask, input, candidates),
            other => panic!("AskTarget expected: {other:?}"),
        }
    }

    pub(super) fn answered(&mut self, call: CallId, answer: Answer<&'static str>) {
        assert_eq!(self.told(), [CallCommand::Answer { call, answer }]);
        assert_eq!(self.machine.poll_timeout(), None);
        let load = self.machine.load();
        assert_eq!((load.calls, load.waiting, load.in_flight, load.timers), (0, 0, 0, 0));
        assert_eq!((load.calling_users, load.callers), (0, 0));
    }
}
