//! The world of one schedule: processes, their clients, the network between them, and a clock that jumps.

mod calls;
mod carry;
mod clients;
mod drain;
mod end;
mod faults;
mod links;
mod peers;
mod played;
mod requests;
mod serve;
mod steps;
mod wire;

use std::time::Duration;

use pointwork_core::Time;

use crate::Schedule;
use crate::agenda::{Agenda, Moment};
use crate::audit::Auditor;
use crate::chance::Chance;
use crate::client::{Client, Line};
use crate::draw::{Drawn, Draws};
use crate::event::{ClientId, Event, Process};
use crate::machine::Flaw;
use crate::replica::{PROCESSES_MAX, Replica, State};
use crate::room::Names;
use crate::rules::Rules;
use crate::scenario::RpcScenario;
use crate::story::{Story, process, tell};
use crate::tally::Tally;
use calls::{Asked, Measure};
pub use calls::{ERRORS, RpcOutcomes};

/// Everything there is.
pub(crate) struct World<'a> {
    rules: &'a dyn Rules,
    /// What it is like; without one everything there is goes wrong.
    scenario: Option<&'a RpcScenario>,
    draws: Draws,
    flaw: Option<Flaw>,
    chance: Chance,
    now: Moment,
    agenda: Agenda,
    replicas: Vec<Replica>,
    clients: Vec<Client>,
    /// Every connection there ever was.
    lines: Vec<Line>,
    /// Every call there ever was.
    calls: Vec<Asked>,
    pub(crate) measure: Measure,
    names: Names,
    redis: Redis,
    pub(crate) audit: Auditor,
    pub(crate) story: Story<'a>,
    /// What went wrong how often.
    pub(crate) faults: Tally,
    pub(crate) steps: u32,
    steps_max: u32,
    /// How many steps in a hundred are faults.
    faults_percent: usize,
    /// Nothing goes wrong any more.
    is_healed: bool,
    /// Nobody comes or goes.
    is_quiet: bool,
    /// Processes send heartbeats and look after each other.
    is_ticking: bool,
}

/// What all processes share.
struct Redis {
    is_up: bool,
    /// What is under way when it goes down is lost.
    epoch: u32,
}

impl<'a> World<'a> {
    pub(crate) fn new(schedule: &Schedule<'a>, rules: &'a dyn Rules, story: Story<'a>) -> Self {
        let Schedule { seed, steps: steps_max, flaw, scenario, .. } = *schedule;
        let mut world = World {
            rules,
            scenario,
            draws: Draws::new(seed),
            flaw,
            chance: if scenario.is_some() { Chance::by_name(seed) } else { Chance::new(seed) },
            now: Moment::ZERO,
            agenda: Agenda::default(),
            replicas: Vec::new(),
            clients: Vec::new(),
            lines: Vec::new(),
            calls: Vec::new(),
            measure: Measure::default(),
            names: Names::new(),
            redis: Redis { is_up: true, epoch: 0 },
            audit: Auditor::new(rules.resume_ms(), rules.trusts_silence()),
            story,
            faults: Tally::default(),
            steps: 0,
            steps_max,
            faults_percent: 0,
            is_healed: false,
            is_quiet: false,
            is_ticking: true,
        };
        world.faults_percent = world.chance.pick(&[1, 4, 8, 16]);
        for _ in 0..world.count(0, |scenario| scenario.replicas, |chance| 2 + chance.below(3)) {
            world.start();
        }
        for _ in 0..world.count(1, |scenario| scenario.daemons, |chance| 3 + chance.below(4)) {
            world.add_client(true);
        }
        for _ in 0..world.count(2, |scenario| scenario.callers, |chance| 1 + chance.below(4)) {
            world.add_client(false);
        }
        world.chance.name(Drawn::World, 1, 0);
        let first = world.now + world.chance.span(50, 1_000);
        world.agenda.enter(first, Event::Step);
        world
    }

    /// Runs the whole schedule, or until an invariant does not hold.
    pub(crate) fn run(&mut self) {
        while self.steps < self.steps_max && self.turn_page(None) {}
        if self.audit.broken.is_none() {
            self.heal_and_end();
        }
    }

    /// Does what is next by `until`; `false` if there is nothing, or an invariant does not hold.
    fn turn_page(&mut self, until: Option<Moment>) -> bool {
        let Some((at, event)) = self.agenda.next(until) else { return false };
        (self.now, self.audit.moment) = (at, at);
        self.dispatch(event);
        self.audit.broken.is_none()
    }

    fn dispatch(&mut self, event: Event) {
        if self.is_quiet && matches!(event, Event::Connect(_) | Event::ServerNotices { .. }) {
            return self.agenda.enter(self.now + Duration::from_secs(1), event);
        }
        if let Some(process) = self.process_of(&event) {
            match self.replicas[process].state {
                State::Running => {}
                State::Stopped => return self.replicas[process].backlog.push_back(event),
                State::Ended => return,
            }
        }
        match event {
            Event::Step => match self.scenario {
                Some(scenario) => self.play_step(scenario),
                None => self.step(),
            },
            Event::Tick(process) => self.tick(process),
            Event::Look(process) => self.look(process),
            Event::Timer(process) => self.alarm(process),
            Event::Verdict { process, call, ask, verdict } => self.late_verdict(process, call, ask, verdict),
            Event::Arrive { to, from, epoch, message } => self.arrive(to, from, epoch, message),
            Event::Interrupted(process) => self.interrupted(process),
            Event::Attached { process, breaks } => self.attached(process, breaks),
            Event::SendFailed { process, request } => self.send_failed(process, request),
            Event::AckOver { process, peer, request } => self.ack_over(process, peer, request),
            Event::HandInOver { process, request } => self.hand_in_over(process, request),
            Event::Unsubscribed(process) => self.unsubscribe(process),
            Event::RedisUp => self.redis.is_up = true,
            Event::Resume(process) => self.resume(process),
            Event::Start => self.start(),
            Event::PaceEnds(process) => self.replicas[process].clock.pace(self.now, 100),
            Event::DrainLook(process) => self.drain_look(process),
            Event::Up { connection, packet } => self.up(connection, packet),
            Event::Down { connection, packet } => self.down(connection, packet),
            Event::ServerNotices { connection } => self.server_notices(connection),
            Event::ClientNotices { connection } => self.client_notices(connection),
            Event::Connect(client) => self.connect(client),
            Event::Finish { client, token } => self.finish(client, token),
            Event::HandInAgain { client, call } => self.hand_in_again(client, call),
        }
    }

    /// The process that must run for an event to happen. What happens to one that is stopped waits for it; what happens to
    /// one that has ended does not happen.
    fn process_of(&self, event: &Event) -> Option<Process> {
        match event {
            Event::Tick(process) | Event::Look(process) | Event::Timer(process) => Some(*process),
            Event::Interrupted(process) | Event::PaceEnds(process) | Event::DrainLook(process) => Some(*process),
            Event::Verdict { process, .. } | Event::Attached { process, .. } => Some(*process),
            Event::SendFailed { process, .. } | Event::HandInOver { process, .. } => Some(*process),
            Event::AckOver { process, .. } => Some(*process),
            Event::Arrive { to, .. } => Some(*to),
            Event::Up { connection, .. } | Event::ServerNotices { connection } => Some(self.lines[*connection].process),
            _ => None,
        }
    }

    /// A process starts, unless there were too many already.
    fn start(&mut self) {
        if self.replicas.len() == PROCESSES_MAX {
            return;
        }
        let started = self.replicas.len();
        self.replicas.push(Replica::new(self.flaw, self.now));
        self.audit.started();
        tell!(self, process(started), "starts");
        let ready = self.now + self.chance.span(5, 50);
        self.agenda.enter(ready, Event::Attached { process: started, breaks: 0 });
        let tick = self.now + self.chance.span(50, 300);
        self.agenda.enter(tick, Event::Tick(started));
        let now = self.before(started);
        self.audit.linked(started, false);
        self.replicas[started].machine.handle_link(false, now);
        self.carry(started);
    }

    /// A client that will connect soon: a daemon, or one that only calls.
    fn add_client(&mut self, is_daemon: bool) {
        self.chance.name(Drawn::World, 2, self.clients.len() as u64);
        let user = usize::from(self.chance.once_in(4));
        let mut rooms = 0;
        while is_daemon && rooms == 0 {
            rooms = (self.chance.below(16) as u8) << (user * 4);
        }
        self.chance.name(Drawn::World, 3, self.clients.len() as u64);
        let is_resumable = is_daemon && self.may_resume();
        let is_resuming = is_resumable && !self.chance.once_in(3);
        self.clients.push(Client::new(user, is_resumable, is_resuming, rooms));
        self.connect_after(self.clients.len() - 1, &[(1, 0, 400)]);
    }

    /// A client connects after a while, unless it is about to already.
    fn connect_after(&mut self, client: ClientId, spans: &[(usize, u64, u64)]) {
        if !std::mem::replace(&mut self.clients[client].is_connecting, true) {
            self.chance.name(Drawn::Return, client as u64, self.clients[client].connections);
            let at = self.now + self.chance.weighted(spans);
            self.agenda.enter(at, Event::Connect(client));
        }
    }

    /// What a process's clock shows. Whatever was due by then is done: what is told to its machine next comes after that.
    fn before(&mut self, process: Process) -> Time {
        let replica = &mut self.replicas[process];
        let now = replica.clock.at(self.now);
        if replica.machine.poll_timeout().is_some_and(|at| at <= now) {
            replica.machine.handle_timeout(now);
            self.carry(process);
        }
        now
    }

    /// A machine's alarm goes off.
    fn alarm(&mut self, process: Process) {
        let replica = &mut self.replicas[process];
        if replica.alarm == Some(self.now) || replica.alarm.is_some_and(|at| at < self.now) {
            replica.alarm = None;
        }
        self.before(process);
        self.arm(process);
    }

    /// Sets an alarm for a machine unless there is an earlier one.
    fn arm(&mut self, process: Process) {
        let replica = &mut self.replicas[process];
        let Some(at) = replica.machine.poll_timeout() else { return };
        // Alarms are a little late now and then.
        let late =
            if self.scenario.is_none() && self.chance.once_in(8) { self.chance.span(0, 3) } else { Duration::ZERO };
        let at = replica.clock.when(at).max(self.now) + late;
        if replica.alarm.is_none_or(|alarm| at < alarm) {
            replica.alarm = Some(at);
            self.agenda.enter(at, Event::Timer(process));
        }
    }
}
