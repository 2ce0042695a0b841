//! Takes the steps of a scenario: how many clients there are, what they do, and what goes wrong.

use std::time::Duration;

use pointwork_core::{AskId, CallId};

use super::faults::Fault;
use super::state::World;
use crate::calls::events::{CallToken, ClientId, Connection, Event, Process};
use crate::calls::rules::RuleMoment;
use crate::chance::Chance;
use crate::draws::Drawn;
use crate::scenario::{RpcScenario, Span};

/// The wall clock when the world began, in milliseconds since 1970.
const BEGAN_MS: u64 = 1_800_000_000_000;

impl World<'_> {
    /// How many there are of something.
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

    /// Whether a new daemon can hand in results.
    pub(super) fn may_resume(&mut self) -> bool {
        match self.scenario {
            Some(scenario) => self.chance.percent(scenario.resumable_percent),
            None => self.chance.once_in(2),
        }
    }

    /// One step of a scenario, and the next one after a while.
    pub(super) fn scenario_step(&mut self, scenario: &RpcScenario) {
        if self.is_healed {
            return;
        }
        let nth = u64::from(self.steps);
        self.steps += 1;
        self.chance.name(Drawn::Step, 0, nth);
        let next = self.now + Duration::from_millis(self.chance.number(scenario.pause_ms));
        self.agenda.enter(next, Event::Step);
        if self.chance.percent(scenario.faults.percent) {
            self.scenario_fault(scenario, nth);
        } else {
            let steps = &scenario.clients;
            let weights = [steps.call, steps.register, steps.unregister, steps.lose, steps.close];
            match self.weighed(&weights) {
                0 => self.call_something(),
                1 => self.register_something(),
                2 => self.unregister_something(),
                3 => self.lose_connection(),
                _ => self.close_connection(),
            }
        }
    }

    fn scenario_fault(&mut self, scenario: &RpcScenario, nth: u64) {
        self.chance.name(Drawn::Fault, 0, nth);
        let Some(process) = self.any_running() else { return };
        let faults = &scenario.faults;
        let weights = [
            (Fault::Stall, faults.stall),
            (Fault::RedisLink, faults.link),
            (Fault::Overrun, faults.overrun),
            (Fault::Stop, faults.hang),
            (Fault::Kill, faults.kill),
            (Fault::Vanish, faults.vanish),
            (Fault::Drain, faults.drain),
            (Fault::Redis, faults.redis),
        ];
        let which = self.weighed(&weights.map(|(_, weight)| weight));
        self.inject(process, weights[which].0);
    }

    /// One of these by its weight; they are not all 0.
    fn weighed(&mut self, weights: &[u64]) -> usize {
        let mut left = self.chance.below(weights.iter().sum::<u64>() as usize) as u64;
        for (place, weight) in weights.iter().enumerate() {
            if left < *weight {
                return place;
            }
            left -= weight;
        }
        0
    }

    /// A daemon sets to work on a request: as long as the call takes, times how slow this daemon is.
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
        self.agenda.enter(begins + work, Event::Finish { client, token });
    }

    /// The next packet of a connection.
    pub(super) fn name_packet(&mut self, connection: Connection) {
        let line = &mut self.connections[connection];
        line.packets += 1;
        self.chance.name(Drawn::Packet, connection as u64, line.packets);
    }

    /// Time and chance of a question.
    pub(super) fn rule_moment(&self, process: Process, call: CallId, ask: AskId) -> RuleMoment {
        let since_ms = self.now.since(crate::time::WorldTime::ZERO).as_millis();
        let token = self.replicas[process].calls.get(call.0 as usize - 1).copied().unwrap_or_default();
        RuleMoment {
            now_ms: BEGAN_MS + u64::try_from(since_ms).unwrap_or(u64::MAX / 2),
            seed: self.draws.bits(Drawn::Question, token as u64, ask.0.into()),
        }
    }
}
