//! The native rules and the default policies are the same rules: equal answers to thousands of generated questions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use fastrand::Rng;
use pointwork::{
    config::{PolicyConfig, RpcConfig},
    policies::slots::Policies,
};
use pointwork_policy::{SlotName, SlotStatus};
use pointwork_tests::{built, questions};

const QUESTIONS: u64 = 5_000;

/// One slot served by its default policy, and none.
fn both(slot: SlotName, policy: &str) -> (Policies, Policies) {
    // A generous deadline: here only answers count, and the machine may be busy.
    let mut settings = PolicyConfig::default();
    for slot in [&mut settings.target, &mut settings.grace, &mut settings.presence, &mut settings.settle] {
        slot.deadline_ms = pointwork::config::Bounded::literal::<1_000>();
    }
    let policies = || Policies::new(&settings, &RpcConfig::default()).unwrap();
    let (wasm, native) = (policies(), policies());
    wasm.load(slot, &built::policy(policy).unwrap(), "{}");
    (wasm, native)
}

/// Every answer was the policy's own: none of them was the native rule's in its place.
fn assert_answered_by_the_policy(policies: &Policies, slot: SlotName, policy: &str) {
    let status = policies.status();
    let status: &SlotStatus = status.iter().find(|status| status.slot == slot).unwrap();
    assert_eq!(status.info.as_ref().map(|info| info.name.as_str()), Some(policy), "{:?}", status.last_load_error);
    assert_eq!((status.calls, status.native), (QUESTIONS, 0), "{:?}", status.failures);
}

#[test]
fn target() {
    let (wasm, native) = both(SlotName::Target, "target-first");
    for seed in 0..QUESTIONS {
        let rng = &mut Rng::with_seed(seed);
        let (call, candidates) = (questions::call(rng), questions::some_candidates(rng));
        assert_eq!(wasm.choose(seed, &call, &candidates), native.choose(seed, &call, &candidates), "seed {seed}");
    }
    assert_answered_by_the_policy(&wasm, SlotName::Target, "target-first");
}

#[test]
fn grace() {
    let (wasm, native) = both(SlotName::Grace, "grace-fixed");
    for seed in 0..QUESTIONS {
        let rng = &mut Rng::with_seed(seed);
        let (call, absence) = (questions::call(rng), questions::absence(rng));
        assert_eq!(wasm.wait(seed, &call, &absence), native.wait(seed, &call, &absence), "seed {seed}");
    }
    assert_answered_by_the_policy(&wasm, SlotName::Grace, "grace-fixed");
}

#[test]
fn presence() {
    let (wasm, native) = both(SlotName::Presence, "presence-seed");
    for seed in 0..QUESTIONS {
        let rng = &mut Rng::with_seed(seed);
        let (call, doubt) = (questions::call(rng), questions::doubt(rng));
        assert_eq!(wasm.judge(seed, &call, &doubt), native.judge(seed, &call, &doubt), "seed {seed}");
    }
    assert_answered_by_the_policy(&wasm, SlotName::Presence, "presence-seed");
}

#[test]
fn settle() {
    let (wasm, native) = both(SlotName::Settle, "settle-hold");
    for seed in 0..QUESTIONS {
        let rng = &mut Rng::with_seed(seed);
        let window_ms = questions::window_ms(rng);
        let (incumbent, newcomer) = (questions::incumbent(rng, window_ms), questions::newcomer(rng));
        let history = questions::history(rng);
        let decide = |policies: &Policies| policies.settle(seed, window_ms, &incumbent, &newcomer, &history);
        assert_eq!(decide(&wasm), decide(&native), "seed {seed}");
    }
    assert_answered_by_the_policy(&wasm, SlotName::Settle, "settle-hold");
}
