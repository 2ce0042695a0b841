//! Takes the steps of a schedule: actions of clients and faults, at random or as a scenario says.

use std::time::Duration;

use pointwork_core::{AskId, CallId};

use super::state::CallWorld;
use crate::calls::events::{CallEvent, CallRef, CallToken, ClientId, ClientPacket, Process, Resumed};
use crate::calls::rooms::{METHODS, Room};
use crate::calls::rules::RuleMoment;
use crate::chance::Chance;
use crate::draws::Drawn;
use crate::scenario::{RpcScenario, Span};
use crate::time::{BEGAN_MS, WorldTime};
use crate::trace::trace;

/// How many clients there are at most, including those that have left.
const CLIENTS_MAX: usize = 24;
/// Something that a client does of its own accord.
type ClientStep<'a> = fn(&mut CallWorld<'a>);

impl CallWorld<'_> {
    /// Takes a random step, and schedules the next one.
    pub(super) fn random_step(&mut self) {
        if self.is_healed {
            return;
        }
        self.steps += 1;
        if self.chance.below(100) < self.faults_percent {
            self.random_fault();
        } else {
            match self.chance.below(100) {
                0..=57 => self.call_something(),
                58..=63 => self.register_something(),
                64..=69 => self.unregister_something(),
                70..=83 => self.lose_connection(),
                84..=87 => self.close_connection(),
                88 => self.leave_for_good(),
                89..=91 if self.clients.len() < CLIENTS_MAX => {
                    let is_daemon = !self.chance.once_in(3);
                    self.add_client(is_daemon);
                }
                92..=93 => self.hand_in_anything(),
                94 => self.resume_anothers(),
                _ => {}
            }
        }
        let spans = [(24, 0, 0), (26, 0, 5), (20, 5, 50), (22, 50, 400), (7, 400, 3_000), (1, 3_000, 14_000)];
        let next = self.now + self.chance.weighted(&spans);
        self.agenda.enter(next, CallEvent::Step);
    }

    fn call_something(&mut self) {
        // Daemons call, too, but less.
        let is_any = self.chance.once_in(5);
        let Some(client) = self.any_connected(|is_daemon| is_any || !is_daemon) else { return };
        let room = self.any_room(client);
        let timeout_ms = match self.scenario {
            Some(scenario) => self.chance.number(scenario.timeout_ms),
            None => self.chance.pick(&[30_000, 30_000, 30_000, 30_000, 60_000, 8_000, 1_500, 300, 20]),
        };
        // Several at once, as an app that opens does.
        for _ in 0..self.chance.pick(&[1, 1, 1, 2, 4]) {
            self.make_call(client, room, timeout_ms);
        }
    }

    fn register_something(&mut self) {
        let Some(client) = self.any_connected(|is_daemon| is_daemon) else { return };
        let room = self.any_room(client);
        self.clients[client].rooms |= room.bit();
        self.send_from_client(client, ClientPacket::Register(room));
    }

    fn unregister_something(&mut self) {
        let Some(client) = self.any_connected(|is_daemon| is_daemon) else { return };
        let room = self.any_room(client);
        self.clients[client].rooms &= !room.bit();
        self.send_from_client(client, ClientPacket::Unregister(room));
        if self.chance.once_in(3) {
            self.clients[client].rooms |= room.bit();
            self.send_from_client(client, ClientPacket::Register(room));
        }
    }

    fn lose_connection(&mut self) {
        let is_any = self.chance.once_in(4);
        let Some(client) = self.any_connected(|is_daemon| is_daemon || is_any) else { return };
        let Some(connection) = self.clients[client].connection else { return };
        self.faults.count("connection cut");
        trace!(self, "c{client}", "its connection breaks");
        let server = [(6, 0, 5), (3, 5, 2_000), (1, 2_000, 25_000)];
        self.cut(connection, &server, &[(6, 0, 50), (3, 50, 3_000), (1, 3_000, 20_000)]);
    }

    fn close_connection(&mut self) {
        let Some(client) = self.any_connected(|_| true) else { return };
        self.close_from(client);
        self.disconnected(client);
    }

    fn leave_for_good(&mut self) {
        let Some(client) = self.any_connected(|_| true) else { return };
        self.faults.count("client left for good");
        self.clients[client].has_left = true;
        self.close_from(client);
        self.disconnected(client);
    }

    /// A client hands in another user's result, or one that was already handed in.
    fn hand_in_anything(&mut self) {
        let Some(client) = self.any_connected(|_| true) else { return };
        let newest = self.calls.len().min(8);
        let Some(token) = self.calls.len().checked_sub(1 + self.chance.below(newest)) else { return };
        let Some((process, call)) = self.calls[token].taken_on else { return };
        let is_own = self.clients[client].user == self.clients[self.connections[self.calls[token].caller].client].user;
        // Of an own call that may be sent to a daemon that may, this would be a result.
        if is_own && self.calls[token].may_be_handed_in {
            return;
        }
        self.faults.count("hand-in of another's");
        self.send_from_client(client, ClientPacket::HandIn { call: CallRef { process, call }, value: u64::MAX });
    }

    /// A client claims to be another user's daemon that has reconnected.
    fn resume_anothers(&mut self) {
        let Some(client) = self.any_connected(|_| true) else { return };
        let Some(daemon) = self.any_connected(|is_daemon| is_daemon) else { return };
        let (liar, victim) = (&self.clients[client], &self.clients[daemon]);
        let (Some(new), Some(old)) = (liar.connection, victim.connection) else { return };
        if liar.user != victim.user {
            self.faults.count("resumed as another");
            let resumed = Resumed { user: liar.user, old, new, has: Vec::new() };
            self.send_up(new, ClientPacket::Resumed(resumed.into()));
        }
    }

    pub(super) fn close_from(&mut self, client: ClientId) {
        trace!(self, "c{client}", "closes its connection");
        self.send_from_client(client, ClientPacket::Close);
    }

    fn send_from_client(&mut self, client: ClientId, packet: ClientPacket) {
        if let Some(connection) = self.clients[client].connection {
            self.send_up(connection, packet);
        }
    }

    /// A random client that believes to be connected. `is_wanted` is given whether it is a daemon.
    fn any_connected(&mut self, is_wanted: impl Fn(bool) -> bool) -> Option<ClientId> {
        let start = self.chance.below(self.clients.len());
        let mut around = (0..self.clients.len()).map(|offset| (start + offset) % self.clients.len());
        around.find(|client| self.clients[*client].connection.is_some() && is_wanted(self.clients[*client].rooms != 0))
    }

    /// A random method of a client's user. The first methods are more likely.
    fn any_room(&mut self, client: ClientId) -> Room {
        let among = 1 + self.chance.below(METHODS);
        Room::new(self.clients[client].user, self.chance.below(among))
    }

    /// Draws how many there are of something.
    pub(super) fn count(
        &mut self,
        nth: u64,
        of: fn(&RpcScenario) -> Span,
        otherwise: fn(&mut Chance) -> usize,
    ) -> usize {
        self.chance.name(Drawn::World, 0, nth);
        match self.scenario {
            Some(scenario) => self.chance.number(of(scenario)) as usize,
            None => otherwise(&mut self.chance),
        }
    }

    /// Draws whether a new daemon can hand in results.
    pub(super) fn may_resume(&mut self) -> bool {
        match self.scenario {
            Some(scenario) => self.chance.percent(scenario.resumable_percent),
            None => self.chance.once_in(2),
        }
    }

    /// Takes a step of a scenario, and schedules the next one.
    pub(super) fn scenario_step(&mut self, scenario: &RpcScenario) {
        if self.is_healed {
            return;
        }
        let nth = u64::from(self.steps);
        self.steps += 1;
        self.chance.name(Drawn::Step, 0, nth);
        let next = self.now + Duration::from_millis(self.chance.number(scenario.pause_ms));
        self.agenda.enter(next, CallEvent::Step);
        if self.chance.percent(scenario.faults.percent) {
            self.scenario_fault(scenario, nth);
        } else {
            let weights = &scenario.clients;
            let steps: [(u64, ClientStep<'_>); 5] = [
                (weights.call, Self::call_something),
                (weights.register, Self::register_something),
                (weights.unregister, Self::unregister_something),
                (weights.lose, Self::lose_connection),
                (weights.close, Self::close_connection),
            ];
            if let Some((_, step)) = self.chance.weighed(&steps, |(weight, _)| *weight as usize) {
                step(self);
            }
        }
    }

    /// A daemon begins a request. It takes the time of the call times the slowness of the daemon.
    pub(super) fn scenario_work(&mut self, scenario: &RpcScenario, client: ClientId, token: CallToken) {
        self.chance.name(Drawn::Quickness, client as u64, 0);
        let slowness = self.chance.number(Span { min: 100, max: 100 * scenario.slowest_times });
        self.chance.name(Drawn::Work, token as u64, 0);
        if self.chance.percent(scenario.never_percent) {
            return;
        }
        let work = Duration::from_millis(self.chance.number(scenario.work_ms) * slowness / 100);
        let daemon = &mut self.clients[client];
        let begins = if scenario.one_at_a_time { daemon.busy_until.max(self.now) } else { self.now };
        daemon.busy_until = begins + work;
        self.agenda.enter(begins + work, CallEvent::Finish { client, token });
    }

    /// The time and the random bits for a question.
    pub(super) fn rule_moment(&self, process: Process, call: CallId, ask: AskId) -> RuleMoment {
        let since_ms = self.now.since(WorldTime::ZERO).as_millis();
        let token = self.replicas[process].calls.get(call.0 as usize - 1).copied().unwrap_or_default();
        RuleMoment {
            now_ms: BEGAN_MS + u64::try_from(since_ms).unwrap_or(u64::MAX / 2),
            seed: self.draws.bits(Drawn::Question, token as u64, ask.0.into()),
        }
    }
}
