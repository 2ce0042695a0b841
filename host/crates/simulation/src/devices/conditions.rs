//! Decides how long things take in a world of devices and what fails in it.

use pointwork_core::devices::OpId;
use pointwork_core::experiments::{Exposure, Trial};

#[cfg(test)]
use super::tests::DeviceFlaw;
use crate::draws::{Drawn, Draws};
use crate::scenario::{SettleScenario, Span};
use crate::time::MS;

/// How long it takes until a replica that does not answer is known not to.
const SILENT_US: u64 = 500 * MS;
/// A replica hears within so many milliseconds that the store is back.
const STORE_BACK_MS: Span = Span { min: 0, max: 1_000 };

/// How long things take, in microseconds, and what fails. A scenario decides it, or a random schedule of the tests.
pub(super) trait Conditions {
    /// Adds a device.
    fn add_device(&mut self) {}

    /// One way to the store or from it, for an operation about a device.
    fn store_us(&mut self, device: usize) -> u64;

    /// One way between replicas, about a device.
    fn peer_us(&mut self, device: usize) -> u64;

    /// Until a replica has an answer of another one, or knows that there will be none.
    fn owner_us(&mut self, device: usize, is_silent: bool) -> u64 {
        if is_silent { SILENT_US } else { self.peer_us(device) }
    }

    /// One way of a packet of a socket.
    fn packet_us(&mut self, name: u64, nth: u64) -> u64;

    /// Whether a message between replicas is lost.
    fn is_lost(&mut self, device: usize, is_over: bool) -> bool;

    /// Whether something happens that happens once in four times, to an operation while the store is away.
    fn is_one_in_four(&mut self, device: usize) -> bool;

    /// For how long the answer of the store is stuck, if it is.
    fn stuck_us(&mut self) -> Option<u64> {
        None
    }

    /// For how long an operation is under way, if it is so long that nobody waits for it any more.
    fn late_swap_us(&mut self) -> Option<u64> {
        None
    }

    /// After how long the host has proved a token, or the rule has answered; 0: at once, `None`: never.
    fn answer_us(&mut self) -> Option<u64> {
        Some(0)
    }

    /// Random bits for a question about a device, of which this is the next.
    fn question_seed(&mut self, device: usize) -> u64;

    /// After how long a replica has closed a socket that it is told to close; `None`: at once.
    fn close_us(&mut self) -> Option<u64> {
        None
    }

    /// After how long a replica notices that a socket is half-open.
    fn unnoticed_us(&self, name: u64) -> u64;

    /// The wall clock of the `nth` replica against the others', in milliseconds.
    fn skew_ms(&mut self, nth: usize) -> u64;

    /// Which of the running replicas are killed, by their positions.
    fn killed(&self, nth: u64, running: usize) -> Vec<usize>;

    /// After how long the others know that a replica is dead, and another one is in its place.
    fn death_us(&mut self, replica: usize, nth: u64) -> (u64, u64);

    /// After how long a replica hears that the store is back.
    fn store_back_us(&mut self, replica: usize, now_us: u64) -> u64;

    /// From now on nothing fails.
    fn heal(&mut self) {}

    /// Whether the world makes a mistake.
    #[cfg(test)]
    fn has_flaw(&self, _: DeviceFlaw) -> bool {
        false
    }

    /// What a decision adds to the record of a device that takes part in an experiment.
    fn exposure(
        &self,
        _device: &str,
        _op: OpId,
        _trial: Option<&Trial>,
        _pinned: Option<&Exposure>,
        _now_ms: u64,
    ) -> Option<Exposure> {
        None
    }
}

/// The conditions of a scenario, drawn by name.
pub(super) struct ScenarioConditions<'a> {
    scenario: &'a SettleScenario,
    draws: Draws,
    /// How many draws there were about each device, and how many questions.
    drawn: Vec<(u64, u64)>,
}

impl<'a> ScenarioConditions<'a> {
    pub(super) fn new(seed: u64, scenario: &'a SettleScenario) -> ScenarioConditions<'a> {
        ScenarioConditions { scenario, draws: Draws::new(seed), drawn: Vec::new() }
    }

    fn next_draw(&mut self, device: usize) -> u64 {
        let nth = &mut self.drawn[device].0;
        *nth += 1;
        *nth
    }

    fn span_us(&mut self, device: usize, what: Drawn, span: Span) -> u64 {
        let nth = self.next_draw(device);
        self.draws.micros(span, what, device as u64, nth)
    }

    fn percent(&mut self, device: usize, what: Drawn, percent: u64) -> bool {
        let nth = self.next_draw(device);
        self.draws.percent(percent, what, device as u64, nth)
    }
}

impl Conditions for ScenarioConditions<'_> {
    fn add_device(&mut self) {
        self.drawn.push((0, 0));
    }

    fn store_us(&mut self, device: usize) -> u64 {
        self.span_us(device, Drawn::Store, self.scenario.store.latency_ms)
    }

    fn peer_us(&mut self, device: usize) -> u64 {
        self.span_us(device, Drawn::Peer, self.scenario.network.peer_ms)
    }

    fn packet_us(&mut self, name: u64, nth: u64) -> u64 {
        self.draws.micros(self.scenario.network.latency_ms, Drawn::Latency, name, nth)
    }

    fn is_lost(&mut self, device: usize, is_over: bool) -> bool {
        self.percent(device, Drawn::Lost, self.scenario.network.lost_percent) && !is_over
    }

    fn is_one_in_four(&mut self, device: usize) -> bool {
        self.percent(device, Drawn::StoreAway, 25)
    }

    fn question_seed(&mut self, device: usize) -> u64 {
        let nth = &mut self.drawn[device].1;
        *nth += 1;
        self.draws.bits(Drawn::Question, device as u64, *nth)
    }

    fn unnoticed_us(&self, name: u64) -> u64 {
        self.draws.micros(self.scenario.network.unnoticed_ms, Drawn::Unnoticed, name, 0)
    }

    fn skew_ms(&mut self, nth: usize) -> u64 {
        self.draws.below(40, Drawn::Skew, nth as u64, 0)
    }

    fn killed(&self, nth: u64, running: usize) -> Vec<usize> {
        match running {
            _ if self.scenario.replicas.all_at_once => (0..running).collect(),
            0 => Vec::new(),
            _ => vec![self.draws.below(running as u64, Drawn::Killed, 0, nth) as usize],
        }
    }

    fn death_us(&mut self, replica: usize, nth: u64) -> (u64, u64) {
        let (times, whom) = (&self.scenario.replicas, replica as u64);
        let noticed_us = self.draws.micros(times.noticed_ms, Drawn::Noticed, u64::MAX - whom, nth);
        (noticed_us, self.draws.micros(times.back_ms, Drawn::Back, whom, nth))
    }

    fn store_back_us(&mut self, replica: usize, now_us: u64) -> u64 {
        self.draws.micros(STORE_BACK_MS, Drawn::StoreAway, replica as u64, now_us / MS)
    }
}
