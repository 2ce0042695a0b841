//! The simulation finds each mistake that the machines are made to make, by the invariant that it breaks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::thread::available_parallelism;

use pointwork_simulation::{Failure, Flaw, STEPS, Schedule, Sweep};

/// A flaw that so many schedules do not show is not caught.
const SCHEDULES: u64 = 10_000;

fn caught(flaw: Flaw) -> Failure {
    let threads = available_parallelism().map_or(1, usize::from);
    let swept = Sweep { seeds: 0..SCHEDULES, steps: STEPS, flaw: Some(flaw), threads }.run(|_| {});
    let failure = swept.failure.unwrap_or_else(|| panic!("{flaw:?} was not caught"));
    let sound = Schedule::new(failure.seed, STEPS).run();
    assert_eq!(sound.broken, None, "the schedule that caught {flaw:?} breaks a sound machine, too");
    failure
}

#[test]
fn finds_a_dropped_cancel() {
    assert_eq!(caught(Flaw::DropCancel).violation.invariant, "one-answer");
}

#[test]
fn finds_an_answer_on_timeout_too() {
    assert_eq!(caught(Flaw::AnswerOnTimeoutToo).violation.invariant, "one-answer");
}

#[test]
fn finds_trust_in_an_absent_reply() {
    assert_eq!(caught(Flaw::TrustAbsentReply).violation.invariant, "positive-evidence");
}

#[test]
fn finds_trust_in_a_silence() {
    assert_eq!(caught(Flaw::TrustSilence).violation.invariant, "positive-evidence");
}

#[test]
fn finds_a_kept_timer() {
    assert_eq!(caught(Flaw::KeepTimer).violation.invariant, "one-timer");
}

#[test]
fn finds_a_request_resent_on_reconnect() {
    assert_eq!(caught(Flaw::ResendOnReconnect).violation.invariant, "sent-once");
}
