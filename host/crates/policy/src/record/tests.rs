#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::{Decider, DecisionRecord, Exchange, LINE_MAX_BYTES, LineError, records};
use crate::contract::{Call, Departure, Moment, grace, presence, settle, target};
use crate::guest::{Digest, FailureKind};
use serde_json::{Value, json};
use std::time::Duration;

fn at() -> Moment {
    Moment { now_ms: 1_767_225_600_000, seed: u64::MAX, key: 3 }
}

fn call() -> Call {
    Call { method: "m1:bash".into(), params_bytes: 90, waited_ms: 1, left_ms: 30_000, attempt: 0 }
}

fn record(exchange: Exchange) -> DecisionRecord {
    DecisionRecord {
        replica: "0123abcd".into(),
        decision: 7,
        at_ms: 1_767_225_600_000,
        by: Decider::Wasm,
        failure: None,
        digest: Some(Digest::of_wasm(b"a")),
        arm: Some("treatment".into()),
        cost: Duration::from_nanos(1_250),
        exchange,
    }
}

fn target_record() -> DecisionRecord {
    let candidate = target::Candidate {
        replica: 0,
        registered_ms: 5_000,
        idle_ms: 10,
        in_flight: 0,
        answer_us: 900,
        unanswered: 0,
        traits: target::Traits::LOCAL | target::Traits::CALLER,
    };
    let question = target::Question { at: at(), call: call(), candidates: vec![candidate, candidate] };
    record(Exchange::Target(question, target::Choice::Pick(1)))
}

fn grace_record() -> DecisionRecord {
    let absence = grace::Absence {
        cause: Departure::TransportLost,
        gone_ms: 20,
        departures: 2,
        returns_ms: vec![900, 1_100],
        waiting: 0,
        replica_age_ms: u32::MAX,
    };
    record(Exchange::Grace(grace::Question { at: at(), call: call(), absence }, 5_000))
}

fn presence_record(verdict: presence::Verdict) -> DecisionRecord {
    let doubt = presence::Doubt {
        cause: Departure::ReplicaSilent,
        since_ms: 1,
        sent_ms: 2,
        resumable: true,
        returned: false,
        departures: 0,
        returns_ms: Vec::new(),
    };
    record(Exchange::Presence(presence::Question { at: at(), call: call(), doubt }, verdict))
}

fn settle_record(verdict: settle::Verdict) -> DecisionRecord {
    let incumbent = settle::Incumbent {
        liveness: settle::Liveness::Alive,
        age_ms: 1,
        idle_ms: 2,
        heartbeat_ms: u32::MAX,
        local: true,
    };
    let newcomer = settle::Newcomer { paired: true, same_fingerprint: false, same_address: true, polling: false };
    let history = vec![settle::Event { ago_ms: 5, what: settle::Happening::Refreshed }];
    record(Exchange::Settle(settle::Question { at: at(), window_ms: 2_500, incumbent, newcomer, history }, verdict))
}

/// The line of a record with one value of it put elsewhere.
fn edited(record: &DecisionRecord, pointer: &str, value: Value) -> Result<DecisionRecord, LineError> {
    let mut json: Value = serde_json::from_str(&record.to_line()).unwrap();
    *json.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    DecisionRecord::from_line(&json.to_string())
}

fn refusal(record: &DecisionRecord, pointer: &str, value: Value) -> String {
    edited(record, pointer, value).unwrap_err().to_string()
}

#[test]
fn writes_a_record_with_the_names_of_the_contract() {
    let json: Value = serde_json::from_str(&target_record().to_line()).unwrap();
    let candidate = json!({"replica": 0, "registered-ms": 5000, "idle-ms": 10, "in-flight": 0, "answer-us": 900,
        "unanswered": 0, "traits": ["local", "caller"]});
    let expected = json!({
        "v": 1, "id": "0123abcd/7", "at_ms": 1_767_225_600_000_u64, "slot": "target", "by": "wasm", "failure": null,
        "digest": Digest::of_wasm(b"a").to_string(), "arm": "treatment", "cost_us": 1.25,
        "question": {
            "at": {"now-ms": 1_767_225_600_000_u64, "seed": "ffffffffffffffff", "key": "0000000000000003"},
            "call": {"method": "m1:bash", "params-bytes": 90, "waited-ms": 1, "left-ms": 30000, "attempt": 0},
            "candidates": [candidate, candidate],
        },
        "verdict": {"pick": 1},
    });
    assert_eq!(json, expected);
}

#[test]
fn writes_verdicts_and_enums_with_the_names_of_the_contract() {
    let json = |record: DecisionRecord| serde_json::from_str::<Value>(&record.to_line()).unwrap();
    assert_eq!(json(grace_record())["verdict"], 5_000);
    assert_eq!(json(grace_record())["question"]["absence"]["cause"], "transport-lost");
    assert_eq!(json(presence_record(presence::Verdict::Abort))["verdict"], "abort");
    assert_eq!(json(presence_record(presence::Verdict::Hold(3)))["verdict"], json!({"hold": 3}));
    assert_eq!(json(settle_record(settle::Verdict::Accept))["verdict"], "accept");
    assert_eq!(json(settle_record(settle::Verdict::Refuse(3)))["verdict"], json!({"refuse": 3}));
    assert_eq!(json(settle_record(settle::Verdict::Beside(3)))["verdict"], json!({"beside": 3}));
    assert_eq!(json(settle_record(settle::Verdict::Accept))["question"]["history"][0]["what"], "refreshed");
}

#[test]
fn reads_a_record_of_each_slot_as_it_was_written() {
    let native = DecisionRecord {
        by: Decider::Native,
        failure: Some(FailureKind::OutOfBounds),
        arm: None,
        cost: Duration::ZERO,
        ..grace_record()
    };
    let untouched = DecisionRecord { failure: None, digest: None, ..native.clone() };
    for record in [
        target_record(),
        grace_record(),
        presence_record(presence::Verdict::Hold(3)),
        settle_record(settle::Verdict::Refuse(2_500)),
        native,
        untouched,
    ] {
        assert_eq!(DecisionRecord::from_line(&record.to_line()), Ok(record));
    }
}

#[test]
fn rejects_missing_unknown_and_repeated_fields() {
    let whole: Value = serde_json::from_str(&grace_record().to_line()).unwrap();
    let object = |pointer: &str| whole.pointer(pointer).unwrap().as_object().unwrap().clone();
    for pointer in ["", "/question", "/question/at", "/question/call", "/question/absence"] {
        for field in object(pointer).keys() {
            let mut cut = whole.clone();
            cut.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(field);
            let error = DecisionRecord::from_line(&cut.to_string()).unwrap_err().to_string();
            assert!(error.contains(&format!("missing field `{field}`")), "{pointer}/{field}: {error}");
        }
        let mut more = whole.clone();
        more.pointer_mut(pointer).unwrap().as_object_mut().unwrap().insert("token".into(), json!("x"));
        let error = DecisionRecord::from_line(&more.to_string()).unwrap_err().to_string();
        assert!(error.contains("unknown field `token`"), "{pointer}: {error}");
    }
    let twice = grace_record().to_line().replacen("\"arm\":", "\"arm\":null,\"arm\":", 1);
    assert!(DecisionRecord::from_line(&twice).unwrap_err().to_string().contains("duplicate field `arm`"));
}

#[test]
fn rejects_impossible_values_and_names_them() {
    let (target, grace) = (target_record(), grace_record());
    let settle = settle_record(settle::Verdict::Accept);
    let candidate = serde_json::from_str::<Value>(&target.to_line()).unwrap()["question"]["candidates"][0].clone();
    for (record, pointer, value, said) in [
        (&target, "/v", json!(2), "version 2"),
        (&target, "/v", json!("1"), "expected u32"),
        (&target, "/slot", json!("sale"), "unknown variant `sale`"),
        (&target, "/slot", json!("settle"), "unknown field `call`"),
        (&target, "/id", json!("7"), "id: must be"),
        (&target, "/id", json!("/7"), "1 to 256 bytes"),
        (&target, "/id", json!("a/b"), "must be a number"),
        (&target, "/at_ms", json!(-1), "expected u64"),
        (&target, "/by", json!("hand"), "unknown variant `hand`"),
        (&target, "/failure", json!("trap"), "by wasm"),
        (&target, "/failure", json!("mood"), "unknown variant `mood`"),
        (&target, "/digest", json!("ab"), "64 lower-case hexadecimal digits"),
        (&target, "/digest", json!(null), "by wasm"),
        (&target, "/arm", json!(""), "arm: must have"),
        (&target, "/cost_us", json!(-1), "cost_us"),
        (&target, "/cost_us", json!("1"), "expected f64"),
        (&target, "/question/at/seed", json!(7), "invalid type: integer `7`, expected a string"),
        (&target, "/question/at/seed", json!("7"), "16 lower-case hexadecimal digits"),
        (&target, "/question/at/key", json!("+00000000000007f"), "16 lower-case hexadecimal digits"),
        (&target, "/question/call/method", json!("m".repeat(4_097)), "question: call.method has 4097 bytes"),
        (&target, "/question/call/left-ms", json!(4_294_967_296_u64), "expected u32"),
        (&target, "/question/candidates", json!([]), "question: candidates has 0 items, not 1 to 32"),
        (&target, "/question/candidates", json!(vec![candidate; 33]), "question: candidates has 33 items"),
        (&target, "/question/candidates/0/traits", json!(["local", "local"]), "each once"),
        (&target, "/question/candidates/0/traits", json!(["tall"]), "invalid value: string \"tall\""),
        (&target, "/question/candidates/0/traits", json!("local"), "a list of traits"),
        (&target, "/verdict", json!({"pick": 2}), "verdict: pick 2 of 2 candidates"),
        (&target, "/verdict", json!("accept"), "unknown variant `accept`"),
        (&grace, "/verdict", json!(3_600_001), "verdict: wait 3600001 ms"),
        (&grace, "/question/absence/returns-ms", json!(vec![1; 9]), "question: absence.returns-ms has 9 items"),
        (&grace, "/question/absence/cause", json!("moved"), "unknown variant `moved`"),
        (&settle, "/question/history", json!(vec![json!({"ago-ms": 1, "what": "lost"}); 17]), "history has 17 items"),
        (&settle, "/verdict", json!({"refuse": 3_600_001}), "verdict: refuse for 3600001 ms"),
    ] {
        let error = refusal(record, pointer, value.clone());
        assert!(error.contains(said), "{pointer} = {value}: {error}");
    }
    assert!(edited(&target, "/verdict", json!("reject")).is_ok());
}

#[test]
fn the_reader_names_the_line_of_an_error_and_ends_there() {
    let good = grace_record().to_line();
    let read = |text: &[u8]| records(text).collect::<Vec<_>>();
    let three = format!("{good}\n\n{good}\r\n{good}");
    let lines: Vec<u64> = read(three.as_bytes()).into_iter().map(|record| record.unwrap().0).collect();
    assert_eq!(lines, [1, 3, 4]);
    assert!(read(b"").is_empty());
    let long = "x".repeat(LINE_MAX_BYTES + 1);
    for (bad, said) in [
        (&good.as_bytes()[..good.len() - 1], "line 2: EOF while parsing an object (column"),
        (long.as_bytes(), "line 2: longer than"),
        (b"\xff\n", "line 2: not UTF-8"),
        (b"null\n", "line 2: invalid type: null"),
    ] {
        let text = [good.as_bytes(), b"\n", bad, b"\n", good.as_bytes()].concat();
        let records = read(&text);
        assert_eq!(records.len(), 2, "nothing comes after an error");
        assert!(records[0].is_ok());
        let error = records[1].as_ref().unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn the_longest_record_fits_into_a_line() {
    let mut record = target_record();
    if let Exchange::Target(question, _) = &mut record.exchange {
        question.call.method = "\u{1}".repeat(4_096);
        let candidate = target::Candidate {
            replica: u32::MAX,
            registered_ms: u32::MAX,
            idle_ms: u32::MAX,
            in_flight: u32::MAX,
            answer_us: u32::MAX,
            unanswered: u32::MAX,
            traits: target::Traits::all(),
        };
        question.candidates = vec![candidate; 32];
    }
    let line = record.to_line();
    assert!(line.len() < LINE_MAX_BYTES, "{}", line.len());
    assert_eq!(DecisionRecord::from_line(&line), Ok(record));
}
