//! The simulation finds each mistake that the call machine is made to make, by the invariant that it breaks.

use super::flawed_machine::Flaw;
use crate::calls::schedule::{STEPS, Schedule};
use crate::calls::world::CallWorld;

/// In so many schedules each mistake is found.
const SCHEDULES: u64 = 10_000;

impl CallWorld<'_> {
    /// Has all machines make a mistake.
    pub(crate) fn set_flaw(&mut self, flaw: Option<Flaw>) {
        self.flaw = flaw;
        self.replicas.iter_mut().for_each(|replica| replica.machine.flaw = flaw);
    }
}

/// The invariant that a mistake breaks in the first schedule that finds it.
fn broken_by(flaw: Flaw) -> &'static str {
    let run = |seed| Schedule { flaw: Some(flaw), ..Schedule::new(seed, STEPS) }.run().broken;
    let found = (0..SCHEDULES).find_map(|seed| Some((seed, run(seed)?)));
    let (seed, violation) = found.unwrap_or_else(|| panic!("{flaw:?} is not found"));
    let sound = Schedule::new(seed, STEPS).run();
    assert_eq!(sound.broken, None, "the schedule that finds {flaw:?} breaks a sound machine, too");
    violation.invariant
}

#[test]
fn finds_a_dropped_cancel() {
    assert_eq!(broken_by(Flaw::DropCancel), "one-answer");
}

#[test]
fn finds_an_answer_on_timeout_too() {
    assert_eq!(broken_by(Flaw::AnswerOnTimeoutToo), "one-answer");
}

#[test]
fn finds_trust_in_an_absent_reply() {
    assert_eq!(broken_by(Flaw::TrustAbsentReply), "positive-evidence");
}

#[test]
fn finds_trust_in_a_silence() {
    assert_eq!(broken_by(Flaw::TrustSilence), "positive-evidence");
}

#[test]
fn finds_a_kept_timer() {
    assert_eq!(broken_by(Flaw::KeepTimer), "one-timer");
}

#[test]
fn finds_a_request_resent_on_reconnect() {
    assert_eq!(broken_by(Flaw::ResendOnReconnect), "sent-once");
}
