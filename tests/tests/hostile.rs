//! Guests that misbehave. Each has its own kind of error in the slot's status, and each call is answered by the native
//! rule; all is called from a worker of a multi-thread runtime, as in the host.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::Arc;

use pointwork::{
    config::{PolicyConfig, RpcConfig},
    policies::slots::Policies,
};
use pointwork_core::decisions::{Candidate, Choice};
use pointwork_policy::{
    Engine, Policy, SlotLimits, SlotName,
    contract::{Call, Moment},
    target::{self, Target},
};
use pointwork_tests::{built, questions};
use serde_json::{Value, json};

/// The host as far as a decision goes.
struct Host {
    policies: Arc<Policies>,
    runtime: tokio::runtime::Runtime,
}

impl Host {
    fn new() -> Self {
        let policies = Policies::new(&PolicyConfig::default(), &RpcConfig::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        Self { policies: Arc::new(policies), runtime }
    }

    /// A host with the hostile guest in the given mode, or whatever of it could be loaded.
    fn with(mode: &str) -> Self {
        let host = Self::new();
        host.load(&built::guest("hostile").unwrap(), &json!({ "mode": mode }).to_string());
        host
    }

    fn load(&self, module: &[u8], config: &str) {
        self.policies.load(SlotName::Target, module, config);
    }

    /// One decision on a runtime's worker. Three candidates; the native rule takes the first.
    fn choose(&self) -> Choice {
        let policies = self.policies.clone();
        let decide = async move {
            let rng = &mut fastrand::Rng::with_seed(7);
            let call = questions::call(rng);
            let candidates: Vec<Candidate> = questions::candidates(rng, 3);
            policies.choose(1, &call, &candidates)
        };
        self.runtime.block_on(async { tokio::spawn(decide).await.expect("the host's task lives") })
    }

    /// The slot's status as the admin API shows it.
    fn status(&self) -> Value {
        serde_json::to_value(&self.policies.status()[0]).unwrap()
    }
}

/// Each of `calls` decisions fails as `kind` and is answered by the native rule.
fn fails_as(mode: &str, kind: &str, calls: u64) {
    let host = Host::with(mode);
    assert_eq!(host.status()["source"], "wasm", "{}", host.status());
    for _ in 0..calls {
        assert_eq!(host.choose(), Choice::Pick(0));
    }
    let status = host.status();
    assert_eq!(status["failures"], json!({ kind: calls }), "{status}");
    assert_eq!((&status["calls"], &status["native"]), (&json!(calls), &json!(calls)));
    assert_eq!(status["last_failure"]["kind"], kind);
}

/// The module is refused as `kind`, a word of the message is there, and the native rule serves.
fn refused_as(kind: &str, word: &str, module: &[u8], config: &str) {
    let host = Host::new();
    host.load(module, config);
    let status = host.status();
    assert_eq!((&status["source"], &status["last_load_error"]["kind"]), (&json!("native"), &json!(kind)), "{status}");
    let message = status["last_load_error"]["message"].as_str().unwrap();
    assert!(message.contains(word), "{message}");
    assert_eq!(host.choose(), Choice::Pick(0));
    assert_eq!(host.status()["native"], 1);
}

#[test]
fn one_that_loops_is_stopped_again_and_again() {
    fails_as("loop", "deadline", 3);
}

#[test]
fn one_that_copies_memory_for_ever_is_stopped() {
    fails_as("long-copy", "deadline", 2);
}

#[test]
fn one_that_traps() {
    fails_as("trap", "trap", 3);
}

#[test]
fn one_that_picks_out_of_range() {
    fails_as("out-of-range", "out-of-bounds", 3);
}

#[test]
fn one_that_allocates_without_end() {
    fails_as("allocate", "memory", 2);
}

#[test]
fn one_that_recurses_without_end() {
    fails_as("recurse", "stack", 2);
}

#[test]
fn one_that_overruns_its_own_stack() {
    fails_as("recurse-shadow", "trap", 2);
}

#[test]
fn one_that_says_it_cannot_decide() {
    fails_as("error", "policy-error", 2);
}

#[test]
fn one_that_behaves_is_asked() {
    let host = Host::with("ok");
    assert_eq!(host.choose(), Choice::Pick(0));
    assert_eq!((&host.status()["calls"], &host.status()["native"]), (&json!(1), &json!(0)));
}

#[test]
fn one_of_another_world_is_refused() {
    refused_as("wrong-world", "settle", &built::policy("settle-hold").unwrap(), "{}");
}

#[test]
fn one_that_imports_sockets_is_refused() {
    refused_as("forbidden-import", "wasi:sockets", &built::guest("sockets").unwrap(), "{}");
}

#[test]
fn one_that_imports_files_is_refused() {
    refused_as("forbidden-import", "wasi:filesystem", &built::guest("files").unwrap(), "{}");
}

#[test]
fn a_core_module_is_refused() {
    refused_as("core-module", "wasm32-wasip2", b"\0asm\x01\0\0\0", "{}");
}

#[test]
fn a_truncated_one_is_refused_wherever_it_was_cut() {
    let whole = built::policy("target-first").unwrap();
    for cut in [9, 100, whole.len() / 2, whole.len() * 9 / 10] {
        let host = Host::new();
        host.load(&whole[..cut], "{}");
        let status = host.status();
        assert_eq!(status["source"], "native", "cut at {cut}: {status}");
        assert!(
            ["malformed", "wrong-world"].contains(&status["last_load_error"]["kind"].as_str().unwrap()),
            "{status}"
        );
    }
    refused_as("malformed", "", &whole[..whole.len() / 2], "{}");
}

#[test]
fn an_empty_one_is_refused() {
    refused_as("empty", "", b"", "{}");
}

#[test]
fn what_is_no_wasm_is_refused() {
    refused_as("malformed", "", b"#!/bin/sh\necho hello\n", "{}");
}

#[test]
fn one_that_refuses_its_configuration_says_why() {
    let hostile = built::guest("hostile").unwrap();
    refused_as("configure-refused", "", &hostile, &json!({ "mode": "configure-refuse" }).to_string());
    refused_as("configure-refused", "mode", &hostile, &json!({ "mode": "no such mode" }).to_string());
    refused_as("configure-refused", "unknown field", &built::policy("target-first").unwrap(), r#"{"x": 1}"#);
}

#[test]
fn one_that_fails_in_configure_is_refused() {
    let hostile = built::guest("hostile").unwrap();
    for mode in ["configure-loop", "configure-trap"] {
        refused_as("configure-failed", "", &hostile, &json!({ "mode": mode }).to_string());
    }
}

#[test]
fn a_failed_load_leaves_the_old_one_serving_and_poisons_nothing() {
    let host = Host::new();
    let first = built::policy("target-first").unwrap();
    host.load(&first, "{}");
    let generation = host.status()["generation"].clone();
    for _ in 0..2 {
        host.load(&first[..first.len() / 2], "{}");
        let status = host.status();
        assert_eq!((&status["source"], &status["generation"]), (&json!("wasm"), &generation));
        assert_eq!(status["last_load_error"]["kind"], "malformed");
    }
    host.load(&built::policy("target-least-loaded").unwrap(), "{}");
    assert_eq!(host.status()["name"], "target-least-loaded");
    assert_eq!(host.status()["last_load_error"], Value::Null);
    host.load(&first, "{}");
    assert_eq!(host.status()["name"], "target-first");
}

#[test]
fn the_same_module_with_another_configuration_is_another_generation() {
    let host = Host::new();
    let module = built::policy("target-least-loaded").unwrap();
    host.load(&module, "{}");
    let first = host.status();
    host.load(&module, "{}");
    assert_eq!(host.status()["generation"], first["generation"]);
    host.load(&module, r#"{"local_first": false}"#);
    let second = host.status();
    assert_ne!((&second["generation"], &second["digest"]), (&first["generation"], &first["digest"]));
}

/// A host with the guest that tries what std offers beside output.
fn ambient(mode: &str) -> Host {
    let host = Host::new();
    host.load(&built::guest("ambient").unwrap(), &json!({ "mode": mode }).to_string());
    assert_eq!(host.status()["source"], "wasm", "{}", host.status());
    host
}

#[test]
fn clocks_and_randomness_are_the_moments() {
    // The guest answers with an error that tells all it could learn: the same for the same moment, in every instance.
    let learn = |at: Moment| {
        let policy = Policy::<Target>::new(&Engine::new().unwrap(), SlotLimits::default());
        policy.load(&built::guest("ambient").unwrap(), r#"{"mode": "learn"}"#).unwrap();
        let call = Call { method: "m".into(), params_bytes: 0, waited_ms: 0, left_ms: 1, attempt: 0 };
        let question = target::Question { at, call, candidates: Vec::new() };
        policy.decide(&question, || target::Choice::Reject);
        policy.status().last_failure.unwrap().message
    };
    let moment = Moment { now_ms: 1_800_000_000_000, seed: 3, key: 0 };
    let learnt = learn(moment);
    assert_eq!(learnt, learn(moment));
    assert_ne!(learnt, learn(Moment { now_ms: 1_800_000_000_001, ..moment }));
    assert!(learnt.contains("[] []"), "no variables and no arguments: {learnt}");
}

#[test]
fn one_that_sleeps_does_not_hold_up_its_host() {
    let host = ambient("sleep");
    assert_eq!(host.choose(), Choice::Pick(0));
}

#[test]
fn one_that_reads_stdin_finds_it_closed() {
    let host = ambient("stdin");
    assert_eq!(host.choose(), Choice::Pick(0));
    assert_eq!(host.status()["failures"], json!({}), "{}", host.status());
}

#[test]
fn one_that_exits_ends_its_instance_alone() {
    let host = ambient("exit");
    for _ in 0..2 {
        assert_eq!(host.choose(), Choice::Pick(0));
    }
    assert_eq!(host.status()["failures"], json!({ "trap": 2 }), "{}", host.status());
}
