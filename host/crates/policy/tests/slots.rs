//! Each slot returns the guest's verdict, but the native rule's if the verdict is out of bounds.

#![allow(clippy::unwrap_used)]

mod guest;

use guest::{Guest, POLICY_ERROR, questions};
use pointwork_policy::{
    By, Engine, FailureKind, Grace, Policy, Presence, Settle, Slot, SlotLimits, Target, presence, settle, target,
};

/// The decision with this guest loaded; the native rule answers `native`.
fn decide<S: Slot>(guest: &Guest, question: &S::Question, native: S::Verdict) -> (S::Verdict, By) {
    let policy = Policy::<S>::new(&Engine::new().unwrap(), SlotLimits::default());
    policy.load(&guest.wasm(), "{}").unwrap();
    let decision = policy.decide(question, || native);
    (decision.verdict, decision.by)
}

fn by_policy<V>(verdict: V) -> (V, By) {
    (verdict, By::Wasm { generation: 1 })
}

fn by_native<V>(verdict: V, reason: FailureKind) -> (V, By) {
    (verdict, By::Native { reason: Some(reason) })
}

#[test]
fn target_picks_or_rejects() {
    use target::Choice::{Pick, Reject};
    let question = questions::target(3);
    let decide = |guest| decide::<Target>(&guest, &question, Pick(0));
    assert_eq!(decide(Guest::picks(2)), by_policy(Pick(2)));
    assert_eq!(decide(Guest::target(guest::variant(1, "i32.const 0"))), by_policy(Reject));
    assert_eq!(decide(Guest::picks(3)), by_native(Pick(0), FailureKind::OutOfBounds));
    assert_eq!(decide(Guest::target(POLICY_ERROR)), by_native(Pick(0), FailureKind::PolicyError));
}

#[test]
fn grace_waits_at_most_an_hour() {
    let decide = |span| decide::<Grace>(&Guest::waits(span), &questions::grace(), 10_000);
    assert_eq!(decide(0), by_policy(0));
    assert_eq!(decide(3_600_000), by_policy(3_600_000));
    assert_eq!(decide(3_600_001), by_native(10_000, FailureKind::OutOfBounds));
}

#[test]
fn presence_aborts_or_holds() {
    use presence::Verdict::{Abort, Hold};
    let decide = |case, span| decide::<Presence>(&Guest::judges(case, span), &questions::presence(), Abort);
    assert_eq!(decide(0, 9), by_policy(Abort));
    assert_eq!(decide(1, 250), by_policy(Hold(250)));
    assert_eq!(decide(1, u32::MAX), by_native(Abort, FailureKind::OutOfBounds));
}

#[test]
fn settle_accepts_refuses_or_keeps_both() {
    use settle::Verdict::{Accept, Beside, Refuse};
    let decide = |case, span| decide::<Settle>(&Guest::settles(case, span), &questions::settle(), Accept);
    assert_eq!(decide(0, 0), by_policy(Accept));
    assert_eq!(decide(1, 2_500), by_policy(Refuse(2_500)));
    assert_eq!(decide(2, 40), by_policy(Beside(40)));
    assert_eq!(decide(1, 4_000_000), by_native(Accept, FailureKind::OutOfBounds));
    assert_eq!(decide(2, 4_000_000), by_native(Accept, FailureKind::OutOfBounds));
}

#[test]
fn the_native_rule_answers_if_no_policy_is_loaded() {
    let policy = Policy::<Target>::new(&Engine::new().unwrap(), SlotLimits::default());
    let decision = policy.decide(&questions::target(1), || target::Choice::Pick(0));
    assert_eq!(decision.by, By::Native { reason: None });
    let status = policy.status();
    assert_eq!((status.source, status.calls, status.native, status.generation), ("native", 1, 1, 0));
}
