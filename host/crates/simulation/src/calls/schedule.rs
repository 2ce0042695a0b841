//! Runs the schedule of a seed in a world of calls, or the schedules of many seeds on all cores.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::calls::outcomes::RpcOutcomes;
use crate::calls::rules::{Native, Rules};
#[cfg(test)]
use crate::calls::tests::Flaw;
use crate::calls::world::CallWorld;
use crate::counts::Counts;
use crate::scenario::RpcScenario;
use crate::trace::Trace;
use crate::violation::Violation;

/// How many steps a schedule has unless said otherwise.
pub const STEPS: u32 = 300;

/// One run. Everything in it follows from these fields.
#[derive(Clone, Copy)]
pub struct Schedule<'a> {
    /// Everything that happens follows from it.
    pub seed: u64,
    /// How many steps until everything heals.
    pub steps: u32,
    /// The rules; by default the native ones, with constants that follow from the seed.
    pub rules: Option<&'a dyn Rules>,
    /// A mistake that the machines are made to make.
    #[cfg(test)]
    pub(super) flaw: Option<Flaw>,
    /// The scenario of the world. Without one, every kind of fault happens.
    pub scenario: Option<&'a RpcScenario>,
}

/// The result of a schedule.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How many steps were taken.
    pub steps: u32,
    /// How calls ended, by name.
    pub ends: Counts,
    /// What went wrong in the world, by name.
    pub faults: Counts,
    /// The first invariant that did not hold.
    pub broken: Option<Violation>,
    /// The outcomes for callers.
    pub outcomes: RpcOutcomes,
}

impl<'a> Schedule<'a> {
    /// A schedule of the real machines with the native rules.
    pub fn new(seed: u64, steps: u32) -> Schedule<'a> {
        Schedule {
            seed,
            steps,
            rules: None,
            #[cfg(test)]
            flaw: None,
            scenario: None,
        }
    }

    /// A schedule in the world of a scenario, with the rules to try.
    pub fn of_scenario(scenario: &'a RpcScenario, seed: u64, rules: &'a dyn Rules) -> Schedule<'a> {
        // The scenario has bounded its steps.
        let steps = u32::try_from(scenario.steps).unwrap_or(STEPS);
        Schedule { rules: Some(rules), scenario: Some(scenario), ..Schedule::new(seed, steps) }
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
        let mut world = CallWorld::new((self.seed, self.steps), self.scenario, rules, trace);
        #[cfg(test)]
        world.set_flaw(self.flaw);
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

/// A range of seeds, each with as many steps.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The seeds.
    pub seeds: Range<u64>,
    /// Steps of each.
    pub steps: u32,
    /// How many threads; at least one.
    pub threads: usize,
}

/// A seed with which an invariant does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What does not hold.
    pub violation: Violation,
}

/// The result of a sweep.
#[derive(Debug, Clone, Default)]
pub struct Swept {
    /// How many schedules were run.
    pub schedules: u64,
    /// How calls ended.
    pub ends: Counts,
    /// What went wrong in the world.
    pub faults: Counts,
    /// The lowest seed that failed, of those that were run: a sweep ends soon after the first.
    pub failure: Option<Failure>,
}

impl Sweep {
    /// Runs the schedules. `progress` is given the number of those that are done after each one.
    pub fn run(&self, progress: impl Fn(u64) + Sync) -> Swept {
        let next = AtomicU64::new(self.seeds.start);
        let has_failed = AtomicBool::new(false);
        let swept = Mutex::new(Swept::default());
        let work = || {
            while !has_failed.load(Ordering::Relaxed) {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= self.seeds.end {
                    return;
                }
                let report = run(&Schedule::new(seed, self.steps));
                has_failed.fetch_or(report.broken.is_some(), Ordering::Relaxed);
                let mut swept = swept.lock().unwrap_or_else(PoisonError::into_inner);
                swept.add(seed, report);
                progress(swept.schedules);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(work);
            }
        });
        swept.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Swept {
    fn add(&mut self, seed: u64, report: Report) {
        self.schedules += 1;
        self.ends.add(&report.ends);
        self.faults.add(&report.faults);
        let failure = report.broken.map(|violation| Failure { seed, violation });
        self.failure = self.failure.take().into_iter().chain(failure).min_by_key(|failure| failure.seed);
    }
}

/// Runs a schedule. A panic breaks the invariant `no-panic`.
fn run(schedule: &Schedule<'_>) -> Report {
    catch_unwind(AssertUnwindSafe(|| schedule.run())).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        let text = text.or_else(|| cause.downcast_ref::<&str>().map(ToString::to_string));
        let what = text.unwrap_or_else(|| "for no reason that it gave".to_owned());
        let broken = Some(Violation { invariant: "no-panic", what });
        Report { broken, ..Report::default() }
    })
}
