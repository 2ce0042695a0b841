//! Tests that `pointwork policy check` accepts and refuses the same policies as a host.
#![allow(clippy::unwrap_used, missing_docs)]

use std::{fs, path::PathBuf};

use pointwork_policy::SlotName;
use pointwork_tests::built;
use pointwork_tools::check::{CheckArgs, check};

/// A guest's file in its own folder, with a configuration beside it.
fn placed(guest: &str, config: Option<&str>) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("policy.wasm");
    fs::write(&file, built::guest(guest).unwrap()).unwrap();
    if let Some(config) = config {
        fs::write(dir.path().join("policy.json"), config).unwrap();
    }
    (dir, file)
}

fn checked(guest: &str, config: Option<&str>) -> (String, bool) {
    let (_dir, file) = placed(guest, config);
    check(&CheckArgs { files: vec![file], slot: None }).unwrap()
}

#[test]
fn configures_a_policy_as_a_host_does() {
    let (report, is_good) = checked("exacting", Some(r#"{"wait_ms": 5}"#));
    assert!(is_good && report.contains("pointwork-guest-exacting"), "{report}");
    assert!(report.contains("for slot grace"), "{report}");

    let (report, is_good) = checked("exacting", None);
    assert!(!is_good, "{report}");
    assert!(report.contains("policy.json, with the configuration {}: ") && report.contains("wait_ms"), "{report}");

    let (report, is_good) = checked("exacting", Some(r#"{"wait_ms": 5, "more": 1}"#));
    assert!(!is_good && report.contains("more"), "{report}");
    let (report, is_good) = checked("exacting", Some("no JSON"));
    assert!(!is_good && report.contains("policy.json: "), "{report}");
}

#[test]
fn refuses_a_policy_that_a_host_could_not_load() {
    let (report, is_good) = checked("hostile", Some(r#"{"mode": "configure-trap"}"#));
    assert!(!is_good && report.contains(": refused: "), "{report}");
    let (_dir, file) = placed("exacting", Some(r#"{"wait_ms": 5}"#));
    let (report, is_good) = check(&CheckArgs { files: vec![file], slot: Some(SlotName::Target) }).unwrap();
    assert!(!is_good && report.contains("is for the slot grace"), "{report}");
}
