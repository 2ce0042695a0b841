//! What a guest prints is in the log with its slot and digest, and nothing else happens. The guest is called from a
//! worker of the runtime: writing to a stream must not block there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use pointwork::{
    config::{PolicyConfig, RpcConfig},
    policies::slots::Policies,
};
use pointwork_core::decisions::Choice;
use pointwork_policy::SlotName;
use pointwork_tests::{built, questions};
use serde_json::{Value, json};

/// The log, line by line as JSON.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn lines_of(&self, digest: &str) -> Vec<Value> {
        let bytes = self.0.lock().unwrap();
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        lines.filter(|line| line["digest"].as_str().is_some_and(|logged| digest.starts_with(logged))).collect()
    }
}

fn choose_on_a_worker(policies: &Arc<Policies>) -> Choice {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let policies = policies.clone();
    let decide = async move {
        let rng = &mut fastrand::Rng::with_seed(7);
        let call = questions::call(rng);
        policies.choose(1, &call, &questions::candidates(rng, 3))
    };
    runtime.block_on(async { tokio::spawn(decide).await.expect("the host's task lives") })
}

#[test]
fn a_guest_that_prints_and_one_that_panics() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone()).init();
    let policies = Arc::new(Policies::new(&PolicyConfig::default(), &RpcConfig::default()).unwrap());
    let hostile = built::guest("hostile").unwrap();
    let status = || serde_json::to_value(&policies.status()[0]).unwrap();

    policies.load(SlotName::Target, &hostile, &json!({ "mode": "print" }).to_string());
    assert_eq!(choose_on_a_worker(&policies), Choice::Pick(0));
    let printed = status();
    assert_eq!((&printed["calls"], &printed["native"]), (&json!(1), &json!(0)), "it printed and answered: {printed}");
    let lines = log.lines_of(printed["digest"].as_str().unwrap());
    let of_level = |level: &str| lines.iter().filter(|line| line["slot"] == "target" && line["level"] == level).count();
    assert!(of_level("INFO") > 0 && of_level("WARN") > 0, "stdout and stderr are told apart: {lines:?}");

    policies.load(SlotName::Target, &hostile, &json!({ "mode": "panic" }).to_string());
    assert_eq!(choose_on_a_worker(&policies), Choice::Pick(0));
    let panicked = status();
    assert_eq!(panicked["failures"], json!({ "trap": 1 }), "{panicked}");
    let lines = log.lines_of(panicked["digest"].as_str().unwrap());
    assert!(lines.iter().any(|line| line.to_string().contains("panicked at")), "{lines:?}");
    assert_eq!(choose_on_a_worker(&policies), Choice::Pick(0), "the next call is answered too");
}
