//! Arms decide beside what serves, and a failure of an arm affects only that arm.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod guest;

use guest::{Guest, questions};
use pointwork_policy::target::Choice;
use pointwork_policy::{ARMS_MAX, ArmError, Breaker, By, Engine, FailureKind, Policy, SlotLimits, Target, Trip};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NATIVE: Choice = Choice::Reject;

fn policy(trips: &Arc<Mutex<Vec<Trip>>>) -> Policy<Target> {
    let reported = trips.clone();
    let policy = Policy::new(&Engine::new().unwrap(), SlotLimits::default())
        .with_breaker(Breaker { failures_max: 3, window_ms: 1_000 })
        .with_hook(Arc::new(move |trip| reported.lock().unwrap().push(trip.clone())));
    policy.load(&Guest::picks(0).wasm(), "{}").unwrap();
    policy
}

fn set(policy: &Policy<Target>, arm: &str, guest: &Guest) {
    policy.set_arm(arm.into(), policy.prepare(&guest.wasm(), "{}").unwrap()).unwrap();
}

#[test]
fn an_arm_decides_only_the_decisions_that_name_it() {
    let policy = policy(&Arc::default());
    let prepared = policy.prepare(&Guest::picks(1).wasm(), "{}").unwrap();
    let digest = prepared.digest();
    policy.set_arm("treatment".into(), prepared).unwrap();
    let question = questions::target(3);
    let served = policy.decide(&question, || NATIVE);
    let treated = policy.decide_by(Some("treatment"), &question, || NATIVE);
    let stranger = policy.decide_by(Some("nobody"), &question, || NATIVE);
    assert_eq!((&served.verdict, served.by), (&Choice::Pick(0), By::Wasm { generation: 1 }));
    assert_eq!((&treated.verdict, treated.by), (&Choice::Pick(1), By::Wasm { generation: 0 }));
    assert_eq!((&stranger.verdict, stranger.digest), (&served.verdict, served.digest));
    assert_eq!((treated.digest, [served.id, treated.id, stranger.id]), (Some(digest), [1, 2, 3]));
    assert!(treated.cost > Duration::ZERO);
    let status = policy.status();
    assert_eq!((status.calls, status.native, status.arms.len(), status.generation), (3, 0, 1, 1));
    assert_eq!((status.arms[0].calls, status.live_generations), (1, 2));
    assert!(policy.clear_arm("treatment") && !policy.clear_arm("treatment"));
    assert_eq!(policy.decide_by(Some("treatment"), &question, || NATIVE).verdict, Choice::Pick(0));
}

#[test]
fn does_not_count_a_shadow_among_the_decisions() {
    let policy = policy(&Arc::default());
    set(&policy, "shadow", &Guest::picks(1));
    let question = questions::target(3);
    let shadow = policy.ask_arm("shadow", &question).unwrap();
    assert_eq!((shadow.verdict, policy.ask_arm("nobody", &question)), (Ok(Choice::Pick(1)), None));
    let status = policy.status();
    assert_eq!((status.calls, status.native, status.arms[0].calls), (0, 0, 1));
}

#[test]
fn the_native_rule_answers_for_a_failing_arm_which_trips_alone() {
    let trips = Arc::default();
    let policy = policy(&trips);
    set(&policy, "bad", &Guest::target("unreachable"));
    let question = questions::target(3);
    let reasons: Vec<_> = (0..5)
        .map(|_| policy.decide_by(Some("bad"), &question, || NATIVE))
        .inspect(|decision| assert_eq!(decision.verdict, NATIVE))
        .map(|decision| decision.by)
        .collect();
    let by = |reason| By::Native { reason: Some(reason) };
    let (trap, tripped) = (by(FailureKind::Trap), by(FailureKind::Tripped));
    assert_eq!(reasons, [trap, trap, trap, tripped, tripped]);
    let status = policy.status();
    assert_eq!((status.generation, status.trips, status.failures.len(), status.quarantined.len()), (1, 0, 0, 0));
    assert_eq!((status.calls, status.native), (5, 5));
    let arm = &status.arms[0];
    assert_eq!((arm.tripped, arm.calls, &arm.failures), (true, 5, &[("trap", 3), ("tripped", 2)].into()));
    let reported = trips.lock().unwrap().clone();
    assert_eq!(reported.len(), 1);
    assert_eq!(
        (reported[0].arm.as_deref(), reported[0].digest, reported[0].serves),
        (Some("bad"), arm.digest, status.digest)
    );
    assert_eq!(policy.ask_arm("bad", &question).unwrap().verdict, Err(FailureKind::Tripped));
    assert_eq!(policy.decide(&question, || NATIVE).verdict, Choice::Pick(0));
    assert!(policy.retry(&arm.digest));
    assert_eq!(policy.decide_by(Some("bad"), &question, || NATIVE).by, trap);
}

#[test]
fn counts_failures_of_a_module_separately_as_arm_and_in_the_slot() {
    let policy = policy(&Arc::default());
    let bad = Guest::target("unreachable");
    set(&policy, "arm", &bad);
    policy.load(&bad.wasm(), "{}").unwrap();
    let question = questions::target(3);
    for _ in 0..2 {
        policy.decide_by(Some("arm"), &question, || NATIVE);
        policy.decide(&question, || NATIVE);
    }
    let status = policy.status();
    assert_eq!((status.trips, status.arms[0].tripped), (0, false));
}

#[test]
fn bounds_the_number_of_arms() {
    let policy = policy(&Arc::default());
    let wasm = Guest::picks(1).wasm();
    for arm in 0..ARMS_MAX {
        policy.set_arm(arm.to_string().into(), policy.prepare(&wasm, "{}").unwrap()).unwrap();
    }
    let one_more = policy.prepare(&wasm, "{}").unwrap();
    assert_eq!(policy.set_arm("one more".into(), one_more), Err(ArmError::TooMany { limit: ARMS_MAX }));
    policy.set_arm("0".into(), policy.prepare(&wasm, "{ }").unwrap()).expect("a new one in the place of another");
}
