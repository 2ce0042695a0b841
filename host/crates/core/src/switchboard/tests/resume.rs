//! Results that a daemon hands in after its connection was lost.

use super::line::{DAEMON, Line, SECOND};
use super::*;

/// In flight to a daemon that may hand in, whose socket is gone, and held.
fn held_call() -> (Line, CallId) {
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.disconnect(DAEMON);
    let (ask, _, doubt) = line.doubt();
    assert!(doubt.resumable);
    line.judge(call, ask, Verdict::Hold(1_000));
    assert_eq!(line.told(), []);
    (line, call)
}

fn hand_in(line: &mut Line, user: &str, call: CallId) -> bool {
    line.board.handle_handed_in(user, call, "handed in", line.now)
}

#[test]
fn a_result_handed_in_is_the_answer() {
    let (mut line, call) = held_call();
    line.pass(500);
    assert!(hand_in(&mut line, "u", call));
    line.answered(call, Answer::Result("handed in"));
}

#[test]
fn it_is_taken_before_the_connection_is_known_to_be_lost() {
    let mut line = Line::served();
    let call = line.call_in_flight();
    assert!(hand_in(&mut line, "u", call));
    line.answered(call, Answer::Result("handed in"));
    line.board.handle_result(call, "and acknowledged", line.now);
    assert_eq!(line.told(), []);
}

#[test]
fn it_is_taken_once() {
    let (mut line, call) = held_call();
    assert!(hand_in(&mut line, "u", call));
    assert!(!hand_in(&mut line, "u", call));
    line.answered(call, Answer::Result("handed in"));
}

#[test]
fn another_user_hands_in_nothing() {
    let (mut line, call) = held_call();
    assert!(!hand_in(&mut line, "v", call));
    assert!(!hand_in(&mut line, "u", CallId(call.0 + 1)));
    assert_eq!(line.told(), []);
}

#[test]
fn a_request_that_was_not_sent_or_not_to_one_that_may_has_no_result() {
    let mut line = Line::served();
    let call = line.call();
    assert!(!hand_in(&mut line, "u", call), "not sent");
    let mut line = Line::new();
    line.board.handle_connect(DAEMON, "u".into(), 0, Traits::default(), line.now);
    line.register(DAEMON);
    let call = line.call_in_flight();
    assert!(!hand_in(&mut line, "u", call), "it was not told the id");
    line.board.handle_result(call, "acknowledged", line.now);
    line.answered(call, Answer::Result("acknowledged"));
}

#[test]
fn the_request_is_not_sent_again_when_a_daemon_is_back() {
    let (mut line, call) = held_call();
    line.connect(SECOND);
    line.register(SECOND);
    assert_eq!(line.told(), []);
    line.pass(1_000);
    let (ask, _, doubt) = line.doubt();
    assert!(doubt.returned && doubt.resumable);
    line.judge(call, ask, Verdict::Abort);
    line.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_daemon_that_is_back_before_its_loss_is_known_is_back() {
    let mut line = Line::served();
    line.call_in_flight();
    line.connect(SECOND);
    line.register(SECOND);
    line.pass(20_000);
    line.disconnect(DAEMON);
    assert!(line.doubt().2.returned);
}

#[test]
fn a_request_that_did_not_get_there_is_not_waited_for() {
    // Known before the loss is.
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.board.handle_undelivered(call, line.now);
    assert_eq!(line.told(), []);
    line.disconnect(DAEMON);
    assert!(!line.doubt().2.resumable);
    assert!(!hand_in(&mut line, "u", call));
    // Known after it.
    let (mut line, call) = held_call();
    line.board.handle_undelivered(call, line.now);
    let (ask, _, doubt) = line.doubt();
    assert!(!doubt.resumable);
    line.board.handle_undelivered(call, line.now);
    assert_eq!(line.told(), [], "it is known already");
    line.judge(call, ask, Verdict::Abort);
    line.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_lost_link_does_not_end_a_call_that_may_be_handed_in() {
    let (mut line, call) = held_call();
    line.board.handle_unreachable(call, line.now);
    assert_eq!(line.told(), []);
    assert!(hand_in(&mut line, "u", call));
    line.answered(call, Answer::Result("handed in"));

    let mut there = Line::served();
    let call = there.call_in_flight();
    there.board.handle_unreachable(call, there.now);
    there.answered(call, Answer::Unreachable);
}

fn resume(line: &mut Line, user: &str, has: &[CallId]) {
    line.board.handle_resumed(user, DAEMON, SECOND, &has.iter().copied().collect(), line.now);
}

#[test]
fn a_daemon_that_is_back_goes_on_with_what_it_has() {
    let (mut line, call) = held_call();
    resume(&mut line, "u", &[call]);
    assert_eq!((line.board.in_flight(DAEMON), line.board.in_flight(SECOND)), (0, 1));
    line.connect(SECOND);
    line.register(SECOND);
    line.pass(20_000);
    assert_eq!(line.told(), [], "it is asked about no more");
    assert_eq!(line.held, [(call, 0, 30_000), (call, 0, 0)]);
    line.disconnect(SECOND);
    let (ask, _, doubt) = line.doubt();
    assert_eq!((doubt.since_ms, doubt.resumable, doubt.returned), (0, true, false), "a doubt of its own");
    line.judge(call, ask, Verdict::Hold(1_000));
    assert!(hand_in(&mut line, "u", call));
    line.answered(call, Answer::Result("handed in"));
}

#[test]
fn what_it_does_not_have_is_not_waited_for() {
    let (mut line, call) = held_call();
    resume(&mut line, "u", &[]);
    let (ask, _, doubt) = line.doubt();
    assert_eq!((doubt.cause, doubt.resumable), (Departure::TransportLost, false));
    line.judge(call, ask, Verdict::Abort);
    line.answered(call, Answer::TargetDisconnected);
}

#[test]
fn it_knows_of_its_lost_connection_first() {
    let mut line = Line::served();
    let (kept, lost) = (line.call_in_flight(), line.call());
    let ask = line.asked(lost);
    line.choose(lost, ask, 0);
    line.told();
    resume(&mut line, "u", &[kept]);
    let (ask, _, doubt) = line.doubt();
    assert!(!doubt.resumable);
    line.judge(lost, ask, Verdict::Abort);
    assert_eq!(line.told(), [Command::Answer { call: lost, answer: Answer::TargetDisconnected }]);
    // What becomes of the old connection is no news for the other one.
    line.board.handle_unanswerable(kept, line.now);
    line.board.handle_undelivered(kept, line.now);
    line.board.handle_unreachable(kept, line.now);
    line.disconnect(DAEMON);
    line.pass(2_000);
    assert_eq!(line.told(), []);
    assert!(hand_in(&mut line, "u", kept));
    line.answered(kept, Answer::Result("handed in"));
}

#[test]
fn a_daemon_that_resumed_a_call_need_not_register_its_method_again() {
    let (mut line, call) = held_call();
    resume(&mut line, "u", &[call]);
    line.connect(SECOND);
    line.board.handle_register(SECOND, "other".into(), line.now).unwrap();
    line.board.handle_unregister(SECOND, &"other".into(), line.now).unwrap();
    // It is announced no more, for it has no method left.
    line.leave(SECOND, Departure::Unregistered);
    assert_eq!(line.told(), []);
    assert!(hand_in(&mut line, "u", call));
    line.answered(call, Answer::Result("handed in"));
}

#[test]
fn nothing_more_is_sent_to_the_socket_that_it_had() {
    let mut line = Line::served();
    line.connect(SECOND);
    resume(&mut line, "v", &[]);
    line.call_in_flight();
    resume(&mut line, "u", &[]);
    line.told();
    line.call();
    assert_eq!(line.absence().1.cause, Departure::TransportLost, "nobody has the method");
    // It resumes what it is on already: nothing.
    line.register(SECOND);
    line.board.handle_resumed("u", SECOND, SECOND, &BTreeSet::new(), line.now);
    assert!(line.board.directory().user(SECOND).is_some());
}

#[test]
fn others_resume_nothing() {
    let (mut line, call) = held_call();
    resume(&mut line, "v", &[call]);
    line.board.handle_resumed("u", SECOND, DAEMON, &[call].into(), line.now);
    assert_eq!((line.told(), line.board.in_flight(DAEMON)), (Vec::new(), 1));
    let mut line = Line::new();
    line.board.handle_connect(DAEMON, "u".into(), 0, Traits::default(), line.now);
    line.register(DAEMON);
    let call = line.call_in_flight();
    resume(&mut line, "u", &[call]);
    let (ask, _, doubt) = line.doubt();
    assert!(!doubt.resumable, "it was not told the id: its socket is gone, and no more");
    line.judge(call, ask, Verdict::Abort);
    line.answered(call, Answer::TargetDisconnected);
}

#[test]
fn nobody_hands_in_before_the_deadline() {
    let (mut line, call) = held_call();
    while let Some(at) = line.board.poll_timeout().filter(|at| *at < Time::from_millis(30_000)) {
        line.now = at;
        line.board.handle_timeout(at);
        let (ask, ..) = line.doubt();
        line.judge(call, ask, Verdict::Hold(1_000));
    }
    line.now = Time::from_millis(30_000);
    line.board.handle_timeout(line.now);
    line.answered(call, Answer::TimedOut);
    assert!(!hand_in(&mut line, "u", call));
}
