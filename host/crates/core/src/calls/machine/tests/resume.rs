//! Results that a daemon hands in after its connection was lost.

use super::harness::{DAEMON, Harness, SECOND};
use super::*;

/// In flight to a daemon that may hand in, whose socket is gone, and held.
fn held_call() -> (Harness, CallId) {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.disconnect(DAEMON);
    let (ask, _, doubt) = harness.doubt();
    assert!(doubt.resumable);
    harness.judge(call, ask, Verdict::Hold(1_000));
    assert_eq!(harness.told(), []);
    (harness, call)
}

fn hand_in(harness: &mut Harness, user: &str, call: CallId) -> bool {
    harness.machine.handle_handed_in(user, call, "handed in", harness.now)
}

#[test]
fn a_result_handed_in_is_the_answer() {
    let (mut harness, call) = held_call();
    harness.pass(500);
    assert!(hand_in(&mut harness, "u", call));
    harness.answered(call, Answer::Result("handed in"));
}

#[test]
fn it_is_taken_before_the_connection_is_known_to_be_lost() {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    assert!(hand_in(&mut harness, "u", call));
    harness.answered(call, Answer::Result("handed in"));
    harness.machine.handle_result(call, "and acknowledged", harness.now);
    assert_eq!(harness.told(), []);
}

#[test]
fn it_is_taken_once() {
    let (mut harness, call) = held_call();
    assert!(hand_in(&mut harness, "u", call));
    assert!(!hand_in(&mut harness, "u", call));
    harness.answered(call, Answer::Result("handed in"));
}

#[test]
fn another_user_hands_in_nothing() {
    let (mut harness, call) = held_call();
    assert!(!hand_in(&mut harness, "v", call));
    assert!(!hand_in(&mut harness, "u", CallId(call.0 + 1)));
    assert_eq!(harness.told(), []);
}

#[test]
fn a_request_that_was_not_sent_or_not_to_one_that_may_has_no_result() {
    let mut harness = Harness::served();
    let call = harness.call();
    assert!(!hand_in(&mut harness, "u", call), "not sent");
    let mut harness = Harness::new();
    harness.machine.handle_connect(DAEMON, "u".into(), 0, Traits::default(), harness.now);
    harness.register(DAEMON);
    let call = harness.call_in_flight();
    assert!(!hand_in(&mut harness, "u", call), "it was not told the id");
    harness.machine.handle_result(call, "acknowledged", harness.now);
    harness.answered(call, Answer::Result("acknowledged"));
}

#[test]
fn the_request_is_not_sent_again_when_a_daemon_is_back() {
    let (mut harness, call) = held_call();
    harness.connect(SECOND);
    harness.register(SECOND);
    assert_eq!(harness.told(), []);
    harness.pass(1_000);
    let (ask, _, doubt) = harness.doubt();
    assert!(doubt.returned && doubt.resumable);
    harness.judge(call, ask, Verdict::Abort);
    harness.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_daemon_that_is_back_before_its_loss_is_known_is_back() {
    let mut harness = Harness::served();
    harness.call_in_flight();
    harness.connect(SECOND);
    harness.register(SECOND);
    harness.pass(20_000);
    harness.disconnect(DAEMON);
    assert!(harness.doubt().2.returned);
}

#[test]
fn a_request_that_did_not_get_there_is_not_waited_for() {
    // Known before the loss is.
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.machine.handle_undelivered(call, harness.now);
    assert_eq!(harness.told(), []);
    harness.disconnect(DAEMON);
    assert!(!harness.doubt().2.resumable);
    assert!(!hand_in(&mut harness, "u", call));
    // Known after it.
    let (mut harness, call) = held_call();
    harness.machine.handle_undelivered(call, harness.now);
    let (ask, _, doubt) = harness.doubt();
    assert!(!doubt.resumable);
    harness.machine.handle_undelivered(call, harness.now);
    assert_eq!(harness.told(), [], "it is known already");
    harness.judge(call, ask, Verdict::Abort);
    harness.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_lost_link_does_not_end_a_call_that_may_be_handed_in() {
    let (mut harness, call) = held_call();
    harness.machine.handle_unreachable(call, harness.now);
    assert_eq!(harness.told(), []);
    assert!(hand_in(&mut harness, "u", call));
    harness.answered(call, Answer::Result("handed in"));

    let mut there = Harness::served();
    let call = there.call_in_flight();
    there.machine.handle_unreachable(call, there.now);
    there.answered(call, Answer::Unreachable);
}

fn resume(harness: &mut Harness, user: &str, has: &[CallId]) {
    harness.machine.handle_resumed(user, DAEMON, SECOND, &has.iter().copied().collect(), harness.now);
}

#[test]
fn a_daemon_that_is_back_goes_on_with_what_it_has() {
    let (mut harness, call) = held_call();
    resume(&mut harness, "u", &[call]);
    assert_eq!((harness.machine.in_flight(DAEMON), harness.machine.in_flight(SECOND)), (0, 1));
    harness.connect(SECOND);
    harness.register(SECOND);
    harness.pass(20_000);
    assert_eq!(harness.told(), [], "it is asked about no more");
    assert_eq!(harness.held, [(call, 0, 30_000), (call, 0, 0)]);
    harness.disconnect(SECOND);
    let (ask, _, doubt) = harness.doubt();
    assert_eq!((doubt.since_ms, doubt.resumable, doubt.returned), (0, true, false), "a doubt of its own");
    harness.judge(call, ask, Verdict::Hold(1_000));
    assert!(hand_in(&mut harness, "u", call));
    harness.answered(call, Answer::Result("handed in"));
}

#[test]
fn what_it_does_not_have_is_not_waited_for() {
    let (mut harness, call) = held_call();
    resume(&mut harness, "u", &[]);
    let (ask, _, doubt) = harness.doubt();
    assert_eq!((doubt.cause, doubt.resumable), (Departure::TransportLost, false));
    harness.judge(call, ask, Verdict::Abort);
    harness.answered(call, Answer::TargetDisconnected);
}

#[test]
fn it_knows_of_its_lost_connection_first() {
    let mut harness = Harness::served();
    let (kept, lost) = (harness.call_in_flight(), harness.call());
    let ask = harness.asked(lost);
    harness.choose(lost, ask, 0);
    harness.told();
    resume(&mut harness, "u", &[kept]);
    let (ask, _, doubt) = harness.doubt();
    assert!(!doubt.resumable);
    harness.judge(lost, ask, Verdict::Abort);
    assert_eq!(harness.told(), [CallCommand::Answer { call: lost, answer: Answer::TargetDisconnected }]);
    // What becomes of the old connection is no news for the other one.
    harness.machine.handle_unanswerable(kept, harness.now);
    harness.machine.handle_undelivered(kept, harness.now);
    harness.machine.handle_unreachable(kept, harness.now);
    harness.disconnect(DAEMON);
    harness.pass(2_000);
    assert_eq!(harness.told(), []);
    assert!(hand_in(&mut harness, "u", kept));
    harness.answered(kept, Answer::Result("handed in"));
}

#[test]
fn a_daemon_that_resumed_a_call_need_not_register_its_method_again() {
    let (mut harness, call) = held_call();
    resume(&mut harness, "u", &[call]);
    harness.connect(SECOND);
    harness.machine.handle_register(SECOND, "other".into(), harness.now).unwrap();
    harness.machine.handle_unregister(SECOND, &"other".into(), harness.now).unwrap();
    // It is announced no more, for it has no method left.
    harness.leave(SECOND, Departure::Unregistered);
    assert_eq!(harness.told(), []);
    assert!(hand_in(&mut harness, "u", call));
    harness.answered(call, Answer::Result("handed in"));
}

#[test]
fn nothing_more_is_sent_to_the_socket_that_it_had() {
    let mut harness = Harness::served();
    harness.connect(SECOND);
    resume(&mut harness, "v", &[]);
    harness.call_in_flight();
    resume(&mut harness, "u", &[]);
    harness.told();
    harness.call();
    assert_eq!(harness.absence().1.cause, Departure::TransportLost, "nobody has the method");
    // It resumes what it is on already: nothing.
    harness.register(SECOND);
    harness.machine.handle_resumed("u", SECOND, SECOND, &BTreeSet::new(), harness.now);
    assert!(harness.machine.directory().user(SECOND).is_some());
}

#[test]
fn others_resume_nothing() {
    let (mut harness, call) = held_call();
    resume(&mut harness, "v", &[call]);
    harness.machine.handle_resumed("u", SECOND, DAEMON, &[call].into(), harness.now);
    assert_eq!((harness.told(), harness.machine.in_flight(DAEMON)), (Vec::new(), 1));
    let mut harness = Harness::new();
    harness.machine.handle_connect(DAEMON, "u".into(), 0, Traits::default(), harness.now);
    harness.register(DAEMON);
    let call = harness.call_in_flight();
    resume(&mut harness, "u", &[call]);
    let (ask, _, doubt) = harness.doubt();
    assert!(!doubt.resumable, "it was not told the id: its socket is gone, and no more");
    harness.judge(call, ask, Verdict::Abort);
    harness.answered(call, Answer::TargetDisconnected);
}

#[test]
fn nobody_hands_in_before_the_deadline() {
    let (mut harness, call) = held_call();
    while let Some(at) = harness.machine.poll_timeout().filter(|at| *at < Time::from_millis(30_000)) {
        harness.now = at;
        harness.machine.handle_timeout(at);
        let (ask, ..) = harness.doubt();
        harness.judge(call, ask, Verdict::Hold(1_000));
    }
    harness.now = Time::from_millis(30_000);
    harness.machine.handle_timeout(harness.now);
    harness.answered(call, Answer::TimedOut);
    assert!(!hand_in(&mut harness, "u", call));
}
