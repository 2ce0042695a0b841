//! Runs the schedules of many seeds, on all cores.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::calls::machine::Flaw;
use crate::calls::outcomes::RpcOutcomes;
use crate::calls::schedule::{Report, Schedule};
use crate::counts::Counts;
use crate::violation::Violation;

/// Seeds that one thread takes at once.
const CHUNK: u64 = 16;

/// A range of seeds, each with as many steps.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The seeds.
    pub seeds: Range<u64>,
    /// Steps of each.
    pub steps: u32,
    /// A mistake that the machines are made to make.
    pub flaw: Option<Flaw>,
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

/// What came of a sweep.
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
    /// Runs the schedules. `progress` hears now and then how many are done.
    pub fn run(&self, progress: impl Fn(u64) + Sync) -> Swept {
        let next = AtomicU64::new(self.seeds.start);
        let has_failed = AtomicBool::new(false);
        let swept = Mutex::new(Swept::default());
        let work = || {
            while !has_failed.load(Ordering::Relaxed) {
                let from = next.fetch_add(CHUNK, Ordering::Relaxed);
                if from >= self.seeds.end {
                    return;
                }
                let part = self.run_some(from..self.seeds.end.min(from + CHUNK));
                has_failed.fetch_or(part.failure.is_some(), Ordering::Relaxed);
                let mut swept = swept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                swept.add(part);
                progress(swept.schedules);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(work);
            }
        });
        swept.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn run_some(&self, seeds: Range<u64>) -> Swept {
        let mut swept = Swept::default();
        for seed in seeds {
            let schedule = Schedule { flaw: self.flaw, ..Schedule::new(seed, self.steps) };
            let report = run(&schedule);
            swept.schedules += 1;
            swept.ends.add(&report.ends);
            swept.faults.add(&report.faults);
            if let Some(violation) = report.broken {
                swept.failure = Some(Failure { seed, violation });
                return swept;
            }
        }
        swept
    }
}

impl Swept {
    fn add(&mut self, part: Swept) {
        self.schedules += part.schedules;
        self.ends.add(&part.ends);
        self.faults.add(&part.faults);
        let failures = [self.failure.take(), part.failure];
        self.failure = failures.into_iter().flatten().min_by_key(|failure| failure.seed);
    }
}

/// A machine that panics breaks an invariant, too.
fn run(schedule: &Schedule<'_>) -> Report {
    catch_unwind(AssertUnwindSafe(|| schedule.run())).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        let text = text.or_else(|| cause.downcast_ref::<&str>().map(ToString::to_string));
        let what = text.unwrap_or_else(|| "for no reason that it gave".to_owned());
        let broken = Some(Violation { invariant: "no-panic", what });
        Report {
            steps: 0,
            ends: Counts::default(),
            faults: Counts::default(),
            broken,
            outcomes: RpcOutcomes::default(),
        }
    })
}
