//! If a generation fails too often, the last good one replaces it, and every decision is answered meanwhile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod guest;

use guest::{Guest, pick, questions};
use pointwork_policy::target::{Choice, Question};
use pointwork_policy::{
    Breaker, By, Digest, Engine, FailureKind, LoadError, Policy, SlotLimits, Standing, Target, Trip, UndoError,
};
use std::sync::{Arc, Mutex};

const NATIVE: Choice = Choice::Pick(7);

/// Traps if there is one candidate, else picks this index. Each index makes another module.
fn trapping(index: u32) -> Guest {
    let trap = "(if (i32.eq (local.get $count) (i32.const 1)) (then unreachable))";
    Guest::target(format!("{trap} {}", pick(&format!("i32.const {index}"))))
}

/// A question at this moment; a bad one makes the trapping guests trap.
fn question(now_ms: u64, is_bad: bool) -> Question {
    let mut question = questions::target(if is_bad { 1 } else { 5 });
    question.at.now_ms = now_ms;
    question
}

struct Bench {
    policy: Policy<Target>,
    trips: Arc<Mutex<Vec<Trip>>>,
}

impl Bench {
    /// Three failures within a second are too many.
    fn new() -> Self {
        let trips = Arc::<Mutex<Vec<Trip>>>::default();
        let reported = trips.clone();
        let policy = Policy::new(&Engine::new().unwrap(), SlotLimits::default())
            .with_breaker(Breaker { failures_max: 3, window_ms: 1_000 })
            .with_hook(Arc::new(move |trip| reported.lock().unwrap().push(trip.clone())));
        Self { policy, trips }
    }

    fn load(&self, index: u32) -> Digest {
        self.policy.load(&trapping(index).wasm(), "{}").unwrap().digest
    }

    fn bad(&self, now_ms: u64) {
        let decision = self.policy.decide(&question(now_ms, true), || NATIVE);
        assert_eq!(decision.verdict, NATIVE);
        assert!(matches!(decision.by, By::Native { .. }), "{decision:?}");
    }

    fn trip(&self) {
        (0..3).for_each(|now_ms| self.bad(now_ms));
    }

    /// The answer to a good question; `None` if the native rule gives it.
    fn answers(&self) -> Option<u32> {
        match self.policy.decide(&question(0, false), || NATIVE) {
            decision if decision.by == (By::Native { reason: None }) => None,
            decision => match decision.verdict {
                Choice::Pick(index) => Some(index),
                Choice::Reject => panic!("{decision:?}"),
            },
        }
    }

    fn trips(&self) -> Vec<Digest> {
        self.trips.lock().unwrap().iter().map(|trip| trip.digest).collect()
    }
}

#[test]
fn tolerates_failures_that_are_spread_over_more_than_the_window() {
    let bench = Bench::new();
    bench.load(0);
    for step in 0..100 {
        bench.bad(step * 500);
    }
    assert_eq!((bench.trips().len(), bench.answers()), (0, Some(0)));
    bench.bad(99 * 500 + 1);
    assert_eq!((bench.trips().len(), bench.answers()), (1, None));
}

#[test]
fn answers_the_last_tolerated_failure_and_returns_to_the_last_good_generation() {
    let bench = Bench::new();
    let good = bench.load(0);
    let bad = bench.load(1);
    assert_eq!(bench.answers(), Some(1));
    bench.trip();
    assert_eq!(bench.answers(), Some(0));
    let status = bench.policy.status();
    assert_eq!((status.digest, status.last_good, status.undone, status.generation), (Some(good), true, false, 3));
    assert_eq!((status.trips, status.failures.get("trap")), (1, Some(&3)));
    let quarantined = &status.quarantined[0];
    assert_eq!((quarantined.digest, quarantined.at), (bad, 2));
    assert!(quarantined.why.contains("3 times within 1000 ms") && quarantined.why.contains("trap"), "{quarantined:?}");
    assert_eq!(status.kept.iter().map(|kept| (kept.digest, kept.tripped)).collect::<Vec<_>>(), [(bad, true)]);
    let reported = bench.trips.lock().unwrap().clone();
    assert_eq!(reported.len(), 1);
    assert_eq!(
        (reported[0].digest, reported[0].kind, reported[0].serves, &reported[0].arm),
        (bad, FailureKind::Trap, Some(good), &None)
    );
}

#[test]
fn a_trip_goes_back_only_to_generations_that_may_be_kept() {
    let bench = Bench::new();
    let [first, undone, _] = [0, 1, 2].map(|index| bench.load(index));
    bench.policy.keep_only(&[first]);
    assert_eq!(bench.policy.status().kept.iter().map(|kept| kept.digest).collect::<Vec<_>>(), [first], "not {undone}");
    bench.trip();
    assert_eq!(bench.answers(), Some(0));
    bench.policy.keep_only(&[]);
    assert!(bench.policy.status().kept[0].tripped, "it is shown still");
    bench.trip();
    assert_eq!(bench.answers(), None);
}

#[test]
fn the_native_rule_serves_if_no_good_generation_is_kept() {
    let bench = Bench::new();
    bench.load(0);
    bench.trip();
    assert_eq!(bench.answers(), None);
    let status = bench.policy.status();
    assert_eq!((status.source, status.last_good), ("native", false));
    assert_eq!(bench.policy.undo(), Err(UndoError::NothingKept), "what tripped is no way back");
}

#[test]
fn loads_a_quarantined_digest_only_after_a_retry() {
    let bench = Bench::new();
    bench.load(0);
    let prepared = bench.policy.prepare(&trapping(1).wasm(), "{}").unwrap();
    let bad = bench.load(1);
    bench.trip();
    let refused = bench.policy.load(&trapping(1).wasm(), "{}").unwrap_err();
    assert!(matches!(&refused, LoadError::Quarantined(why) if why.contains("trap")), "{refused}");
    assert_eq!((refused.kind(), bench.policy.switch(prepared).unwrap_err().kind()), ("quarantined", "quarantined"));
    assert_eq!(bench.policy.status().last_load_error.unwrap().kind, "quarantined");
    bench.policy.load(&trapping(1).wasm(), "{ }").expect("another configuration is another generation");
    assert!(bench.policy.retry(&bad));
    assert!(!bench.policy.retry(&bad), "it is quarantined no more");
    assert_eq!(bench.load(1), bad);
    assert_eq!(bench.policy.status().last_load_error.map(|error| error.kind), None);
    bench.bad(0);
    bench.bad(1);
    assert_eq!(bench.answers(), Some(1), "it begins with a clean record");
}

#[test]
fn undo_goes_back_one_generation_at_a_time() {
    let bench = Bench::new();
    let digests: Vec<Digest> = (0..5).map(|index| bench.load(index)).collect();
    let kept = |bench: &Bench| bench.policy.status().kept.iter().map(|kept| kept.digest).collect::<Vec<_>>();
    assert_eq!(kept(&bench), [digests[3], digests[2], digests[1]], "three behind the one that serves");
    for index in [3, 2, 1] {
        let report = bench.policy.undo().unwrap();
        assert_eq!(report.digest, digests[index as usize]);
        assert_eq!((bench.answers(), bench.policy.status().undone), (Some(index), true));
    }
    assert_eq!(bench.policy.undo(), Err(UndoError::NothingKept));
    assert_eq!((bench.answers(), kept(&bench).len()), (Some(1), 0));
    assert_eq!(bench.policy.undone(), [digests[4], digests[3], digests[2]]);
    bench.load(4);
    assert!(!bench.policy.status().undone && bench.policy.undone().is_empty());
    assert_eq!(bench.policy.undo().unwrap().digest, digests[1]);
}

#[test]
fn a_tripped_generation_does_not_displace_a_good_one() {
    let bench = Bench::new();
    bench.load(0);
    bench.load(1);
    for index in 2..6 {
        bench.load(index);
        bench.trip();
        assert_eq!(bench.answers(), Some(1));
    }
    bench.load(6);
    bench.policy.undo().unwrap();
    assert_eq!(bench.answers(), Some(1));
    bench.policy.undo().unwrap();
    assert_eq!(bench.answers(), Some(0));
}

#[test]
fn gives_up_a_last_good_generation_that_fails_too() {
    let bench = Bench::new();
    let digests = [0, 1, 2].map(|index| bench.load(index));
    for left in [Some(1), Some(0), None] {
        bench.trip();
        assert_eq!(bench.answers(), left);
    }
    assert_eq!(bench.trips(), [digests[2], digests[1], digests[0]]);
    bench.trip();
    assert_eq!(bench.trips().len(), 3, "the native rule does not trip");
}

#[test]
fn an_operator_can_quarantine_the_serving_generation() {
    let bench = Bench::new();
    bench.load(0);
    let bad = bench.load(1);
    assert!(bench.policy.quarantine(bad, "strands devices"));
    assert_eq!(bench.answers(), Some(0));
    assert!(!bench.policy.quarantine(bad, "said again"));
    let status = bench.policy.status();
    assert_eq!((status.trips, status.quarantined.len()), (0, 1));
    assert_eq!(status.quarantined[0].why, "strands devices");
}

#[test]
fn undo_restores_an_unloaded_policy() {
    let bench = Bench::new();
    bench.load(0);
    bench.policy.unload();
    assert_eq!(bench.answers(), None);
    bench.policy.undo().unwrap();
    assert_eq!(bench.answers(), Some(0));
}

#[test]
fn concurrent_failures_trip_once_and_every_decision_is_answered() {
    let bench = Bench::new();
    bench.load(0);
    bench.load(1);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let bench = &bench;
            scope.spawn(move || {
                for round in 0..250 {
                    let is_bad = (round + thread) % 10 == 0 && bench.policy.status().trips == 0;
                    let decision = bench.policy.decide(&question(round, is_bad), || NATIVE);
                    let by_a_policy = [Choice::Pick(0), Choice::Pick(1)].contains(&decision.verdict);
                    assert!(by_a_policy || (is_bad && decision.verdict == NATIVE), "{decision:?}");
                }
            });
        }
    });
    assert_eq!((bench.trips().len(), bench.answers()), (1, Some(0)));
    assert_eq!(bench.policy.status().calls, 1_001);
}

#[test]
fn keeps_three_earlier_generations_which_do_not_count_as_live() {
    let bench = Bench::new();
    for index in 0..8 {
        bench.load(index);
        assert_eq!(bench.policy.status().live_generations, 1);
    }
    bench.load(7);
    assert_eq!(bench.policy.status().kept.len(), 3);
}

#[test]
fn a_last_good_load_does_not_restore_an_unloaded_policy() {
    let bench = Bench::new();
    let good = bench.load(0);
    bench.policy.unload();
    let last_good = || bench.policy.load_as(&trapping(0).wasm(), "{}", Standing::LastGood);
    assert_eq!((last_good().unwrap_err().kind(), bench.answers()), ("unreadable", None));
    bench.load(1);
    bench.trip();
    assert_eq!(bench.answers(), Some(0), "a trip does");
    bench.trip();
    bench.policy.retry(&good);
    assert_eq!((last_good().unwrap().changed, bench.answers()), (true, Some(0)));
}

/// More than a decision's deadline, and less than a set-up may take.
const SLOW: &str = "(local $left i32) (local.set $left (i32.const 30000000))
    (loop $again (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
    i32.const 128 i32.const 0 i32.store i32.const 128";

#[test]
fn does_not_count_a_slow_setup_as_a_failure_of_the_policy() {
    let trips = Arc::<Mutex<Vec<Trip>>>::default();
    let reported = trips.clone();
    // One instance is warm, and a failed question loses it.
    let policy =
        Policy::<Target>::new(&Engine::new().unwrap(), SlotLimits { instances_max: 1, ..SlotLimits::default() })
            .with_breaker(Breaker { failures_max: 2, window_ms: 1_000 })
            .with_hook(Arc::new(move |trip| reported.lock().unwrap().push(trip.clone())));
    policy.load(&trapping(0).configure(SLOW).wasm(), "{}").unwrap();
    policy.set_arm("arm".into(), policy.prepare(&trapping(1).configure(SLOW).wasm(), "{}").unwrap()).unwrap();
    for arm in [None, Some("arm")] {
        let decide = |now_ms: u64, is_bad: bool| policy.decide_by(arm, &question(now_ms, is_bad), || NATIVE).by;
        let mut late = 0;
        for round in 0..100 {
            // One failure is tolerated. Until there is another instance, decisions have none in time.
            let now_ms = round * 10_000;
            assert_eq!(decide(now_ms, true), By::Native { reason: Some(FailureKind::Trap) });
            loop {
                match decide(now_ms, false) {
                    By::Native { reason: Some(FailureKind::Instantiate) } => late += 1,
                    By::Wasm { .. } => break,
                    other => panic!("{arm:?}: {other:?}"),
                }
            }
            if late > 0 {
                break;
            }
        }
        assert!(late > 0 && trips.lock().unwrap().is_empty(), "{arm:?}: {late} {trips:?}");
    }
}
