//! Holds the state of a world of calls, and starts it.

use crate::agenda::Agenda;
use crate::calls::audit::CallAuditor;
use crate::calls::client::{ClientConnection, SimulatedClient};
use crate::calls::events::{CallEvent, CallToken, ClientId};
use crate::calls::outcomes::MeasuredCall;
use crate::calls::replica::{CallReplica, PROCESSES_MAX};
use crate::calls::rooms::RoomNames;
use crate::calls::rules::Rules;
#[cfg(test)]
use crate::calls::tests::Flaw;
use crate::chance::Chance;
use crate::counts::Counts;
use crate::draws::{Drawn, Draws};
use crate::scenario::RpcScenario;
use crate::time::WorldTime;
use crate::trace::{Trace, trace};

/// The state of a world of calls.
pub(crate) struct CallWorld<'a> {
    pub(super) rules: &'a dyn Rules,
    /// Without one, every kind of fault happens.
    pub(super) scenario: Option<&'a RpcScenario>,
    pub(super) draws: Draws,
    #[cfg(test)]
    pub(crate) flaw: Option<Flaw>,
    pub(super) chance: Chance,
    pub(super) now: WorldTime,
    pub(super) agenda: Agenda<WorldTime, CallEvent>,
    pub(crate) replicas: Vec<CallReplica>,
    pub(super) clients: Vec<SimulatedClient>,
    /// All connections, including ended ones.
    pub(super) connections: Vec<ClientConnection>,
    /// All calls, including ended ones.
    pub(super) calls: Vec<MeasuredCall>,
    /// Calls that were given up, perhaps wrongly.
    pub(super) given_up: Vec<CallToken>,
    pub(super) names: RoomNames,
    pub(super) redis: Redis,
    pub(crate) audit: CallAuditor,
    pub(crate) trace: Trace<'a>,
    /// How often each fault happened.
    pub(crate) faults: Counts,
    pub(crate) steps: u32,
    pub(super) steps_max: u32,
    /// How many steps in a hundred are faults.
    pub(super) faults_percent: usize,
    /// No more faults happen.
    pub(super) is_healed: bool,
    /// No client connects, and no connection ends.
    pub(super) is_quiet: bool,
    /// Processes send heartbeats and check their peers.
    pub(super) is_ticking: bool,
}

/// What all processes share.
pub(super) struct Redis {
    pub(super) is_up: bool,
    /// It grows with each restart. Messages of an older epoch are lost.
    pub(super) epoch: u32,
}

impl<'a> CallWorld<'a> {
    pub(crate) fn new(
        (seed, steps_max): (u64, u32),
        scenario: Option<&'a RpcScenario>,
        rules: &'a dyn Rules,
        trace: Trace<'a>,
    ) -> Self {
        let mut world = CallWorld {
            rules,
            scenario,
            draws: Draws::new(seed),
            #[cfg(test)]
            flaw: None,
            chance: if scenario.is_some() { Chance::by_name(seed) } else { Chance::new(seed) },
            now: WorldTime::ZERO,
            agenda: Agenda::new(),
            replicas: Vec::new(),
            clients: Vec::new(),
            connections: Vec::new(),
            calls: Vec::new(),
            given_up: Vec::new(),
            names: RoomNames::new(),
            redis: Redis { is_up: true, epoch: 0 },
            audit: CallAuditor::new(rules.resume_ms(), rules.trusts_silence()),
            trace,
            faults: Counts::default(),
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
        world.agenda.enter(first, CallEvent::Step);
        world
    }

    /// Starts a process, unless there were too many already.
    pub(super) fn start(&mut self) {
        if self.replicas.len() == PROCESSES_MAX {
            return;
        }
        let started = self.replicas.len();
        self.replicas.push(CallReplica::new(self.now));
        #[cfg(test)]
        self.set_flaw(self.flaw);
        self.audit.process_started();
        trace!(self, "r{started}", "starts");
        let ready = self.now + self.chance.span(5, 50);
        self.agenda.enter(ready, CallEvent::Attached { process: started, breaks: 0 });
        let tick = self.now + self.chance.span(50, 300);
        self.agenda.enter(tick, CallEvent::Tick(started));
        let now = self.catch_up(started);
        self.audit.link_changed(started, false);
        self.replicas[started].machine.handle_link(false, now);
        self.run_commands(started);
    }

    /// Adds a client that connects soon: a daemon, or one that only calls.
    pub(super) fn add_client(&mut self, is_daemon: bool) {
        self.chance.name(Drawn::World, 2, self.clients.len() as u64);
        let user = usize::from(self.chance.once_in(4));
        let mut rooms = 0;
        while is_daemon && rooms == 0 {
            rooms = (self.chance.below(16) as u8) << (user * 4);
        }
        self.chance.name(Drawn::World, 3, self.clients.len() as u64);
        let is_resumable = is_daemon && self.may_resume();
        let is_resuming = is_resumable && !self.chance.once_in(3);
        self.clients.push(SimulatedClient { user, is_resumable, is_resuming, rooms, ..SimulatedClient::default() });
        self.connect_after(self.clients.len() - 1, &[(1, 0, 400)]);
    }

    /// Connects a client after a while, unless it is about to connect already.
    pub(super) fn connect_after(&mut self, client: ClientId, spans: &[(usize, u64, u64)]) {
        if !std::mem::replace(&mut self.clients[client].is_connecting, true) {
            self.chance.name(Drawn::Return, client as u64, self.clients[client].connections);
            let at = self.now + self.chance.weighted(spans);
            self.agenda.enter(at, CallEvent::Connect(client));
        }
    }
}
