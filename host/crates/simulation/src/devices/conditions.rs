//! How long things take in a world and what fails: as a scenario says, drawn by name, or at random.

use crate::chance::Chance;
use crate::draws::{Drawn, Draws};
use crate::scenario::{SettleScenario, Span};
use crate::time::{MS, SECOND};

/// How long it takes until a replica that does not answer is known not to.
const SILENT_US: u64 = 500 * MS;
/// An operation that takes longer than anybody waits for it: to the replica the store is away.
const STUCK_US: u64 = 3 * SECOND;
/// A replica hears within so many milliseconds that the store is back.
const STORE_BACK_MS: Span = Span { min: 0, max: 1_000 };

/// What goes wrong at random. Each number means: once in so many times; 0 is never.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RandomFaults {
    /// A message between replicas is lost.
    pub(super) loss: usize,
    /// A step is slow.
    pub(super) slow: usize,
    /// An answer of the store comes when nobody waits for it any more.
    pub(super) stuck: usize,
    /// A proof of a token or a verdict of the rule never comes.
    pub(super) unanswered: usize,
}

/// When an answer comes that the host itself gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerTime {
    Now,
    AfterUs(u64),
    Never,
}

pub(super) struct Conditions<'a> {
    /// Without one, everything is at random.
    pub(super) scenario: Option<&'a SettleScenario>,
    pub(super) draws: Draws,
    pub(super) chance: Chance,
    pub(super) faults: RandomFaults,
    /// How many draws there were about each device, and how many questions.
    drawn: Vec<(u64, u64)>,
}

impl<'a> Conditions<'a> {
    pub(super) fn new(seed: u64, scenario: Option<&'a SettleScenario>) -> Conditions<'a> {
        Conditions {
            scenario,
            draws: Draws::new(seed),
            chance: Chance::new(seed),
            faults: RandomFaults::default(),
            drawn: Vec::new(),
        }
    }

    /// There is one more device.
    pub(super) fn add_device(&mut self) {
        self.drawn.push((0, 0));
    }

    /// One way to the store or from it, for an operation about a device.
    pub(super) fn store_us(&mut self, device: usize) -> u64 {
        self.span_us(device, Drawn::Store, |scenario| scenario.store.latency_ms)
    }

    /// One way between replicas, about a device.
    pub(super) fn peer_us(&mut self, device: usize) -> u64 {
        self.span_us(device, Drawn::Peer, |scenario| scenario.network.peer_ms)
    }

    /// Until a replica has an answer of another one, or knows that there will be none.
    pub(super) fn owner_us(&mut self, device: usize, is_silent: bool) -> u64 {
        if is_silent { SILENT_US } else { self.peer_us(device) }
    }

    /// One way of a packet of a socket.
    pub(super) fn packet_us(&mut self, name: u64, nth: u64) -> u64 {
        match self.scenario {
            Some(scenario) => self.draws.micros(scenario.network.latency_ms, Drawn::Latency, name, nth),
            None => self.random_us(),
        }
    }

    /// Whether a message between replicas is lost.
    pub(super) fn is_lost(&mut self, device: usize, is_over: bool) -> bool {
        match self.scenario {
            Some(scenario) => {
                let nth = self.next_draw(device);
                !is_over && self.draws.percent(scenario.network.lost_percent, Drawn::Lost, device as u64, nth)
            }
            None => once_in(&mut self.chance, self.faults.loss),
        }
    }

    /// Whether something happens that happens once in four times, to an operation while the store is away.
    pub(super) fn is_one_in_four(&mut self, device: usize) -> bool {
        match self.scenario {
            Some(_) => {
                let nth = self.next_draw(device);
                self.draws.percent(25, Drawn::StoreAway, device as u64, nth)
            }
            None => self.chance.once_in(4),
        }
    }

    /// For how long the answer of the store is stuck, if it is.
    pub(super) fn stuck_us(&mut self) -> Option<u64> {
        (self.scenario.is_none() && once_in(&mut self.chance, self.faults.stuck)).then_some(STUCK_US)
    }

    /// For how long an operation is under way, if it is so long that nobody waits for it any more.
    pub(super) fn late_swap_us(&mut self) -> Option<u64> {
        (self.scenario.is_none() && self.chance.once_in(6)).then(|| self.chance.below_u64(9 * SECOND))
    }

    /// When the host has proved a token, or the rule has answered.
    pub(super) fn answer_time(&mut self) -> AnswerTime {
        match self.scenario {
            Some(_) => AnswerTime::Now,
            None if once_in(&mut self.chance, self.faults.unanswered) => AnswerTime::Never,
            None => AnswerTime::AfterUs(self.random_us() / 2),
        }
    }

    /// Random bits for a question about a device, of which this is the next.
    pub(super) fn question_seed(&mut self, device: usize) -> u64 {
        let nth = &mut self.drawn[device].1;
        *nth += 1;
        self.draws.bits(Drawn::Question, device as u64, *nth)
    }

    /// After how long a replica has closed a socket that it is told to close; `None`: at once.
    pub(super) fn close_us(&mut self) -> Option<u64> {
        self.scenario.is_none().then(|| self.chance.below_u64(3 * MS))
    }

    /// After how long a replica notices that a socket is half-open.
    pub(super) fn unnoticed_us(&self, name: u64) -> u64 {
        let span = |scenario: &SettleScenario| scenario.network.unnoticed_ms;
        self.scenario.map_or(20 * SECOND, |one| self.draws.micros(span(one), Drawn::Unnoticed, name, 0))
    }

    /// The wall clock of the `nth` replica against the others', in milliseconds.
    pub(super) fn skew_ms(&mut self, nth: usize) -> u64 {
        match self.scenario {
            Some(_) => self.draws.below(40, Drawn::Skew, nth as u64, 0),
            None => self.chance.below_u64(40),
        }
    }

    /// Which of the running replicas are killed, by their positions.
    pub(super) fn killed(&self, nth: u64, running: usize) -> Vec<usize> {
        match self.scenario {
            Some(scenario) if scenario.replicas.all_at_once => (0..running).collect(),
            _ if running == 0 => Vec::new(),
            Some(_) => vec![self.draws.below(running as u64, Drawn::Killed, 0, nth) as usize],
            // A random schedule says which.
            None => vec![(nth as usize).min(running - 1)],
        }
    }

    /// After how long the others know that a replica is dead, and another one is in its place.
    pub(super) fn death_us(&mut self, replica: usize, nth: u64) -> (u64, u64) {
        let Some(scenario) = self.scenario else {
            return (20 * MS + self.chance.below_u64(400 * MS), 3 * SECOND);
        };
        let (times, whom) = (&scenario.replicas, replica as u64);
        let noticed_us = self.draws.micros(times.noticed_ms, Drawn::Noticed, u64::MAX - whom, nth);
        (noticed_us, self.draws.micros(times.back_ms, Drawn::Back, whom, nth))
    }

    /// After how long a replica hears that the store is back.
    pub(super) fn store_back_us(&mut self, replica: usize, now_us: u64) -> u64 {
        match self.scenario {
            Some(_) => self.draws.micros(STORE_BACK_MS, Drawn::StoreAway, replica as u64, now_us / MS),
            None => self.chance.below_u64(SECOND),
        }
    }

    fn span_us(&mut self, device: usize, what: Drawn, span: fn(&SettleScenario) -> Span) -> u64 {
        match self.scenario {
            Some(scenario) => {
                let nth = self.next_draw(device);
                self.draws.micros(span(scenario), what, device as u64, nth)
            }
            None => self.random_us(),
        }
    }

    fn random_us(&mut self) -> u64 {
        if once_in(&mut self.chance, self.faults.slow) {
            return self.chance.below_u64(900 * MS);
        }
        200 + self.chance.below_u64(2 * MS)
    }

    fn next_draw(&mut self, device: usize) -> u64 {
        let nth = &mut self.drawn[device].0;
        *nth += 1;
        *nth
    }
}

fn once_in(chance: &mut Chance, times: usize) -> bool {
    times > 0 && chance.once_in(times)
}
