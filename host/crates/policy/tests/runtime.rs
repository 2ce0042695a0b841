//! Guests that print while an async worker calls them, where a blocking stream would panic the host's task.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod guest;

use guest::{Guest, pick, questions};
use pointwork_policy::target::Choice;
use pointwork_policy::{By, Decision, Engine, FailureKind, Policy, SlotLimits, Target};
use std::io::Write;
use std::sync::{Arc, Mutex};
use tracing_subscriber::fmt::MakeWriter;

/// Loads and decides inside a worker. Returns the decision, the last failure's message and the log.
fn decide_in_worker(guest: Guest) -> (Decision<Choice>, Option<String>, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let task = runtime.spawn(async move {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
        let policy = Policy::<Target>::new(&Engine::new().unwrap(), SlotLimits::default());
        let decision = tracing::subscriber::with_default(subscriber, || {
            policy.load(&guest.wasm(), "{}").unwrap();
            policy.decide(&questions::target(2), || Choice::Reject)
        });
        let failure = policy.status().last_failure.map(|failure| failure.message);
        (decision, failure, log.text())
    });
    runtime.block_on(task).expect("the task must not panic")
}

#[test]
fn logs_what_a_guest_prints_with_slot_digest_and_decision() {
    let (decision, _, log) =
        decide_in_worker(Guest::target(format!("call $say {}", pick("i32.const 1"))).says("weighed two"));
    assert_eq!((decision.verdict, decision.by), (Choice::Pick(1), By::Wasm { generation: 1 }));
    let line = log.lines().find(|line| line.contains("weighed two")).expect("logged");
    let digest = decision.digest.expect("a policy decided").short();
    for part in [
        "WARN pointwork::policy",
        "slot=\"target\"",
        &format!("digest=\"{digest}\""),
        &format!("decision={}", decision.id),
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[test]
fn reports_the_message_of_a_panic() {
    let (decision, failure, log) =
        decide_in_worker(Guest::target("call $say unreachable").says("panicked: no such field"));
    assert_eq!((decision.verdict, decision.by), (Choice::Reject, By::Native { reason: Some(FailureKind::Trap) }));
    assert!(failure.expect("kept").contains("panicked: no such field"));
    assert!(log.contains("panicked: no such field"), "{log}");
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
