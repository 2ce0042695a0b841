//! A seeded simulation of the call machine: sockets come and go, verdicts come late, twice, in another order or never,
//! time jumps; other replicas fall silent, come back or are lost, and the link to them goes down. After every step the
//! machine must have said exactly what the reference model says, and every invariant must hold.
//!
//! `SEED=123 cargo test -p pointwork-core --test simulation` runs one seed, `SEEDS=50000` so many. A failure prints the seed, the
//! shortest schedule that fails and its last steps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod auditor;
mod input;
mod model;
mod past;
#[path = "../seeded/mod.rs"]
mod seeded;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use pointwork_core::decisions::{Choice, Departure, Traits, Verdict};
use pointwork_core::{AskId, CallCommand, CallId, CallMachine, CallSettings, SocketId, Time};
use proptest::collection::vec;
use proptest::sample::select;

use crate::auditor::Auditor;
use crate::input::{Input, Returned};
use crate::model::Model;
use crate::seeded::Random;

const SEEDS: u64 = 500;
/// Steps of a schedule at most; half as many on average.
const STEPS_MAX: usize = 2_000;

/// One run: the machine, the model, the auditor, and what the world around them may still do.
struct World {
    random: Random,
    machine: CallMachine<u64>,
    model: Model,
    auditor: Auditor,
    now: Time,
    /// The latest moment the machine was told.
    told_now: Time,
    connected: Vec<SocketId>,
    questions: Vec<(CallId, AskId, Slot)>,
    emitted: Vec<CallId>,
    /// What other replicas have told that is still on its way.
    news: VecDeque<Input>,
    /// The sockets of replicas that fell silent, each with its user and methods.
    silent: Vec<(SocketId, Arc<str>, Vec<Arc<str>>)>,
    /// The last steps, for a failure's message.
    trace: VecDeque<String>,
}

#[derive(Clone, Copy)]
enum Slot {
    Target,
    Grace,
    Presence,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let tight = random.once_in(3);
        let settings = CallSettings {
            calls_max: if tight { 9 } else { 10_000 },
            calls_per_user_max: if tight { 5 } else { 1_000 },
            waiting_per_room_max: if tight { 2 } else { 256 },
            methods_per_socket_max: if tight { 2 } else { 1_024 },
            // Two users with four methods: nothing is pushed out of the history, which the model does not do.
            history_rooms_max: 16,
            ..CallSettings::default()
        };
        World {
            random,
            machine: CallMachine::new(settings),
            model: Model::new(settings),
            auditor: Auditor::default(),
            now: Time::ZERO,
            told_now: Time::ZERO,
            connected: Vec::new(),
            questions: Vec::new(),
            emitted: Vec::new(),
            news: VecDeque::new(),
            silent: Vec::new(),
            trace: VecDeque::new(),
        }
    }

    fn run(&mut self, steps: &[u64]) {
        for step in steps {
            self.random = Random::new(*step);
            self.pass_time();
            let input = self.any_input();
            // A thread that read the clock before another one took the lock.
            let behind = if self.random.once_in(20) { self.random.below(500) } else { 0 };
            self.step(&input, Time::from_micros(self.now.as_micros().saturating_sub(behind)));
        }
        self.wind_down();
    }

    /// Nobody answers any more: every call must come to its end by time alone, and then nothing be left.
    fn wind_down(&mut self) {
        while let Some(input) = self.news.pop_front() {
            self.step(&input, self.now);
        }
        while let Some(at) = self.machine.poll_timeout() {
            self.now = self.now.max(at);
            self.step(&Input::Timeout, self.now);
        }
        while let Some(socket) = self.connected.pop() {
            self.step(&Input::Disconnect(socket, Departure::Closed), self.now);
        }
    }

    fn step(&mut self, input: &Input, now: Time) {
        if self.trace.len() == 30 {
            self.trace.pop_front();
        }
        let mut input_text = format!("{input:?}");
        input_text.truncate(200);
        self.trace.push_back(format!("{:>12} µs  {input_text}", now.as_micros()));
        self.told_now = self.told_now.max(now);
        self.auditor.before(input);
        let returned = input.give(&mut self.machine, now);
        let told: Vec<CallCommand<u64>> = std::iter::from_fn(|| self.machine.next_command()).collect();
        let expected = self.model.give(input, now);
        assert_eq!((&returned, &told), (&expected.0, &expected.1), "machine (left) and model (right) differ");
        self.auditor.after(input, &returned, &told, &self.machine, self.told_now);
        assert_eq!(self.machine.poll_timeout(), self.model.next_wake(), "next wake");
        assert_eq!(self.machine.load().sockets, self.model.sockets());
        self.remember(&told);
    }

    fn remember(&mut self, told: &[CallCommand<u64>]) {
        for command in told {
            match command {
                CallCommand::AskTarget { call, ask, .. } => self.questions.push((*call, *ask, Slot::Target)),
                CallCommand::AskGrace { call, ask, .. } => self.questions.push((*call, *ask, Slot::Grace)),
                CallCommand::AskPresence { call, ask, .. } => self.questions.push((*call, *ask, Slot::Presence)),
                CallCommand::Emit { call, .. } => self.emitted.push(*call),
                CallCommand::Answer { .. }
                | CallCommand::Forget { .. }
                | CallCommand::Held { .. }
                | CallCommand::WarnSeveral { .. } => {}
            }
        }
    }

    fn pass_time(&mut self) {
        let span_us = match self.random.below(1_000) {
            0 => 3_700_000_000,
            1..=4 => 61_000_000,
            5..=20 => self.random.below(4_000_000),
            21..=35 => {
                // Exactly when the machine wants to be woken.
                self.now = self.machine.poll_timeout().map_or(self.now, |at| self.now.max(at));
                return;
            }
            36..=500 => self.random.below(30_000),
            _ => 0,
        };
        self.now = self.now + Duration::from_micros(span_us);
    }

    fn any_input(&mut self) -> Input {
        if !self.random.once_in(4)
            && let Some(input) = self.news.pop_front()
        {
            return input;
        }
        match self.random.below(100) {
            0..=5 => self.connect(),
            6..=7 => Input::Packet(self.socket()),
            8..=15 => Input::Register(self.daemon(), self.method()),
            16..=21 => Input::Registered(self.daemon(), self.method(), self.age()),
            22..=25 => Input::Unregister(self.daemon(), self.method()),
            26..=28 => self.disconnect(),
            29 => self.replica_event(),
            30 => Input::Link(!self.random.once_in(6)),
            31 if self.random.once_in(2) => self.forget(),
            31 => self.resumed(),
            32..=46 => self.call(),
            47..=84 => self.verdict(),
            85..=95 => self.result(),
            _ => Input::Timeout,
        }
    }

    fn age(&mut self) -> Duration {
        let bound_us = self.random.pick(&[1, 1_000, 1_000_000, 7_200_000_000]);
        Duration::from_micros(self.random.below(bound_us))
    }

    /// Another replica falls silent, or comes back from it with what is left of its sockets, or is known to be dead.
    fn replica_event(&mut self) -> Input {
        let replica = 1 + self.random.below(2) as u32;
        let silent: Vec<_> = self.silent.extract_if(.., |(id, ..)| replica_of(*id) == replica).collect();
        if silent.is_empty() {
            for id in self.connected.extract_if(.., |id| replica_of(*id) == replica) {
                let directory = self.machine.directory();
                let Some(user) = directory.user(id) else { continue };
                self.silent.push((id, user.clone(), directory.methods(id).cloned().collect()));
                self.news.push_back(Input::Disconnect(id, Departure::ReplicaSilent));
            }
            return Input::Timeout;
        }
        let is_back = !self.random.once_in(3);
        for (id, user, methods) in silent {
            if !is_back || self.random.once_in(4) {
                let cause = if is_back { Departure::TransportLost } else { Departure::ReplicaLost };
                self.news.push_back(Input::Disconnect(id, cause));
                continue;
            }
            self.connected.push(id);
            self.news.push_back(Input::Connect(id, user, replica, Traits::default()));
            for method in methods {
                let age = self.age();
                self.news.push_back(Input::Registered(id, method, age));
            }
        }
        Input::Timeout
    }

    fn forget(&mut self) -> Input {
        let socket = self.daemon();
        if !self.model.has_called(socket) {
            self.connected.retain(|connected| *connected != socket);
        }
        Input::Forget(socket)
    }

    /// A daemon is back and says what it has of its former socket's requests: some, all or none of those that are open.
    fn resumed(&mut self) -> Input {
        let user = if self.random.once_in(4) { "a:b" } else { "a" };
        let (old, new) = (self.daemon(), self.daemon());
        let share = self.random.below(3);
        let mut has = BTreeSet::new();
        for call in &self.emitted {
            if self.random.below(2) < share {
                has.insert(*call);
            }
        }
        Input::Resumed(user.into(), old, new, has)
    }

    fn connect(&mut self) -> Input {
        let id = SocketId(u128::from(self.random.below(9)));
        if !self.connected.contains(&id) {
            self.connected.push(id);
        }
        // By its number, so that a socket mostly comes back as the same user.
        let user = if self.random.once_in(12) || id.0.is_multiple_of(4) { "a:b" } else { "a" };
        let resumable = self.random.once_in(2);
        let replica = if self.random.once_in(12) { self.random.below(4) as u32 } else { replica_of(id) };
        let traits = Traits { local: replica == 0, foreign: replica == 3, resumable, ..Traits::default() };
        Input::Connect(id, user.into(), replica, traits)
    }

    fn disconnect(&mut self) -> Input {
        let socket = if self.random.once_in(2) { self.daemon() } else { self.socket() };
        self.connected.retain(|connected| *connected != socket);
        let cause = self.random.pick(&[
            Departure::Closed,
            Departure::TransportLost,
            Departure::Drained,
            Departure::Evicted,
            Departure::ReplicaSilent,
            Departure::ReplicaLost,
            // Of a socket that gave back its last method, and is gone from where it was announced.
            Departure::Unregistered,
        ]);
        Input::Disconnect(socket, cause)
    }

    fn call(&mut self) -> Input {
        let timeout_ms = if self.random.once_in(10) { self.random.pick(&[0, 1, 20, 500]) } else { 30_000 };
        let bytes = self.random.below(100) as u32;
        Input::Call(self.app(), self.method(), bytes, Duration::from_millis(timeout_ms))
    }

    fn verdict(&mut self) -> Input {
        if self.questions.is_empty() {
            return Input::Timeout;
        }
        // Mostly one of the newest questions, sometimes any; sometimes it stays and is answered again.
        let count = self.questions.len() as u64;
        let among = if self.random.once_in(6) { count } else { count.min(4) };
        let index = (count - 1 - self.random.below(among)) as usize;
        let (call, ask, slot) =
            if self.random.once_in(8) { self.questions[index] } else { self.questions.remove(index) };
        match slot {
            Slot::Target => {
                let choice = match self.random.below(12) {
                    0 => Choice::Reject,
                    1 => Choice::Pick(self.random.pick(&[9, 32, u32::MAX])),
                    _ => Choice::Pick(self.random.pick(&[0, 0, 1, 1, 2])),
                };
                Input::Choice(call, ask, choice)
            }
            Slot::Grace => Input::Wait(call, ask, self.random.pick(&[0, 1, 250, 10_000, 10_000, 10_000, u32::MAX])),
            Slot::Presence => {
                let hold_ms = self.random.pick(&[0, 10, 40, 1_000, u32::MAX]);
                let verdict = if self.random.once_in(2) { Verdict::Abort } else { Verdict::Hold(hold_ms) };
                Input::Judgement(call, ask, verdict)
            }
        }
    }

    fn result(&mut self) -> Input {
        if self.emitted.is_empty() {
            return Input::Timeout;
        }
        let count = self.emitted.len() as u64;
        let among = if self.random.once_in(6) { count } else { count.min(4) };
        let index = (count - 1 - self.random.below(among)) as usize;
        // A daemon may answer twice, and may answer after the acknowledgement ended.
        let call = if self.random.once_in(5) { self.emitted[index] } else { self.emitted.remove(index) };
        match self.random.below(24) {
            0..=3 => Input::Unanswerable(call),
            4 => Input::Unreachable(call),
            5 => Input::Undelivered(call),
            6..=8 => {
                let user = if self.random.once_in(4) { "a:b" } else { "a" };
                Input::HandedIn(user.into(), call, self.random.below(1 << 40))
            }
            _ => Input::Result(call, self.random.below(1 << 40)),
        }
    }

    /// Mostly a connected socket, sometimes one that never was or is not there any more.
    fn socket(&mut self) -> SocketId {
        if self.connected.is_empty() || self.random.once_in(25) {
            return SocketId(u128::from(self.random.below(12)));
        }
        self.random.pick(&self.connected)
    }

    /// Mostly one of the sockets that serve.
    fn daemon(&mut self) -> SocketId {
        self.one_of(|socket| socket.0 < 5)
    }

    /// Mostly one of the sockets that call.
    fn app(&mut self) -> SocketId {
        self.one_of(|socket| socket.0 >= 5)
    }

    fn one_of(&mut self, is_one: impl Fn(&SocketId) -> bool) -> SocketId {
        let those: Vec<SocketId> = self.connected.iter().copied().filter(is_one).collect();
        if those.is_empty() || self.random.once_in(12) { self.socket() } else { self.random.pick(&those) }
    }

    fn method(&mut self) -> Arc<str> {
        if self.random.once_in(60) {
            return if self.random.once_in(2) { "".into() } else { "m".repeat(4_097).into() };
        }
        self.random.pick(&["m", "m", "m", "m", "m", "n", "b:n", "o"]).into()
    }
}

/// The replica that a socket is mostly at: some of the daemons are on others.
fn replica_of(socket: SocketId) -> u32 {
    match socket.0 {
        1 => 1,
        2 => 2,
        3 => 3,
        _ => 0,
    }
}

/// Prints the last steps when a run panics.
struct Reporter<'a>(bool, &'a mut World);

impl Drop for Reporter<'_> {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        if self.0 && std::thread::panicking() {
            let steps: Vec<&str> = self.1.trace.iter().map(String::as_str).collect();
            eprintln!("the last steps:\n{}", steps.join("\n"));
        }
    }
}

#[test]
fn the_machine_says_what_the_model_says_and_keeps_its_invariants() {
    let seeds = seeded::seeds(SEEDS);
    let ends: RefCell<BTreeMap<&str, usize>> = RefCell::default();
    for seed in &seeds {
        seeded::play(*seed, &seeded::steps(1..=STEPS_MAX), |steps, is_reported| {
            let mut world = World::new(*seed);
            Reporter(is_reported, &mut world).1.run(&steps);
            for (end, count) in world.auditor.ends {
                *ends.borrow_mut().entry(end).or_default() += count;
            }
        });
    }
    let ends = ends.into_inner();
    if seeds.len() > 1 {
        // A simulation that never reaches an end proves nothing about it.
        assert_eq!(ends.len(), 7, "{ends:?}");
        assert!(ends.values().all(|count| *count > 1_000), "{ends:?}");
    }
}

/// What one socket sends in a burst takes effect in the order it was sent.
#[test]
fn a_burst_on_one_socket_ends_as_its_order_says() {
    let inputs = (select(["m", "n", "b:n", "o"].as_slice()), 0..3);
    for seed in 0..20 {
        seeded::play(seed, &vec(inputs.clone(), 0..=STEPS_MAX), |burst, _| {
            let mut world = World::new(seed);
            world.machine = CallMachine::new(CallSettings::default());
            world.model = Model::new(CallSettings::default());
            let socket = SocketId(1);
            world.step(&Input::Connect(socket, "a".into(), 0, Traits::default()), Time::ZERO);
            let mut registered: BTreeSet<Arc<str>> = BTreeSet::new();
            for (method, input) in burst {
                let method: Arc<str> = method.into();
                let input = match input {
                    0 => Input::Register(socket, method.clone()),
                    1 => Input::Unregister(socket, method.clone()),
                    _ => Input::Call(socket, method.clone(), 0, Duration::from_secs(30)),
                };
                match &input {
                    Input::Register(..) => _ = registered.insert(method),
                    Input::Unregister(..) => _ = registered.remove(&method),
                    _ => {}
                }
                world.step(&input, Time::ZERO);
            }
            let methods: BTreeSet<Arc<str>> = world.machine.directory().methods(socket).cloned().collect();
            assert_eq!(methods, registered);
            world.connected.push(socket);
            world.wind_down();
        });
    }
}

/// Settled calls leave no memory behind: the same load a thousand times over needs what it needed once.
#[test]
fn settled_calls_leave_nothing() {
    let mut machine: CallMachine<u64> = CallMachine::new(CallSettings::default());
    let (daemon, caller) = (SocketId(1), SocketId(2));
    let mut now = Time::ZERO;
    for socket in [daemon, caller] {
        machine.handle_connect(socket, "a".into(), 0, Traits::default(), now);
    }
    machine.handle_register(daemon, "m".into(), now).unwrap();
    let idle = machine.load();
    for round in 0..1_000 {
        now = now + Duration::from_millis(1);
        let timeout = Duration::from_secs(30);
        let returned = Input::Call(caller, "m".into(), 0, timeout).give(&mut machine, now);
        let Returned::Called(Ok(call)) = returned else { panic!("a call: {returned:?}") };
        machine.handle_choice(call, AskId(1), Choice::Pick(0), now);
        assert_eq!(machine.in_flight(daemon), 1);
        machine.handle_result(call, round, now);
        assert_eq!(std::iter::from_fn(|| machine.next_command()).count(), 3);
        assert_eq!((machine.load(), machine.poll_timeout()), (idle, None));
    }
}
