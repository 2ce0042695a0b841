//! The simulated cluster with the real policies in wasm: each invariant holds with them, too, and the default ones play a
//! seed exactly as the native rules do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use pointwork::{
    config::{Bounded, PolicyConfig, RpcConfig},
    policies::slots::Policies,
};
use pointwork_core::decisions::{Absence, Call, Candidate, Choice, Doubt, Verdict};
use pointwork_policy::{SlotName, user_key};
use pointwork_simulation::{Native, RuleMoment, Rules, STEPS, Schedule};
use pointwork_tests::built;

/// The policies of three slots, and how long theirs gives a daemon to come back.
struct Wasm {
    policies: Policies,
    resume_ms: Option<u32>,
}

impl Wasm {
    fn load(target: &str, grace: &str, presence: &str, resume_ms: Option<u32>) -> Wasm {
        // A generous deadline: here only answers count, and the machine may be busy.
        let mut settings = PolicyConfig::default();
        for slot in [&mut settings.target, &mut settings.grace, &mut settings.presence] {
            slot.deadline_ms = Bounded::literal::<1_000>();
        }
        let policies = Policies::new(&settings, &RpcConfig::default()).unwrap();
        for (slot, name) in [(SlotName::Target, target), (SlotName::Grace, grace), (SlotName::Presence, presence)] {
            policies.load(slot, &built::policy(name).unwrap(), "{}");
        }
        Wasm { policies, resume_ms }
    }

    /// Every slot was asked, and none of the answers was the native rule's in the policy's place.
    fn assert_answered(&self) {
        for status in &self.policies.status()[..3] {
            assert!(status.info.is_some(), "{}: {:?}", status.slot, status.last_load_error);
            assert!(status.calls > 1_000 && status.native == 0, "{}: {:?}", status.slot, status.failures);
        }
    }
}

impl Rules for Wasm {
    fn choose(&self, _: RuleMoment, user: &str, call: &Call, candidates: &[Candidate]) -> Choice {
        self.policies.choose(user_key(user), call, candidates)
    }

    fn wait(&self, _: RuleMoment, user: &str, call: &Call, absence: &Absence) -> u32 {
        self.policies.wait(user_key(user), call, absence)
    }

    fn judge(&self, _: RuleMoment, user: &str, call: &Call, doubt: &Doubt) -> Verdict {
        self.policies.judge(user_key(user), call, doubt)
    }

    fn resume_ms(&self) -> Option<u32> {
        self.resume_ms
    }
}

#[test]
fn the_default_policies_play_a_seed_as_the_native_rules_do() {
    let native = Native::default();
    let wasm = Wasm::load("target-first", "grace-fixed", "presence-seed", native.resume_ms());
    for seed in 0..200 {
        let with = |rules| Schedule { rules: Some(rules), ..Schedule::new(seed, STEPS) }.run();
        let (by_wasm, by_native) = (with(&wasm), with(&native));
        assert_eq!(by_wasm.broken, None, "seed {seed}");
        assert_eq!((by_wasm.ends, by_wasm.faults), (by_native.ends, by_native.faults), "seed {seed}");
    }
    wasm.assert_answered();
}

#[test]
fn the_other_policies_break_nothing_either() {
    let wasm = Wasm::load("target-least-loaded", "grace-adaptive", "presence-tolerant", None);
    for seed in 0..400 {
        let report = Schedule { rules: Some(&wasm), ..Schedule::new(seed, STEPS) }.run();
        assert_eq!(report.broken, None, "seed {seed}");
    }
    wasm.assert_answered();
}
