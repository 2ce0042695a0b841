//! Tests that the records of a host can be replayed with the same policy and with others, and that shipped policies pass their vectors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use fastrand::Rng;
use pointwork::{
    config::{Bounded, PolicyConfig, RecordsConfig, RpcConfig},
    policies::{records::Records, slots::Policies},
};
use pointwork_policy::SlotName;
use pointwork_tests::{built, questions};
use pointwork_tools::{
    replay::{MatrixCell, ReplayArgs, ReplayReport, replay},
    test::{TestArgs, TestReport, test},
};
use tempfile::TempDir;

const QUESTIONS: u64 = 500;
/// Here only answers count, and the machine may be busy.
const DEADLINE_MS: u64 = 1_000;

/// A host's policies with a recorder, and a folder.
struct Host {
    policies: Policies,
    records: Arc<Records>,
    folder: TempDir,
}

impl Host {
    async fn serving(policies: &[(SlotName, &str)]) -> Self {
        let mut settings = PolicyConfig::default();
        for slot in [&mut settings.target, &mut settings.grace, &mut settings.presence, &mut settings.settle] {
            slot.deadline_ms = Bounded::literal::<1_000>();
        }
        let host = Self {
            policies: Policies::new(&settings, &RpcConfig::default()).unwrap(),
            records: Records::start(&RecordsConfig::default(), "0123456789abcdef", None).unwrap(),
            folder: tempfile::tempdir().unwrap(),
        };
        host.policies.record_to(host.records.clone());
        for (slot, policy) in policies {
            host.policies.load(*slot, &built::policy(policy).unwrap(), "{}");
        }
        host
    }

    /// One question of each slot.
    fn asked(&self, seed: u64) {
        let rng = &mut Rng::with_seed(seed);
        self.policies.choose(seed, &questions::call(rng), &questions::some_candidates(rng));
        self.policies.wait(seed, &questions::call(rng), &questions::absence(rng));
        self.policies.judge(seed, &questions::call(rng), &questions::doubt(rng));
        let window_ms = questions::window_ms(rng);
        let (incumbent, newcomer) = (questions::incumbent(rng, window_ms), questions::newcomer(rng));
        self.policies.settle(seed, window_ms, &incumbent, &newcomer, &questions::history(rng));
    }

    /// All that is recorded, as a file.
    fn recording(&self) -> PathBuf {
        let path = self.folder.path().join("records.jsonl");
        let lines: Vec<_> = self.records.latest(None, usize::MAX).iter().map(|record| record.to_line()).collect();
        fs::write(&path, lines.join("\n")).unwrap();
        path
    }
}

fn policy_file(folder: &str, name: &str) -> PathBuf {
    built::target().join(folder).join(name).with_extension("wasm")
}

fn replayed(policy: &Path, records: &Path) -> anyhow::Result<ReplayReport> {
    replay(&ReplayArgs {
        policy: policy.to_owned(),
        config: None,
        records: records.to_owned(),
        deadline_ms: Some(DEADLINE_MS),
        examples: 2,
        json: false,
    })
}

fn cell<'a>(replayed: &'a ReplayReport, recorded: &str, here: &str) -> &'a MatrixCell {
    let found = replayed.cells.iter().find(|cell| cell.recorded == recorded && cell.here == here);
    found.unwrap_or_else(|| panic!("{recorded} -> {here} in\n{replayed}"))
}

const ADAPTIVE: [(SlotName, &str); 4] = [
    (SlotName::Target, "target-least-loaded"),
    (SlotName::Grace, "grace-adaptive"),
    (SlotName::Presence, "presence-tolerant"),
    (SlotName::Settle, "settle-adaptive"),
];

#[tokio::test]
async fn agrees_with_its_own_records() {
    let host = Host::serving(&ADAPTIVE).await;
    (0..QUESTIONS).for_each(|seed| host.asked(seed));
    let records = host.recording();
    for (slot, policy) in ADAPTIVE {
        let replayed = replayed(&policy_file("policies", policy), &records).unwrap();
        assert_eq!((replayed.read, replayed.slot), (4 * QUESTIONS, slot));
        assert_eq!((replayed.of_slot, replayed.agreed), (QUESTIONS, QUESTIONS), "{replayed}");
        assert_eq!((replayed.of_this_generation, replayed.agreed_of_this_generation), (QUESTIONS, QUESTIONS));
        assert!(replayed.cells.is_empty() && replayed.failures.is_empty());
        assert!(replayed.to_string().contains(&format!("agreement   100.00 %: {QUESTIONS} of {QUESTIONS}\n")));
    }
}

#[tokio::test]
async fn reports_a_matrix_with_examples_for_another_policy() {
    let host = Host::serving(&ADAPTIVE).await;
    (0..QUESTIONS).for_each(|seed| host.asked(seed));
    let records = host.recording();

    let newest = replayed(&policy_file("policies", "settle-newest"), &records).unwrap();
    let refused = cell(&newest, "refuse", "accept");
    assert_eq!((newest.cells.len(), refused.examples.len()), (1, 2), "{newest}");
    assert_eq!(newest.agreed + refused.count, QUESTIONS);
    assert_eq!(newest.of_this_generation, 0);
    let text = fs::read_to_string(&records).unwrap();
    for example in &refused.examples {
        let line = text.lines().nth(example.line as usize - 1).unwrap();
        assert!(line.contains(&format!("\"id\":\"{}\"", example.id)), "{example:?}");
        assert!(example.recorded.starts_with("{\"refuse\":") && example.here == "\"accept\"", "{example:?}");
    }

    let first = replayed(&policy_file("policies", "target-first"), &records).unwrap();
    assert_eq!(cell(&first, "pick", "pick, another one").count, QUESTIONS - first.agreed);
    let fixed = replayed(&policy_file("policies", "grace-fixed"), &records).unwrap();
    assert!(cell(&fixed, "wait", "wait, other span").count > 0 && cell(&fixed, "fail now", "wait").count > 0);
    let seed = replayed(&policy_file("policies", "presence-seed"), &records).unwrap();
    assert!(cell(&seed, "hold", "hold, other span").count > 0 && cell(&seed, "hold", "abort").count > 0);
}

#[tokio::test]
async fn distinguishes_native_rules_and_failures_from_verdicts() {
    let host = Host::serving(&[]).await;
    (0..QUESTIONS).for_each(|seed| host.asked(seed));
    let records = host.recording();
    let hold = replayed(&policy_file("policies", "settle-hold"), &records).unwrap();
    assert_eq!((hold.agreed, hold.of_this_generation), (QUESTIONS, 0), "the native rule is the same: {hold}");
    let newest = replayed(&policy_file("policies", "settle-newest"), &records).unwrap();
    assert!(cell(&newest, "native: refuse", "accept").count > 0);

    let host = Host::serving(&[]).await;
    host.policies.load(SlotName::Target, &built::guest("hostile").unwrap(), r#"{"mode": "trap"}"#);
    // Not so many that the slot is taken from it.
    (0..3).for_each(|seed| host.asked(seed));
    let records = host.recording();
    let config = |mode: &str| Some(PathBuf::from(format!(r#"{{"mode":"{mode}"}}"#)));
    let in_mode = |mode: &str| {
        let (policy, records) = (policy_file("guests", "hostile"), records.clone());
        replay(&ReplayArgs { policy, config: config(mode), records, deadline_ms: None, examples: 1, json: false })
    };
    let same = in_mode("trap").unwrap();
    assert_eq!((same.of_slot, same.agreed), (3, 3), "a failure of the same kind is the same: {same}");
    assert_eq!(same.failures, [("trap", 3)].into());
    let better = in_mode("ok").unwrap();
    assert_eq!(cell(&better, "failed: trap", "pick").count, 3);
}

#[tokio::test]
async fn names_an_edited_line() {
    let host = Host::serving(&[]).await;
    (0..5).for_each(|seed| host.asked(seed));
    let records = host.recording();
    let text = fs::read_to_string(&records).unwrap();
    let edited = |line: usize, from: &str, to: &str| {
        let lines: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(index, text)| if index + 1 == line { text.replacen(from, to, 1) } else { text.to_owned() })
            .collect();
        assert_ne!(lines.join("\n"), text, "{from} is in line {line}");
        fs::write(&records, lines.join("\n")).unwrap();
        format!("{:#}", replayed(&policy_file("policies", "settle-hold"), &records).unwrap_err())
    };
    // Each is found, whichever slot it is of.
    assert!(edited(17, "\"target\"", "\"settle\"").contains("records.jsonl: line 17: "));
    assert!(edited(4, "\"window-ms\":", "\"window-ms\":-").contains("records.jsonl: line 4: "));
    assert!(edited(2, "\"verdict\":10000", "\"verdict\":10000000").contains("line 2: verdict: wait 10000000 ms"));
    assert!(edited(1, "\"v\":1", "\"v\":2").contains("line 1: a record of version 2"));
}

fn tested(policy: &Path, vectors: Option<&Path>) -> anyhow::Result<TestReport> {
    test(&TestArgs {
        policy: policy.to_owned(),
        config: None,
        vectors: vectors.map(Path::to_owned),
        count: 100,
        seed: 1,
        deadline_ms: Some(DEADLINE_MS),
    })
}

#[test]
fn every_shipped_policy_passes_its_vectors() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies");
    let mut vectors = 0;
    for entry in fs::read_dir(sources).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if !folder.is_dir() || name == "sdk" {
            continue;
        }
        let tested = tested(&policy_file("policies", &name), Some(&folder.join("vectors.jsonl"))).unwrap();
        assert!(tested.is_good(), "{tested}");
        assert_eq!(tested.generated.tried, 100);
        assert!(tested.golden.tried > 0);
        vectors += tested.golden.tried;
    }
    assert!(vectors > 50, "{vectors}");
}

#[test]
fn reports_failed_and_malformed_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = folder.path().join("v.jsonl");
    let hold = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies/settle-hold/vectors.jsonl"))
        .unwrap();
    fs::write(&vectors, &hold).unwrap();
    let newest = tested(&policy_file("policies", "settle-newest"), Some(&vectors)).unwrap();
    assert!(!newest.is_good());
    let told = &newest.golden.failures[0];
    assert!(told.starts_with("line 1 (within the window): \"accept\", not {\"refuse\":1500}, to {\"at\":"), "{told}");

    let mut lines: Vec<&str> = hold.lines().collect();
    lines.insert(1, r#"{"question": {}, "verdict": "accept"}"#);
    fs::write(&vectors, lines.join("\n")).unwrap();
    let error = format!("{:#}", tested(&policy_file("policies", "settle-hold"), Some(&vectors)).unwrap_err());
    assert!(error.contains("v.jsonl: line 2: missing field `at`"), "{error}");
}

#[test]
fn reports_what_a_policy_must_not_do() {
    let told = |mode: &str| {
        let tested = test(&TestArgs {
            policy: policy_file("guests", "hostile"),
            config: Some(format!(r#"{{"mode": "{mode}"}}"#).into()),
            vectors: None,
            count: 3,
            seed: 1,
            deadline_ms: Some(20),
        });
        let tested = tested.unwrap();
        let expected = if mode == "ok" { 0 } else { 3 };
        assert_eq!((tested.generated.tried, tested.generated.failed), (3, expected), "{mode}: {tested}");
        tested.to_string()
    };
    told("ok");
    assert!(told("loop").contains("seed 1: no verdict: deadline: "));
    assert!(told("trap").contains("seed 3: no verdict: trap: "));
    assert!(told("out-of-range").contains("no verdict: out-of-bounds: pick "));
    assert!(told("error").contains("no verdict: policy-error: bad input: does not like this input"));
    assert!(told("remember").contains(" and, asked again, "));
}
