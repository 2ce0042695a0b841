//! A policy that traps on one input in a thousand is given up, every decision is answered, and a restart does not bring it
//! back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{path::Path, sync::Arc};

use pointwork::{
    config::{PolicyConfig, RpcConfig},
    policies::{
        directory::PolicyDir,
        slots::{NotRetried, Policies},
    },
};
use pointwork_core::decisions::Choice;
use pointwork_policy::{Digest, SlotName, SlotStatus};
use pointwork_tests::{built, questions};

const SLOT: SlotName = SlotName::Target;
/// Traps for keys that 1,000 divides.
const RARELY: &str = r#"{"mode":"trap-rarely"}"#;

fn policies(state_dir: Option<&Path>) -> Arc<Policies> {
    let settings = PolicyConfig { state_dir: state_dir.map(Path::to_path_buf), ..PolicyConfig::default() };
    let policies = Arc::new(Policies::new(&settings, &RpcConfig::default()).unwrap());
    policies.write_trips_down().unwrap();
    policies
}

fn status(policies: &Policies) -> SlotStatus {
    policies.slot_status(SLOT)
}

fn name(policies: &Policies) -> Option<String> {
    status(policies).info.map(|info| info.name)
}

/// Decisions for so many keys; each must be answered as both the policies and the native rule would.
fn decide(policies: &Policies, keys: std::ops::RangeInclusive<u64>) {
    let rng = &mut fastrand::Rng::with_seed(7);
    let (call, candidates) = (questions::call(rng), questions::candidates(rng, 3));
    for key in keys {
        assert_eq!(policies.choose(key, &call, &candidates), Choice::Pick(0), "key {key}");
    }
}

/// The hostile guest serves after a good policy, and then its breaker trips.
fn trip(policies: &Policies) -> Digest {
    policies.load(SLOT, &built::guest("hostile").unwrap(), RARELY);
    let digest = status(policies).digest.unwrap();
    decide(policies, 1..=5_000);
    digest
}

/// What is written down follows the trip on another thread.
fn until_written(dir: &Path, word: &str) {
    let file = dir.join("target/state.json");
    for _ in 0..1_000 {
        if std::fs::read_to_string(&file).is_ok_and(|state| state.contains(word)) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no {word} in {}", file.display());
}

#[test]
fn one_input_in_a_thousand_is_enough() {
    let policies = policies(None);
    let mut trips = policies.trips();
    policies.load(SLOT, &built::policy("target-first").unwrap(), "{}");
    policies.load(SLOT, &built::guest("hostile").unwrap(), RARELY);
    decide(&policies, 1..=4_999);
    assert_eq!((name(&policies).as_deref(), status(&policies).native), (Some("pointwork-guest-hostile"), 4));
    decide(&policies, 5_000..=20_000);
    let status = status(&policies);
    assert_eq!((name(&policies).as_deref(), status.native, status.trips), (Some("target-first"), 5, 1));
    assert!(status.last_good && status.quarantined.len() == 1 && status.kept[0].tripped);
    assert_eq!(trips.try_recv().unwrap().digest, status.quarantined[0].digest);
    assert!(trips.try_recv().is_err(), "one trip is told once");
}

#[test]
fn a_digest_is_found_by_its_beginning() {
    let policies = policies(None);
    let bad = trip(&policies);
    assert_eq!(policies.find_bad(SLOT, &bad.to_string()), Ok(bad));
    assert_eq!(policies.find_bad(SLOT, &bad.short()), Ok(bad));
    for wrong in ["", &bad.to_string()[..11], "no digits at all", &bad.to_string().to_uppercase()] {
        assert_eq!(policies.find_bad(SLOT, wrong), Err(NotRetried::NoDigest), "{wrong}");
    }
    assert_eq!(policies.find_bad(SLOT, "000000000000"), Err(NotRetried::Unknown));
    assert!(policies.retry(SLOT, &bad));
    assert_eq!(policies.find_bad(SLOT, &bad.short()), Err(NotRetried::Unknown));
    policies.load(SLOT, &built::guest("hostile").unwrap(), RARELY);
    assert_eq!(status(&policies).digest, Some(bad));
}

#[test]
fn a_restart_does_not_bring_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let first = policies(Some(dir.path()));
    first.load(SLOT, &built::policy("target-first").unwrap(), "{}");
    first.load(SLOT, &built::policy("target-least-loaded").unwrap(), r#"{"local_first": false}"#);
    let good = status(&first).digest;
    let bad = trip(&first);
    until_written(dir.path(), &format!("\"digest\": \"{bad}\""));
    drop(first);

    let second = policies(Some(dir.path()));
    second.load_at_start(SLOT, &built::guest("hostile").unwrap(), RARELY);
    let found = status(&second);
    assert_eq!((found.digest, found.last_good, found.last_load_error.unwrap().kind), (good, true, "quarantined"));
    second.undo(SLOT).unwrap();
    assert_eq!(
        (name(&second).as_deref(), status(&second).undone),
        (Some("target-first"), true),
        "further back than this process"
    );
    assert!(second.undo(SLOT).is_err());
    drop(second);

    let third = policies(Some(dir.path()));
    third.load_at_start(SLOT, &built::policy("target-least-loaded").unwrap(), r#"{"local_first": false}"#);
    assert_eq!((name(&third).as_deref(), status(&third).undone), (Some("target-first"), true), "an undo holds");
    assert!(third.retry(SLOT, &bad));
    third.load(SLOT, &built::guest("hostile").unwrap(), RARELY);
    assert_eq!(status(&third).digest, Some(bad));
}

#[test]
fn a_start_on_a_bad_file_is_one_on_the_last_good() {
    let dir = tempfile::tempdir().unwrap();
    let module = built::policy("target-first").unwrap();
    policies(Some(dir.path())).load(SLOT, &module, "{}");
    let next = policies(Some(dir.path()));
    next.load_at_start(SLOT, &module[..module.len() / 2], "{}");
    let found = status(&next);
    assert_eq!((found.last_good, found.last_load_error.unwrap().kind), (true, "malformed"));
    next.load(SLOT, &module, "{}");
    assert_eq!(
        (status(&next).last_good, status(&next).last_load_error.is_none()),
        (false, true),
        "it is the newest now"
    );
    next.load(SLOT, &built::policy("target-least-loaded").unwrap(), "{}");
    assert!(!status(&next).last_good);
}

#[test]
fn the_only_policy_of_this_process_gives_way_to_one_of_a_former() {
    let dir = tempfile::tempdir().unwrap();
    policies(Some(dir.path())).load(SLOT, &built::policy("target-first").unwrap(), "{}");
    let next = policies(Some(dir.path()));
    trip(&next);
    until_written(dir.path(), "failed 5 times");
    let loaded = (0..1_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        name(&next).as_deref() == Some("target-first")
    });
    assert!(loaded && status(&next).last_good, "{:?}", status(&next));
}

#[test]
fn what_is_kept_is_bounded_and_what_is_corrupt_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let first = policies(Some(dir.path()));
    let module = built::guest("hostile").unwrap();
    for mode in ["ok", "loop", "trap", "print", "flood"] {
        first.load(SLOT, &module, &format!(r#"{{"mode":"{mode}"}}"#));
    }
    let kept = || std::fs::read_dir(dir.path().join("target")).unwrap().map(|entry| entry.unwrap().path());
    let modules: Vec<_> = kept().filter(|path| path.extension().is_some_and(|end| end == "wasm")).collect();
    assert_eq!((modules.len(), kept().count()), (3, 7), "three with their configurations, and the state");
    let newest = status(&first).digest.unwrap();
    let second = status(&first).kept[0].digest;
    drop(first);
    std::fs::write(dir.path().join(format!("target/{newest}.wasm")), b"other bytes").unwrap();
    let next = policies(Some(dir.path()));
    next.load_at_start(SLOT, b"no wasm", "{}");
    assert_eq!(status(&next).digest, Some(second));
    drop(next);
    std::fs::write(dir.path().join("target/state.json"), b"{ no state").unwrap();
    let last = policies(Some(dir.path()));
    last.load_at_start(SLOT, b"no wasm", "{}");
    assert_eq!(status(&last).source, "native");
}

#[test]
fn what_was_taken_away_stays_away() {
    let dir = tempfile::tempdir().unwrap();
    let module = built::policy("target-first").unwrap();
    let policies = policies(Some(dir.path()));
    policies.load(SLOT, &module, "{}");
    policies.unload(SLOT);
    assert!(!policies.load_last_good(SLOT), "it is no trip that left nothing");
    assert_eq!(status(&policies).digest, None);
    policies.load(SLOT, &module, "{}");
    assert_eq!(name(&policies).as_deref(), Some("target-first"));
    trip(&policies);
    assert_eq!(name(&policies).as_deref(), Some("target-first"), "a trip goes back to it");
}

/// As a ConfigMap: `..data` is a link to a folder of its own, and each file a link into it.
fn flip(dir: &Path, number: u32, files: &[(&str, &[u8])]) {
    let folder = dir.join(format!("..{number}"));
    std::fs::create_dir(&folder).unwrap();
    for (name, content) in files {
        std::fs::write(folder.join(name), content).unwrap();
    }
    std::os::unix::fs::symlink(&folder, dir.join("..next")).unwrap();
    std::fs::rename(dir.join("..next"), dir.join("..data")).unwrap();
    for (name, _) in files.iter().filter(|(name, _)| !dir.join(name).exists()) {
        std::os::unix::fs::symlink(Path::new("..data").join(name), dir.join(name)).unwrap();
    }
}

/// Slots are looked at in order, target first: once presence has what a flip brought, the target's files were looked at too.
fn until_presence(policies: &Policies, name: &str) {
    for _ in 0..2_000 {
        if policies.slot_status(SlotName::Presence).info.is_some_and(|info| info.name == name) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("presence is not served by {name}");
}

#[test]
fn an_undo_holds_while_the_files_hold_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (built::policy("target-first").unwrap(), built::policy("target-least-loaded").unwrap());
    let (seed, tolerant) = (built::policy("presence-seed").unwrap(), built::policy("presence-tolerant").unwrap());
    let settings = PolicyConfig { dir: Some(dir.path().to_path_buf()), ..PolicyConfig::default() };
    let policies = policies(None);
    flip(dir.path(), 1, &[("target.wasm", &first), ("presence.wasm", &seed)]);
    let files = PolicyDir::open(&settings, policies.clone()).unwrap();
    flip(dir.path(), 2, &[("target.wasm", &second), ("presence.wasm", &tolerant)]);
    until_presence(&policies, "presence-tolerant");
    let undone = status(&policies).digest.unwrap();
    assert_eq!(name(&policies).as_deref(), Some("target-least-loaded"));
    policies.undo(SLOT).unwrap();
    flip(dir.path(), 3, &[("target.wasm", &second), ("presence.wasm", &seed)]);
    until_presence(&policies, "presence-seed");
    assert_eq!((name(&policies).as_deref(), status(&policies).undone), (Some("target-first"), true));
    assert!(policies.retry(SLOT, &undone));
    files.reloads().reload(SLOT, undone);
    assert_eq!(status(&policies).digest, Some(undone), "the operator says so");
    policies.undo(SLOT).unwrap();
    flip(dir.path(), 4, &[("target.wasm", &first), ("presence.wasm", &tolerant)]);
    until_presence(&policies, "presence-tolerant");
    flip(dir.path(), 5, &[("target.wasm", &second), ("presence.wasm", &seed)]);
    until_presence(&policies, "presence-seed");
    assert_eq!(name(&policies).as_deref(), Some("target-least-loaded"), "put there anew, after others");
    files.close();
}
