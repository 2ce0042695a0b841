//! Loading a policy: what is rejected and why, what serves meanwhile, what makes a new generation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod guest;

use guest::{Guest, REFUSE_LONG, questions};
use pointwork_policy::target::Choice;
use pointwork_policy::{By, Engine, LoadError, Policy, SlotLimits, SlotName, Target, WASM_MAX_BYTES, inspect};

fn native() -> Policy<Target> {
    Policy::new(&Engine::new().unwrap(), SlotLimits::default())
}

/// Checks that the load fails with this kind, and that the policy which served goes on serving.
fn rejected(wasm: &[u8], config_json: &str, kind: &str) -> LoadError {
    let policy = native();
    policy.load(&Guest::picks(1).wasm(), "{}").unwrap();
    let error = policy.load(wasm, config_json).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    let status = policy.status();
    assert_eq!(status.last_load_error.expect("kept").kind, kind);
    assert_eq!((status.generation, status.live_generations, status.source), (1, 1, "wasm"));
    let decision = policy.decide(&questions::target(2), || Choice::Reject);
    assert_eq!(decision.verdict, Choice::Pick(1));
    error
}

#[test]
fn rejects_bytes_that_are_no_component() {
    let wasm = Guest::picks(0).wasm();
    rejected(b"", "{}", "empty");
    rejected(&wasm[..wasm.len() / 2], "{}", "malformed");
    rejected(&wasm[..6], "{}", "malformed");
    rejected(b"#!/bin/sh", "{}", "malformed");
    rejected(&wat::parse_str("(module)").unwrap(), "{}", "core-module");
    rejected(&vec![0; WASM_MAX_BYTES + 1], "{}", "too-large");
}

#[test]
fn rejects_a_component_written_as_text() {
    rejected(b"(component)", "{}", "malformed");
}

#[test]
fn rejects_a_forbidden_import_and_names_it() {
    let error = rejected(&Guest::picks(0).with_sockets().wasm(), "{}", "forbidden-import");
    assert_eq!(error, LoadError::ForbiddenImport(vec!["wasi:sockets/instance-network@0.2.6".into()]));
}

#[test]
fn rejects_another_world_and_names_it() {
    let error = rejected(&Guest::settles(0, 0).wasm(), "{}", "wrong-world").to_string();
    assert!(error.contains("settle-policy") && error.contains("a target-policy of pointwork:policy@0.1.0"), "{error}");
    let error = rejected(&wat::parse_str("(component)").unwrap(), "{}", "wrong-world").to_string();
    assert!(error.contains("exports nothing"), "{error}");
}

#[test]
fn reports_that_a_policy_refuses_its_configuration() {
    let guest = Guest::picks(0).configure(REFUSE_LONG);
    let error = rejected(&guest.wasm(), r#"{"a":1}"#, "configure-refused");
    assert_eq!(error, LoadError::ConfigureRefused("0.1.0".into()));
}

#[test]
fn rejects_a_policy_that_fails_in_configure() {
    rejected(&Guest::picks(0).configure("unreachable").wasm(), "{}", "configure-failed");
    let error = rejected(&Guest::picks(0).configure("(loop $l (br $l)) unreachable").wasm(), "{}", "configure-failed");
    assert!(error.to_string().contains("deadline"), "{error}");
}

#[test]
fn rejects_a_bad_name() {
    rejected(&Guest::picks(0).named("Not A Name").wasm(), "{}", "bad-info");
}

#[test]
fn loads_a_policy_after_failed_loads_of_the_same_bytes() {
    let policy = native();
    let guest = Guest::picks(0).configure(REFUSE_LONG).wasm();
    policy.load(&guest, "{\"a\":1}").unwrap_err();
    policy.load(&guest[..100], "{}").unwrap_err();
    policy.load(&guest, "{}").unwrap();
    assert!(policy.status().last_load_error.is_none());
    policy.note_unreadable("permission denied");
    assert_eq!(policy.status().last_load_error.unwrap().kind, "unreadable");
}

#[test]
fn makes_a_generation_only_of_another_module_or_configuration() {
    let policy = native();
    let (zero, one) = (Guest::picks(0).wasm(), Guest::picks(1).wasm());
    let first = policy.load(&zero, "{}").unwrap();
    assert!(first.changed);
    assert_eq!(first.info.name, "test-target");
    let same = policy.load(&zero, "{}").unwrap();
    assert!(!same.changed);
    assert_eq!(same.generation, 1);
    assert_eq!(policy.load(&zero, r#"{ }"#).unwrap().generation, 2);
    assert_eq!(policy.load(&one, "{}").unwrap().generation, 3);
    let status = policy.status();
    assert_eq!((status.generation, status.live_generations), (3, 1));
    policy.unload();
    let status = policy.status();
    assert_eq!((status.generation, status.live_generations, status.source), (4, 0, "native"));
    let decision = policy.decide(&questions::target(2), || Choice::Reject);
    assert_eq!(decision.by, By::Native { reason: None });
}

#[test]
fn one_of_two_policies_answers_every_decision_during_swaps() {
    let policy = native();
    let wasm = [Guest::picks(0).wasm(), Guest::picks(1).wasm()];
    policy.load(&wasm[0], "{}").unwrap();
    let swapping = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while swapping.load(std::sync::atomic::Ordering::Relaxed) {
                    let decision = policy.decide(&questions::target(2), || Choice::Reject);
                    assert_ne!(decision.verdict, Choice::Reject, "{:?}", policy.status().last_failure);
                }
            });
        }
        for swap in 0..100 {
            assert!(policy.load(&wasm[(swap + 1) % 2], "{}").unwrap().changed);
        }
        swapping.store(false, std::sync::atomic::Ordering::Relaxed);
    });
    let status = policy.status();
    assert_eq!((status.generation, status.live_generations, status.native), (101, 1, 0));
}

#[test]
fn inspect_reports_slot_size_and_imports() {
    let engine = Engine::new().unwrap();
    let wasm = Guest::waits(5).says("hello").wasm();
    let inspection = inspect(&engine, &wasm).unwrap();
    assert_eq!((inspection.slot, inspection.size_bytes), (SlotName::Grace, wasm.len()));
    assert_eq!(inspection.info.version, "0.1.0");
    assert_eq!(inspection.imports.len(), 3, "{:?}", inspection.imports);
}
