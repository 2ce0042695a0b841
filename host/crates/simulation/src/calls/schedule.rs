//! Runs one schedule: a world of calls from a seed, to its end.

use crate::calls::machine::Flaw;
use crate::calls::outcomes::RpcOutcomes;
use crate::calls::rules::{Native, Rules};
use crate::calls::world::World;
use crate::counts::Counts;
use crate::scenario::RpcScenario;
use crate::trace::Trace;
use crate::violation::Violation;

/// How many steps a schedule has unless said otherwise.
pub const STEPS: u32 = 300;

/// One run, told completely by its fields.
#[derive(Clone, Copy)]
pub struct Schedule<'a> {
    /// Everything that happens follows from it.
    pub seed: u64,
    /// How many steps until everything heals.
    pub steps: u32,
    /// Who answers the machines' questions; by default the native rules, with constants of the seed's choice.
    pub rules: Option<&'a dyn Rules>,
    /// A mistake that the machines are made to make.
    pub flaw: Option<Flaw>,
    /// What the world is like; without one everything there is goes wrong in it.
    pub scenario: Option<&'a RpcScenario>,
}

/// What came of a schedule.
#[derive(Debug, Clone)]
pub struct Report {
    /// How many steps were taken.
    pub steps: u32,
    /// How calls ended, by name.
    pub ends: Counts,
    /// What went wrong in the world, by name.
    pub faults: Counts,
    /// The first invariant that did not hold.
    pub broken: Option<Violation>,
    /// What it was like for callers.
    pub outcomes: RpcOutcomes,
}

impl<'a> Schedule<'a> {
    /// A schedule of the real machines with the native rules.
    pub fn new(seed: u64, steps: u32) -> Schedule<'a> {
        Schedule { seed, steps, rules: None, flaw: None, scenario: None }
    }

    /// The world of a seed in a scenario, with the rules that are tried.
    pub fn of_scenario(scenario: &'a RpcScenario, seed: u64, rules: &'a dyn Rules) -> Schedule<'a> {
        // The scenario has bounded its steps.
        let steps = u32::try_from(scenario.steps).unwrap_or(STEPS);
        Schedule { seed, steps, rules: Some(rules), flaw: None, scenario: Some(scenario) }
    }

    /// Runs it.
    pub fn run(&self) -> Report {
        self.play(None)
    }

    /// Runs it and reports everything that happens, line by line.
    pub fn trace(&self, mut listener: impl FnMut(&str)) -> Report {
        self.play(Some(&mut listener))
    }

    fn play(&self, listener: Option<&mut dyn FnMut(&str)>) -> Report {
        let native = Native::of_seed(self.seed);
        let rules = self.rules.unwrap_or(&native);
        let trace = Trace::new(listener.map(|listener| -> &mut dyn FnMut(&str) { listener }));
        let mut world = World::new((self.seed, self.steps), self.flaw, self.scenario, rules, trace);
        world.run();
        let outcomes = world.outcomes();
        Report {
            steps: world.steps,
            ends: world.audit.ends,
            faults: world.faults,
            broken: world.audit.broken,
            outcomes,
        }
    }
}
