#![allow(clippy::unwrap_used)]

use super::super::store::tests::random::record;
use super::*;

const NOW_MS: u64 = 1_800_000_000_000;

#[test]
fn a_record_is_written_as_it_is_described() {
    let holder = Holder {
        replica: "r".into(),
        socket: SocketId(1),
        epoch: NOW_MS,
        accepted_ms: NOW_MS,
        has_proved: true,
        fingerprint: Some(255),
        address: Some(255),
    };
    let record = DeviceRecord {
        epoch: NOW_MS,
        holder: Some(holder),
        events: vec![Happened { at_ms: NOW_MS, what: Happening::Accepted }],
        status: DeviceStatus::Online,
        is_paired: true,
        owner: Some("o".into()),
        last_seen_ms: NOW_MS,
        ..DeviceRecord::default()
    };
    let described: serde_json::Value = serde_json::from_str(
        r#"{"v":1,"epoch":1800000000000,"status":"online","flips":0,"refusals":0,"seen_ms":1800000000000,"paired":true,"owner":"o",
            "holder":{"replica":"r","socket":"00000000000000000000000000000001","epoch":1800000000000,"since_ms":1800000000000,
                      "proved":true,"fingerprint":"00000000000000ff","address":"00000000000000ff"},
            "events":[[1800000000000,"accepted"]]}"#,
    )
    .unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&write(&record)).unwrap(), described);
}

#[test]
fn the_rest_has_names_too() {
    let ended = |how| DeviceRecord {
        ended: Some(Ended { how, at_ms: 5, replica: "r".into() }),
        pairing_code: Some("c".into()),
        is_blocked: true,
        ..DeviceRecord::default()
    };
    let text = write(&ended(Departure::TransportLost));
    assert!(text.contains(r#""ended":{"how":"transport_lost","at_ms":5,"replica":"r"}"#), "{text}");
    assert!(text.contains(r#""code":"c""#) && text.contains(r#""blocked":true"#), "{text}");
    assert!(text.contains(r#""status":"offline""#), "{text}");
}

#[test]
fn a_trial_has_names_that_stay() {
    let exposure = pointwork_core::experiments::Exposure {
        experiment: "e:s".into(),
        arm: "treatment".into(),
        is_control: false,
        weights: vec![9_500, 500],
        horizon_ms: 600_000,
        window_ms: 2_500,
        silence_ms: 25_000,
        is_failed: true,
    };
    let text = write(&DeviceRecord { epoch: 1, ..DeviceRecord::default() }.exposed(&exposure, 7).refused(7));
    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
    let described: serde_json::Value = serde_json::from_str(
        r#"{"experiment":"e:s","arm":"treatment","weights":[9500,500],"exposed_ms":7,"horizon_ms":600000,"window_ms":2500,
            "silence_ms":25000,"decisions":1,"failures":1,"flips":0,"refused":1,"stranded_ms":0,"offline_ms":0,
            "offline_since_ms":7,"refused_since_ms":7,"burst_ms":7}"#,
    )
    .unwrap();
    assert_eq!(written["trial"], described);
}

#[test]
fn a_record_without_a_trial_is_what_older_versions_write() {
    let mut random = fastrand::Rng::with_seed(8);
    let record = DeviceRecord { trial: None, ..record(&mut random) };
    assert!(!write(&record).contains("trial"));
    assert_eq!(read(write(&record).as_bytes()).unwrap().trial, None);
}

#[test]
fn random_records_are_read_as_they_were_written() {
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..2_000 {
        let record = record(&mut random);
        assert_eq!(read(write(&record).as_bytes()).unwrap(), record);
    }
}

#[test]
fn what_a_later_version_adds_is_not_read() {
    let mut random = fastrand::Rng::with_seed(6);
    let record = record(&mut random);
    let text = write(&record).replacen('{', r#"{"later":[1],"#, 1);
    assert_eq!(read(text.as_bytes()).unwrap(), record);
}

#[test]
fn what_is_no_record_is_malformed() {
    let good = write(&DeviceRecord::default());
    let holder = r#","holder":{"replica":"r","socket":"x","epoch":1,"since_ms":1},"events""#;
    for text in [
        String::new(),
        "null".to_owned(),
        "{}".to_owned(),
        good[..good.len() - 1].to_owned(),
        good.replace(r#""epoch":0,"#, ""),
        good.replace(r#""epoch":0"#, r#""epoch":-1"#),
        good.replace("offline", "asleep"),
        good.replace(r#","events""#, holder),
        good.replace(r#""events":[]"#, r#""events":[[1]]"#),
    ] {
        assert!(read(text.as_bytes()).is_err(), "{text}");
    }
    assert!(matches!(read(b"\xff"), Err(Malformed::Json(_))));
    assert!(matches!(read(good.replace(r#""v":1"#, r#""v":2"#).as_bytes()), Err(Malformed::Version(2))));
    assert!(matches!(read(good.replace(r#","events""#, holder).as_bytes()), Err(Malformed::Hex(_))));
}

#[test]
fn a_history_is_cut_to_what_a_record_holds() {
    let events: Vec<_> = (0..40).map(|at_ms| Happened { at_ms, what: Happening::Refused }).collect();
    let read = read(write(&DeviceRecord { events: events.clone(), ..DeviceRecord::default() }).as_bytes()).unwrap();
    assert_eq!(read.events, events[..HISTORY_MAX]);
}
