#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use fastrand::Rng;
use pointwork_policy::{
    Digest, FailureKind, Grace, Presence, Settle, Target,
    contract::{Call, Departure, Moment},
    grace,
    record::{Exchange, records},
};

use super::*;
use pointwork_tools::questions::Generated;

/// A record of the `grace` slot.
pub(super) fn grace_record(decision: u64, method: &str) -> DecisionRecord {
    DecisionRecord {
        replica: "r".into(),
        decision,
        at_ms: 1,
        by: Decider::Native,
        failure: None,
        digest: None,
        arm: None,
        cost: Duration::ZERO,
        exchange: Exchange::Grace(grace_question(method), 5),
    }
}

fn grace_question(method: &str) -> grace::Question {
    let absence = grace::Absence {
        cause: Departure::Closed,
        gone_ms: 1,
        departures: 1,
        returns_ms: vec![],
        waiting: 0,
        replica_age_ms: 9,
    };
    let call = Call { method: method.into(), params_bytes: 1, waited_ms: 0, left_ms: 9, attempt: 0 };
    grace::Question { at: Moment { now_ms: 1, seed: 2, key: 3 }, call, absence }
}

fn decision<V>(id: u64, verdict: V) -> Decision<V> {
    let by = By::Native { reason: Some(FailureKind::Trap) };
    Decision { verdict, by, id, digest: Some(Digest::of_wasm(b"a")), cost: Duration::from_nanos(1_234) }
}

fn started(settings: &RecordsConfig) -> Arc<Records> {
    Records::start(settings, "0123", None).unwrap()
}

#[test]
fn keeps_what_was_decided() {
    let records = started(&RecordsConfig::default());
    let question = grace_question("m");
    records.note::<Grace>(question.clone(), &decision(7, 250), Some("treatment".into()));
    let kept = records.latest(None, 9);
    let expected = DecisionRecord {
        replica: "0123".into(),
        decision: 7,
        at_ms: 1,
        by: Decider::Native,
        failure: Some(FailureKind::Trap),
        digest: Some(Digest::of_wasm(b"a")),
        arm: Some("treatment".into()),
        cost: Duration::from_nanos(1_234),
        exchange: Exchange::Grace(question, 250),
    };
    assert_eq!(kept.iter().map(|record| &**record).collect::<Vec<_>>(), [&expected]);
}

#[test]
fn each_slot_has_a_ring_and_all_rings_are_read_in_order() {
    let records = started(&RecordsConfig { ring: crate::config::Bounded::literal::<2>(), ..RecordsConfig::default() });
    let rng = &mut Rng::with_seed(1);
    records.note::<Target>(Target::question(rng), &decision(1, pointwork_policy::target::Choice::Reject), None);
    for id in [2, 3, 5] {
        records.note::<Grace>(Grace::question(rng), &decision(id, 1), None);
    }
    records.note::<Settle>(Settle::question(rng), &decision(4, pointwork_policy::settle::Verdict::Accept), None);
    let ids = |slot, limit| records.latest(slot, limit).iter().map(|record| record.decision).collect::<Vec<_>>();
    assert_eq!(ids(None, 100), [1, 3, 4, 5]);
    assert_eq!(ids(None, 2), [4, 5]);
    assert_eq!(ids(Some(SlotName::Grace), 100), [3, 5]);
    assert_eq!(ids(Some(SlotName::Presence), 100), [0; 0]);
}

#[test]
fn reads_generated_records_of_every_slot_back_from_their_lines() {
    fn assert_same<S: Recorded + Generated>(verdict: impl Fn(&mut Rng, &S::Question) -> S::Verdict) {
        let records = started(&RecordsConfig::default());
        for seed in 0..2_000 {
            let rng = &mut Rng::with_seed(seed);
            let question = S::question(rng);
            let verdict = verdict(rng, &question);
            assert_eq!(S::check(&question, &verdict), Ok(()));
            let made = Decision { cost: Duration::from_nanos(rng.u64(..10_000_000)), ..decision(seed, verdict) };
            records.note::<S>(question, &made, rng.bool().then(|| "arm".into()));
            let record = records.latest(Some(S::NAME), 1).remove(0);
            assert_eq!(DecisionRecord::from_line(&record.to_line()).as_ref(), Ok(&*record), "seed {seed}");
        }
    }
    use pointwork_policy::{presence, settle, target};
    let span = |rng: &mut Rng| rng.u32(..=3_600_000);
    assert_same::<Target>(|rng, question| match rng.u32(..=question.candidates.len() as u32) {
        0 => target::Choice::Reject,
        index => target::Choice::Pick(index - 1),
    });
    assert_same::<Grace>(|rng, _| span(rng));
    assert_same::<Presence>(|rng, _| {
        let span_ms = span(rng);
        if rng.bool() { presence::Verdict::Abort } else { presence::Verdict::Hold(span_ms) }
    });
    assert_same::<Settle>(|rng, _| {
        let span_ms = span(rng);
        let verdicts = [settle::Verdict::Accept, settle::Verdict::Refuse(span_ms), settle::Verdict::Beside(span_ms)];
        verdicts[rng.usize(..3)]
    });
}

#[tokio::test]
async fn writes_the_same_share_of_the_decisions_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let written = async |name: &str, share: f64| {
        let path = folder.path().join(name);
        let sample = Share::new(share).unwrap();
        let records = started(&RecordsConfig { file: Some(path.clone()), sample, ..RecordsConfig::default() });
        for id in 0..1_000 {
            records.note::<Grace>(grace_question("m"), &decision(id, 1), None);
        }
        records.close().await;
        let text = std::fs::read(path).unwrap();
        self::records(text.as_slice()).map(|record| record.unwrap().1.decision).collect::<Vec<_>>()
    };
    assert_eq!(written("all", 1.0).await, (0..1_000).collect::<Vec<_>>());
    assert!(written("none", 0.0).await.is_empty());
    let tenth = written("tenth", 0.1).await;
    assert!((70..=130).contains(&tenth.len()), "{}", tenth.len());
    assert_eq!(written("again", 0.1).await, tenth);
    let half = written("half", 0.5).await;
    assert!(tenth.iter().all(|id| half.contains(id)), "a larger share holds a smaller one");
}

#[tokio::test]
async fn a_slow_writer_loses_records_and_delays_no_decision() {
    let (sink, mut messages) = Sink::new("file");
    let record = Arc::new(grace_record(1, "m"));
    // Nobody reads: each offer comes back at once all the same.
    for _ in 0..5_000 {
        sink.offer(&record);
    }
    let mut batch = Vec::new();
    assert_eq!(messages.recv_many(&mut batch, 10_000).await, 4_096);
}

#[tokio::test]
async fn a_stream_needs_redis_and_a_file_needs_its_folder() {
    let refused = |settings: RecordsConfig| Records::start(&settings, "r", None).err().unwrap().to_string();
    let stream = RecordsConfig { stream: true, ..RecordsConfig::default() };
    assert!(refused(stream).contains("redis.url"));
    let file = RecordsConfig { file: Some("/no/such/folder/r".into()), ..RecordsConfig::default() };
    assert!(refused(file).contains("policy.records.file: /no/such/folder/r"));
}
