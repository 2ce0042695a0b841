//! `pointwork policy simulate`, as an operator runs it, with the policies that ship.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pointwork")).args(["policy", "simulate"]).args(arguments).output().unwrap()
}

/// What a run prints that goes well.
fn told(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a run says that fails.
fn error(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn built(folder: &str, name: &str) -> String {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    let path = target.join(folder).join(name).with_extension("wasm");
    assert!(path.exists(), "{} is not built: cargo xtask policies", path.display());
    path.to_str().unwrap().to_owned()
}

fn policy(name: &str) -> String {
    built("policies", name)
}

fn compared(slot: &str, policy: &str, against: &str, scenario: &str, seeds: &str) -> Value {
    let arguments = ["--slot", slot, "--policy", policy, "--against", against, "--scenario", scenario];
    let told = told(&[&arguments[..], &["--seeds", seeds, "--json"]].concat());
    serde_json::from_str(&told).unwrap()
}

fn outcome<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["outcomes"].as_array().unwrap().iter().find(|one| one["outcome"] == name).unwrap()
}

/// Each outcome is exactly the same on both sides.
fn assert_same(report: &Value) {
    for one in report["outcomes"].as_array().unwrap() {
        let difference = &one["difference"];
        if !difference.is_null() {
            assert_eq!((difference["mean"].as_f64(), one["verdict"].as_str()), (Some(0.0), Some("same")), "{one}");
        }
        assert_eq!(one["policy"], one["against"], "{one}");
    }
    assert_eq!(report["policy"]["questions"], report["against"]["questions"]);
    assert!(report["policy"]["questions"].as_u64() > Some(50), "{report}");
}

#[test]
fn a_storm_is_calmed_by_holding_the_incumbent() {
    let report = compared("settle", &policy("settle-hold"), &policy("settle-newest"), "eviction-storm", "1..=200");
    let flips = outcome(&report, "flips");
    assert_eq!(flips["verdict"], "better");
    assert!(flips["difference"]["high"].as_f64() < Some(-3.0), "{flips}");
    assert_eq!(flips["difference"]["pairs"], 200);
    assert_eq!(outcome(&report, "stable")["verdict"], "better");
    assert_eq!(outcome(&report, "refused")["verdict"], "worse", "that is its price");
    assert_eq!(report["policy"]["failures"], serde_json::json!({}));
}

#[test]
fn opens_just_over_the_window_are_calmed_adaptively() {
    let report = compared("settle", &policy("settle-adaptive"), &policy("settle-hold"), "spaced-opens", "1..=40");
    let flips = outcome(&report, "flips");
    assert!(flips["difference"]["high"].as_f64() < Some(-100.0), "{flips}");
}

#[test]
fn a_policy_against_itself_and_the_native_rule_makes_no_difference_at_all() {
    for scenario in ["eviction-storm", "flapping-network", "moves", "half-open", "restarts"] {
        let adaptive = policy("settle-adaptive");
        assert_same(&compared("settle", &adaptive, &adaptive, scenario, "1..=25"));
        assert_same(&compared("settle", &policy("settle-hold"), "native", scenario, "1..=25"));
    }
}

#[test]
fn the_same_is_told_however_many_threads_there_are() {
    let (newest, hold) = (policy("settle-newest"), policy("settle-hold"));
    let arguments =
        ["--slot", "settle", "--policy", &newest, "--against", &hold, "--scenario", "moves", "--seeds", "5..90"];
    let told_by = |jobs| told(&[&arguments[..], &["--jobs", jobs]].concat());
    let one = told_by("1");
    assert_eq!((one.clone(), one), (told_by("1"), told_by("3")));
}

#[test]
fn unequal_daemons_are_worth_a_choice() {
    let (loaded, first) = (policy("target-least-loaded"), policy("target-first"));
    let report = compared("target", &loaded, &first, "rpc-load", "0..60");
    for name in ["answered", "latency", "timed-out"] {
        assert_eq!(outcome(&report, name)["verdict"], "better", "{name}: {report}");
    }
    assert_eq!(outcome(&report, "unavailable")["verdict"], "same", "the worlds are the same: {report}");
}

#[test]
fn a_shorter_grace_gives_up_what_would_have_been_answered() {
    let (adaptive, fixed) = (policy("grace-adaptive"), policy("grace-fixed"));
    let report = compared("grace", &adaptive, &fixed, "rpc-reconnect-storm", "0..60");
    assert_eq!(outcome(&report, "waited")["verdict"], "better");
    assert_eq!(outcome(&report, "aborted-wrongly")["verdict"], "worse", "that is its price");
}

#[test]
fn of_the_other_slots_too_a_policy_against_itself_makes_no_difference_at_all() {
    let cases = [
        ("target", "target-least-loaded", "target-least-loaded", "rpc-load"),
        ("target", "target-first", "native", "rpc-restarts"),
        ("grace", "grace-adaptive", "grace-adaptive", "rpc-reconnect-storm"),
        ("grace", "grace-fixed", "native", "rpc-flapping"),
        ("presence", "presence-tolerant", "presence-tolerant", "rpc-flapping"),
        ("presence", "presence-seed", "native", "rpc-restarts"),
    ];
    for (slot, one, other, scenario) in cases {
        let other = if other == "native" { other.to_owned() } else { policy(other) };
        assert_same(&compared(slot, &policy(one), &other, scenario, "3..20"));
    }
}

#[test]
fn a_policy_that_fails_is_counted_and_the_native_rule_answers() {
    let hostile = built("guests", "hostile");
    let arguments = ["--slot", "target", "--policy", &hostile, "--scenario", "rpc-load", "--seeds", "0..3", "--config"];
    let with = |mode: &str, more: &[&str]| told(&[&arguments[..], &[mode], more].concat());
    let report: Value = serde_json::from_str(&with(r#"{"mode": "trap"}"#, &["--json"])).unwrap();
    let failures = report["policy"]["failures"]["trap"].as_u64();
    assert_eq!(failures, report["policy"]["questions"].as_u64(), "every one: {report}");
    assert_same(&report);
    let text = with(r#"{"mode": "out-of-range"}"#, &[]);
    assert!(text.contains(&format!("failed {} times by out-of-bounds", failures.unwrap())), "{text}");
}

#[test]
fn a_policy_that_never_ends_is_not_played_on() {
    let hostile = built("guests", "hostile");
    let mode = r#"{"mode": "loop"}"#;
    let error = error(&["--slot", "target", "--policy", &hostile, "--config", mode, "--scenario", "rpc-load"]);
    assert!(error.contains("hostile runs over its deadline again and again"), "{error}");
}

#[test]
fn what_is_wrong_is_said() {
    let hold = policy("settle-hold");
    let with = |policy: &str, more: &[&str]| {
        error(&[&["--slot", "settle", "--policy", policy, "--seeds", "0..2", "--scenario"], more].concat())
    };
    assert!(with(&hold, &["nope"]).contains("neither a file nor one of eviction-storm, "));
    assert!(with("nope.wasm", &["moves"]).contains("nope.wasm: No such file"));
    assert!(with(&policy("target-first"), &["moves"]).contains("but a settle-policy"));
    assert!(error(&["--slot", "grace", "--policy", "native", "--scenario", "moves"]).contains("do not ask grace"));
    assert!(with(&hold, &["rpc-load"]).contains("rpc-load: these worlds do not ask settle"));
    assert!(with("native", &["moves", "--config", "{}"]).contains("the native rule has no configuration"));
    assert!(with(&hold, &["moves", "--config", "{"]).contains("--config: EOF while parsing"));
    assert!(with(&policy("settle-adaptive"), &["moves", "--config", r#"{"x": 1}"#]).contains("unknown field `x`"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        "summary = \"s\"\n[settle]\ndevices = 0\nduration_s = 1\n[settle.clients]\nfirst_open_ms = 0\n",
    )
    .unwrap();
    assert!(with(&hold, &[file.path().to_str().unwrap()]).contains("settle.devices: must be from 1 to 100"));
}

#[test]
fn the_scenarios_are_listed() {
    let list = told(&["--list-scenarios"]);
    for name in ["eviction-storm", "spaced-opens", "rpc-load"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
    }
}
