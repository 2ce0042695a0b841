//! Every branch of the call machine, one at a time. Random orders of events are in the crate's `tests/`.
#![allow(clippy::unwrap_used, clippy::panic)]

mod cluster;
mod held;
mod line;
mod resume;
mod tree;

use std::time::Duration;

use self::line::{CALLER, DAEMON, Line, SECOND, Told};
use super::*;
use crate::call::{Answer, AskId, CallRefused};
use crate::decision::{Choice, Departure, Traits, Verdict};

fn emitted(call: CallId, target: SocketId, left_ms: u64) -> Told {
    Command::Emit { call, target, left: Duration::from_millis(left_ms), resumable: true }
}

#[test]
fn a_call_reaches_its_daemon_and_comes_back() {
    let mut line = Line::served();
    line.pass(5);
    let call = line.call();
    line.pass(2);
    let (ask, input, candidates) = line.candidates();
    assert_eq!((&*input.method, input.params_bytes, input.attempt), ("m", 3, 0));
    assert_eq!((input.waited_ms, input.left_ms), (0, 30_000));
    assert_eq!((candidates.len(), candidates[0].registered_ms, candidates[0].in_flight), (1, 5, 0));
    assert!(candidates[0].traits.resumable && !candidates[0].traits.caller);
    line.choose(call, ask, 0);
    assert_eq!(line.told(), [emitted(call, DAEMON, 30_000)]);
    assert_eq!(line.board.in_flight(DAEMON), 1);
    line.pass(7);
    line.board.handle_result(call, "done", line.now);
    line.answered(call, Answer::Result("done"));
    line.call();
    let (_, _, candidates) = line.candidates();
    assert_eq!((candidates[0].in_flight, candidates[0].answer_us, candidates[0].idle_ms), (0, 7_000, 0));
}

#[test]
fn a_second_result_and_late_verdicts_change_nothing() {
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.board.handle_result(call, "once", line.now);
    line.answered(call, Answer::Result("once"));
    line.board.handle_result(call, "twice", line.now);
    line.board.handle_unanswerable(call, line.now);
    line.choose(call, AskId(1), 0);
    line.wait(call, AskId(1), 0);
    line.judge(call, AskId(1), Verdict::Abort);
    assert_eq!(line.told(), []);
}

#[test]
fn an_answer_that_cannot_be_passed_on_ends_the_call_at_once() {
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.pass(7);
    line.board.handle_unusable(call, line.now);
    line.answered(call, Answer::Unusable);
    line.call();
    let (_, _, candidates) = line.candidates();
    assert_eq!((candidates[0].answer_us, candidates[0].unanswered), (7_000, 0), "the daemon did answer");
}

#[test]
fn a_result_before_the_request_was_sent_is_no_result() {
    let mut line = Line::served();
    let call = line.call();
    line.told();
    line.board.handle_result(call, "invented", line.now);
    line.board.handle_unanswerable(call, line.now);
    assert_eq!(line.told(), []);
}

#[test]
fn a_reject_is_unavailable() {
    let mut line = Line::served();
    let call = line.call();
    let ask = line.asked(call);
    line.board.handle_choice(call, ask, Choice::Reject, line.now);
    line.answered(call, Answer::Unavailable);
}

#[test]
fn a_caller_does_not_call_itself() {
    let mut line = Line::new();
    line.register(CALLER);
    let call = line.call();
    let (ask, _, candidates) = line.candidates();
    assert!(candidates[0].traits.caller);
    line.choose(call, ask, 0);
    line.answered(call, Answer::SameSocket);
}

#[test]
fn nobody_there_and_no_grace() {
    let mut line = Line::new();
    line.pass(40);
    let call = line.call();
    let (input, absence) = line.absence();
    assert_eq!((input.attempt, input.left_ms), (0, 30_000));
    assert_eq!((absence.cause, absence.gone_ms, absence.departures), (Departure::NeverSeen, u32::MAX, 0));
    assert_eq!((absence.waiting, absence.replica_age_ms), (0, 40));
    line.wait(call, AskId(1), 0);
    line.answered(call, Answer::Unavailable);
}

#[test]
fn a_wait_ends() {
    let mut line = Line::new();
    let call = line.call();
    let ask = line.asked(call);
    line.wait(call, ask, 10_000);
    assert_eq!(line.board.poll_timeout(), Some(Time::from_millis(10_000)));
    line.pass(9_999);
    assert_eq!(line.told(), []);
    line.pass(1);
    line.answered(call, Answer::Unavailable);
}

#[test]
fn a_wait_is_cut_to_the_deadline() {
    let mut line = Line::new();
    let call = line.call();
    let ask = line.asked(call);
    line.wait(call, ask, u32::MAX);
    assert_eq!(line.board.poll_timeout(), Some(Time::from_millis(30_000)));
    line.pass(30_000);
    line.answered(call, Answer::Unavailable);
}

#[test]
fn a_registration_lets_waiting_calls_go_oldest_first() {
    let mut line = Line::new();
    let (first, second, third) = (line.call(), line.call(), line.call());
    let asks: Vec<AskId> = line.told().iter().map(|_| AskId(1)).collect();
    // The second is held, the others are still being asked about.
    line.wait(second, asks[1], 5_000);
    line.connect(DAEMON);
    line.pass(100);
    line.register(DAEMON);
    let told = line.told();
    let calls: Vec<CallId> = told
        .iter()
        .map(|command| match command {
            Command::AskTarget { call, .. } => *call,
            other => panic!("AskTarget expected: {other:?}"),
        })
        .collect();
    assert_eq!(calls, [first, second, third]);
    assert_eq!(line.board.load().waiting, 0);
    // The verdict on the absence that is over is stale, and the wait is over.
    line.wait(first, asks[0], 0);
    line.pass(10_000);
    assert_eq!(line.told(), []);
    line.choose(second, AskId(2), 0);
    // The daemon has its whole time, however long the call had waited for it.
    assert_eq!(line.told(), [emitted(second, DAEMON, 30_000)]);
}

#[test]
fn calls_that_wait_are_counted_for_the_next() {
    let mut line = Line::new();
    line.call();
    line.told();
    line.call();
    assert_eq!(line.absence().1.waiting, 1);
}

#[test]
fn a_pick_that_left_is_asked_about_again() {
    let mut line = Line::served();
    line.connect(SECOND);
    line.register(SECOND);
    let call = line.call();
    let (ask, ..) = line.candidates();
    line.unregister(DAEMON);
    line.choose(call, ask, 0);
    let (again, input, candidates) = line.candidates();
    assert_eq!((input.attempt, candidates.len()), (1, 1));
    // The old answer once more: dropped.
    line.choose(call, ask, 0);
    assert_eq!(line.told(), []);
    line.choose(call, again, 0);
    assert_eq!(line.told(), [emitted(call, SECOND, 30_000)]);
}

#[test]
fn a_pick_that_left_with_nobody_else_there_is_an_absence() {
    let mut line = Line::served();
    let call = line.call();
    let ask = line.asked(call);
    line.disconnect(DAEMON);
    line.pass(3);
    line.choose(call, ask, 0);
    let (input, absence) = line.absence();
    assert_eq!((absence.cause, absence.gone_ms, absence.departures), (Departure::TransportLost, 3, 1));
    assert_eq!((input.attempt, input.waited_ms), (0, 3));
}

#[test]
fn after_three_stale_picks_the_native_rule_picks() {
    let mut line = Line::served();
    let call = line.call();
    for attempt in 0..3 {
        let (ask, input, _) = line.candidates();
        assert_eq!(input.attempt, attempt);
        line.choose(call, ask, 77);
    }
    assert_eq!(line.told(), [emitted(call, DAEMON, 30_000)]);
}

#[test]
fn asks_in_a_row_begin_anew_after_an_absence() {
    let mut line = Line::served();
    let call = line.call();
    for _ in 0..2 {
        let (ask, ..) = line.candidates();
        line.choose(call, ask, 77);
    }
    let (ask, ..) = line.candidates();
    line.unregister(DAEMON);
    line.choose(call, ask, 0);
    line.asked(call);
    line.register(DAEMON);
    let (ask, input, _) = line.candidates();
    assert_eq!(input.attempt, 3);
    line.choose(call, ask, 77);
    line.asked(call);
}

#[test]
fn a_target_that_disconnects_is_judged() {
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.pass(50);
    line.disconnect(DAEMON);
    line.pass(1);
    let (ask, input, doubt) = line.doubt();
    assert_eq!((input.attempt, input.waited_ms), (0, 50));
    assert_eq!((doubt.cause, doubt.since_ms, doubt.sent_ms), (Departure::TransportLost, 0, 50));
    assert_eq!((doubt.resumable, doubt.returned, doubt.departures), (true, false, 1));
    line.judge(call, ask, Verdict::Abort);
    line.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_held_doubt_is_asked_about_again() {
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.disconnect(DAEMON);
    let (ask, ..) = line.doubt();
    // No more often than every 10 ms.
    line.judge(call, ask, Verdict::Hold(0));
    line.judge(call, ask, Verdict::Abort);
    line.connect(SECOND);
    line.register(SECOND);
    line.pass(9);
    assert_eq!(line.told(), []);
    line.pass(1);
    let (ask, input, doubt) = line.doubt();
    assert_eq!((input.attempt, doubt.since_ms, doubt.returned), (1, 10, true));
    line.judge(call, ask, Verdict::Hold(1_000));
    line.pass(1_000);
    let (_, input, doubt) = line.doubt();
    assert_eq!((input.attempt, doubt.since_ms), (2, 1_010));
    line.board.handle_result(call, "by another way", line.now);
    line.answered(call, Answer::Result("by another way"));
}

#[test]
fn a_daemon_that_was_there_all_along_did_not_return() {
    let mut line = Line::served();
    line.connect(SECOND);
    line.register(SECOND);
    let call = line.call();
    let (ask, ..) = line.candidates();
    line.choose(call, ask, 0);
    line.told();
    line.disconnect(DAEMON);
    assert!(!line.doubt().2.returned);
}

#[test]
fn a_target_that_takes_the_method_back_is_judged_and_may_come_back() {
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.board.handle_register(DAEMON, "other".into(), line.now).unwrap();
    line.board.handle_unregister(DAEMON, &"other".into(), line.now).unwrap();
    assert_eq!(line.told(), []);
    line.unregister(DAEMON);
    let (ask, _, doubt) = line.doubt();
    assert_eq!(doubt.cause, Departure::Unregistered);
    line.register(DAEMON);
    line.judge(call, ask, Verdict::Abort);
    line.pass(29_000);
    assert_eq!(line.told(), []);
    line.board.handle_result(call, "still here", line.now);
    line.answered(call, Answer::Result("still here"));
}

#[test]
fn a_doubt_gets_worse() {
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.unregister(DAEMON);
    let (stale, ..) = line.doubt();
    line.pass(5);
    line.board.handle_disconnect(DAEMON, Departure::Evicted, line.now);
    let (ask, input, doubt) = line.doubt();
    assert_eq!((doubt.cause, doubt.since_ms, input.attempt), (Departure::Evicted, 5, 1));
    line.judge(call, stale, Verdict::Abort);
    assert_eq!(line.told(), []);
    // The same socket id again does not undo a lost connection.
    line.connect(DAEMON);
    line.register(DAEMON);
    line.judge(call, ask, Verdict::Abort);
    line.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_deadline_ends_a_call_wherever_it_is() {
    let timed_out = |line: &mut Line, call| {
        line.pass(30_000);
        line.answered(call, Answer::TimedOut);
    };
    let mut choosing = Line::served();
    let call = choosing.call();
    choosing.told();
    timed_out(&mut choosing, call);

    let mut asking_grace = Line::new();
    let call = asking_grace.call();
    asking_grace.told();
    timed_out(&mut asking_grace, call);

    let mut in_doubt = Line::served();
    let call = in_doubt.call_in_flight();
    in_doubt.disconnect(DAEMON);
    let (ask, ..) = in_doubt.doubt();
    in_doubt.judge(call, ask, Verdict::Hold(u32::MAX));
    timed_out(&mut in_doubt, call);

    let mut in_flight = Line::served();
    let call = in_flight.call_in_flight();
    timed_out(&mut in_flight, call);
    in_flight.call();
    assert_eq!(in_flight.candidates().2[0].unanswered, 1);
}

#[test]
fn what_comes_late_finds_the_call_ended() {
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.now = Time::from_millis(30_000);
    line.board.handle_result(call, "too late", line.now);
    line.answered(call, Answer::TimedOut);
}

#[test]
fn a_moment_before_an_earlier_one_counts_as_that_one() {
    let mut line = Line::served();
    line.pass(1_000);
    line.now = Time::from_millis(400);
    line.call();
    assert_eq!(line.board.poll_timeout(), Some(Time::from_millis(31_000)));
}

#[test]
fn an_unanswerable_call_waits_for_the_reason() {
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.board.handle_unanswerable(call, line.now);
    line.board.handle_unanswerable(call, line.now);
    line.pass(999);
    assert_eq!(line.told(), []);
    line.disconnect(DAEMON);
    let (ask, ..) = line.doubt();
    line.board.handle_unanswerable(call, line.now);
    line.judge(call, ask, Verdict::Abort);
    line.answered(call, Answer::TargetDisconnected);
}

#[test]
fn an_unanswerable_call_ends_as_by_its_deadline() {
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.board.handle_unanswerable(call, line.now);
    line.pass(1_000);
    line.answered(call, Answer::TimedOut);
    line.call();
    assert_eq!(line.candidates().2[0].unanswered, 1);
}

#[test]
fn a_caller_that_leaves_is_forgotten() {
    let mut line = Line::served();
    let in_flight = line.call_in_flight();
    let choosing = line.call();
    let waiting = line.try_call("other").unwrap();
    line.told();
    line.disconnect(CALLER);
    let forgotten: Vec<Told> = [in_flight, choosing, waiting].map(|call| Command::Forget { call }).into();
    assert_eq!(line.told(), forgotten);
    assert_eq!(line.board.in_flight(DAEMON), 0);
    line.board.handle_result(in_flight, "to nobody", line.now);
    line.disconnect(CALLER);
    assert_eq!(line.told(), []);
    line.disconnect(DAEMON);
    assert_eq!(line.board.load(), Load { remembered_rooms: 1, ..Load::default() });
}

#[test]
fn bounds_refuse_calls() {
    let mut line = Line::new();
    assert_eq!(line.try_call(""), Err(CallRefused::InvalidMethod));
    assert_eq!(line.try_call(&"m".repeat(4_097)), Err(CallRefused::InvalidMethod));
    let nobody = SocketId(77);
    let from_nobody = line.board.handle_call(nobody, "m".into(), 0, Duration::ZERO, line.now);
    assert_eq!(from_nobody, Err(CallRefused::UnknownCaller));

    let mut line = Line::with(Settings { calls_max: 1, ..Settings::default() });
    line.call();
    assert_eq!(line.try_call("m"), Err(CallRefused::TooManyCalls));

    let mut line = Line::with(Settings { calls_per_user_max: 1, ..Settings::default() });
    line.call();
    assert_eq!(line.try_call("n"), Err(CallRefused::TooManyCallsOfUser));

    let mut line = Line::with(Settings { waiting_per_room_max: 1, ..Settings::default() });
    line.call();
    assert_eq!(line.try_call("m"), Err(CallRefused::TooManyWaiting));
    assert!(line.try_call("n").is_ok());
    // A refusal leaves nothing behind.
    assert_eq!((line.board.load().calls, line.board.load().timers), (2, 2));
}

#[test]
fn a_call_that_would_wait_in_a_full_room_is_unavailable() {
    let mut line = Line::with(Settings { waiting_per_room_max: 0, ..Settings::default() });
    line.connect(DAEMON);
    line.register(DAEMON);
    let call = line.call();
    let ask = line.asked(call);
    line.unregister(DAEMON);
    line.choose(call, ask, 0);
    line.answered(call, Answer::Unavailable);
}

#[test]
fn several_daemons_are_warned_about_once_a_minute() {
    let mut line = Line::served();
    line.connect(SECOND);
    line.register(SECOND);
    let warned = |told: Vec<Told>| {
        let is_warning = |command: &&Told| matches!(command, Command::WarnSeveral { count: 2, .. });
        told.iter().filter(is_warning).count()
    };
    line.call();
    line.call();
    assert_eq!(warned(line.told()), 1);
    line.pass(60_000);
    line.told();
    line.call();
    assert_eq!(warned(line.told()), 1);
}

#[test]
fn a_socket_that_comes_as_another_user_has_left_first() {
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.connect(DAEMON);
    assert_eq!((line.told(), line.board.directory().is_served(&room())), (vec![], true));
    line.board.handle_connect(DAEMON, "v".into(), 0, Traits::default(), line.now);
    let (ask, _, doubt) = line.doubt();
    assert_eq!(doubt.cause, Departure::Closed);
    assert!(!line.board.directory().is_served(&room()));
    line.judge(call, ask, Verdict::Abort);
    line.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_packet_ends_idleness() {
    let mut line = Line::served();
    line.pass(500);
    line.board.handle_packet(DAEMON, line.now);
    line.pass(20);
    line.call();
    assert_eq!(line.candidates().2[0].idle_ms, 20);
}

fn room() -> RpcRoom {
    RpcRoom { user: "u".into(), method: "m".into() }
}
