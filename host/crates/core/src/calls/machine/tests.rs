//! Every branch of the call machine, one at a time. Random orders of events are in the crate's `tests/`.
#![allow(clippy::unwrap_used, clippy::panic)]

mod cluster;
mod harness;
mod held;
mod native_rules;
mod resume;

use std::time::Duration;

use self::harness::{CALLER, DAEMON, Harness, SECOND, Told};
use super::*;
use crate::calls::answer::{Answer, CallRefused};
use crate::decisions::{Choice, Departure, Traits, Verdict};
use crate::ids::AskId;

fn emitted(call: CallId, target: SocketId, left_ms: u64) -> Told {
    CallCommand::Emit { call, target, left: Duration::from_millis(left_ms), resumable: true }
}

#[test]
fn a_call_reaches_its_daemon_and_comes_back() {
    let mut harness = Harness::served();
    harness.pass(5);
    let call = harness.call();
    harness.pass(2);
    let (ask, input, candidates) = harness.candidates();
    assert_eq!((&*input.method, input.params_bytes, input.attempt), ("m", 3, 0));
    assert_eq!((input.waited_ms, input.left_ms), (0, 30_000));
    assert_eq!((candidates.len(), candidates[0].registered_ms, candidates[0].in_flight), (1, 5, 0));
    assert!(candidates[0].traits.resumable && !candidates[0].traits.caller);
    harness.choose(call, ask, 0);
    assert_eq!(harness.told(), [emitted(call, DAEMON, 30_000)]);
    assert_eq!(harness.machine.in_flight(DAEMON), 1);
    harness.pass(7);
    harness.machine.handle_result(call, "done", harness.now);
    harness.answered(call, Answer::Result("done"));
    harness.call();
    let (_, _, candidates) = harness.candidates();
    assert_eq!((candidates[0].in_flight, candidates[0].answer_us, candidates[0].idle_ms), (0, 7_000, 0));
}

#[test]
fn a_second_result_and_late_verdicts_change_nothing() {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.machine.handle_result(call, "once", harness.now);
    harness.answered(call, Answer::Result("once"));
    harness.machine.handle_result(call, "twice", harness.now);
    harness.machine.handle_unanswerable(call, harness.now);
    harness.choose(call, AskId(1), 0);
    harness.wait(call, AskId(1), 0);
    harness.judge(call, AskId(1), Verdict::Abort);
    assert_eq!(harness.told(), []);
}

#[test]
fn an_answer_that_cannot_be_passed_on_ends_the_call_at_once() {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.pass(7);
    harness.machine.handle_unusable(call, harness.now);
    harness.answered(call, Answer::Unusable);
    harness.call();
    let (_, _, candidates) = harness.candidates();
    assert_eq!((candidates[0].answer_us, candidates[0].unanswered), (7_000, 0), "the daemon did answer");
}

#[test]
fn a_result_before_the_request_was_sent_is_no_result() {
    let mut harness = Harness::served();
    let call = harness.call();
    harness.told();
    harness.machine.handle_result(call, "invented", harness.now);
    harness.machine.handle_unanswerable(call, harness.now);
    assert_eq!(harness.told(), []);
}

#[test]
fn a_reject_is_unavailable() {
    let mut harness = Harness::served();
    let call = harness.call();
    let ask = harness.asked(call);
    harness.machine.handle_choice(call, ask, Choice::Reject, harness.now);
    harness.answered(call, Answer::Unavailable);
}

#[test]
fn a_caller_does_not_call_itself() {
    let mut harness = Harness::new();
    harness.register(CALLER);
    let call = harness.call();
    let (ask, _, candidates) = harness.candidates();
    assert!(candidates[0].traits.caller);
    harness.choose(call, ask, 0);
    harness.answered(call, Answer::SameSocket);
}

#[test]
fn nobody_there_and_no_grace() {
    let mut harness = Harness::new();
    harness.pass(40);
    let call = harness.call();
    let (input, absence) = harness.absence();
    assert_eq!((input.attempt, input.left_ms), (0, 30_000));
    assert_eq!((absence.cause, absence.gone_ms, absence.departures), (Departure::NeverSeen, u32::MAX, 0));
    assert_eq!((absence.waiting, absence.replica_age_ms), (0, 40));
    harness.wait(call, AskId(1), 0);
    harness.answered(call, Answer::Unavailable);
}

#[test]
fn a_wait_ends() {
    let mut harness = Harness::new();
    let call = harness.call();
    let ask = harness.asked(call);
    harness.wait(call, ask, 10_000);
    assert_eq!(harness.machine.poll_timeout(), Some(Time::from_millis(10_000)));
    harness.pass(9_999);
    assert_eq!(harness.told(), []);
    harness.pass(1);
    harness.answered(call, Answer::Unavailable);
}

#[test]
fn a_wait_is_cut_to_the_deadline() {
    let mut harness = Harness::new();
    let call = harness.call();
    let ask = harness.asked(call);
    harness.wait(call, ask, u32::MAX);
    assert_eq!(harness.machine.poll_timeout(), Some(Time::from_millis(30_000)));
    harness.pass(30_000);
    harness.answered(call, Answer::Unavailable);
}

#[test]
fn resumes_waiting_calls_oldest_first_after_a_registration() {
    let mut harness = Harness::new();
    let (first, second, third) = (harness.call(), harness.call(), harness.call());
    let asks: Vec<AskId> = harness.told().iter().map(|_| AskId(1)).collect();
    // The second is held, the others are still being asked about.
    harness.wait(second, asks[1], 5_000);
    harness.connect(DAEMON);
    harness.pass(100);
    harness.register(DAEMON);
    let told = harness.told();
    let calls: Vec<CallId> = told
        .iter()
        .map(|command| match command {
            CallCommand::AskTarget { call, .. } => *call,
            other => panic!("AskTarget expected: {other:?}"),
        })
        .collect();
    assert_eq!(calls, [first, second, third]);
    assert_eq!(harness.machine.load().waiting, 0);
    // The verdict on the absence that is over is stale, and the wait is over.
    harness.wait(first, asks[0], 0);
    harness.pass(10_000);
    assert_eq!(harness.told(), []);
    harness.choose(second, AskId(2), 0);
    // The daemon has its whole time, however long the call had waited for it.
    assert_eq!(harness.told(), [emitted(second, DAEMON, 30_000)]);
}

#[test]
fn calls_that_wait_are_counted_for_the_next() {
    let mut harness = Harness::new();
    harness.call();
    harness.told();
    harness.call();
    assert_eq!(harness.absence().1.waiting, 1);
}

#[test]
fn a_pick_that_left_is_asked_about_again() {
    let mut harness = Harness::served();
    harness.connect(SECOND);
    harness.register(SECOND);
    let call = harness.call();
    let (ask, ..) = harness.candidates();
    harness.unregister(DAEMON);
    harness.choose(call, ask, 0);
    let (again, input, candidates) = harness.candidates();
    assert_eq!((input.attempt, candidates.len()), (1, 1));
    // The old answer once more: dropped.
    harness.choose(call, ask, 0);
    assert_eq!(harness.told(), []);
    harness.choose(call, again, 0);
    assert_eq!(harness.told(), [emitted(call, SECOND, 30_000)]);
}

#[test]
fn a_pick_that_left_with_nobody_else_there_is_an_absence() {
    let mut harness = Harness::served();
    let call = harness.call();
    let ask = harness.asked(call);
    harness.disconnect(DAEMON);
    harness.pass(3);
    harness.choose(call, ask, 0);
    let (input, absence) = harness.absence();
    assert_eq!((absence.cause, absence.gone_ms, absence.departures), (Departure::TransportLost, 3, 1));
    assert_eq!((input.attempt, input.waited_ms), (0, 3));
}

#[test]
fn after_three_stale_picks_the_native_rule_picks() {
    let mut harness = Harness::served();
    let call = harness.call();
    for attempt in 0..3 {
        let (ask, input, _) = harness.candidates();
        assert_eq!(input.attempt, attempt);
        harness.choose(call, ask, 77);
    }
    assert_eq!(harness.told(), [emitted(call, DAEMON, 30_000)]);
}

#[test]
fn asks_in_a_row_begin_anew_after_an_absence() {
    let mut harness = Harness::served();
    let call = harness.call();
    for _ in 0..2 {
        let (ask, ..) = harness.candidates();
        harness.choose(call, ask, 77);
    }
    let (ask, ..) = harness.candidates();
    harness.unregister(DAEMON);
    harness.choose(call, ask, 0);
    harness.asked(call);
    harness.register(DAEMON);
    let (ask, input, _) = harness.candidates();
    assert_eq!(input.attempt, 3);
    harness.choose(call, ask, 77);
    harness.asked(call);
}

#[test]
fn a_target_that_disconnects_is_judged() {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.pass(50);
    harness.disconnect(DAEMON);
    harness.pass(1);
    let (ask, input, doubt) = harness.doubt();
    assert_eq!((input.attempt, input.waited_ms), (0, 50));
    assert_eq!((doubt.cause, doubt.since_ms, doubt.sent_ms), (Departure::TransportLost, 0, 50));
    assert_eq!((doubt.resumable, doubt.returned, doubt.departures), (true, false, 1));
    harness.judge(call, ask, Verdict::Abort);
    harness.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_held_doubt_is_asked_about_again() {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.disconnect(DAEMON);
    let (ask, ..) = harness.doubt();
    // No more often than every 10 ms.
    harness.judge(call, ask, Verdict::Hold(0));
    harness.judge(call, ask, Verdict::Abort);
    harness.connect(SECOND);
    harness.register(SECOND);
    harness.pass(9);
    assert_eq!(harness.told(), []);
    harness.pass(1);
    let (ask, input, doubt) = harness.doubt();
    assert_eq!((input.attempt, doubt.since_ms, doubt.returned), (1, 10, true));
    harness.judge(call, ask, Verdict::Hold(1_000));
    harness.pass(1_000);
    let (_, input, doubt) = harness.doubt();
    assert_eq!((input.attempt, doubt.since_ms), (2, 1_010));
    harness.machine.handle_result(call, "by another way", harness.now);
    harness.answered(call, Answer::Result("by another way"));
}

#[test]
fn a_daemon_that_was_there_all_along_did_not_return() {
    let mut harness = Harness::served();
    harness.connect(SECOND);
    harness.register(SECOND);
    let call = harness.call();
    let (ask, ..) = harness.candidates();
    harness.choose(call, ask, 0);
    harness.told();
    harness.disconnect(DAEMON);
    assert!(!harness.doubt().2.returned);
}

#[test]
fn a_target_that_takes_the_method_back_is_judged_and_may_come_back() {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.machine.handle_register(DAEMON, "other".into(), harness.now).unwrap();
    harness.machine.handle_unregister(DAEMON, &"other".into(), harness.now).unwrap();
    assert_eq!(harness.told(), []);
    harness.unregister(DAEMON);
    let (ask, _, doubt) = harness.doubt();
    assert_eq!(doubt.cause, Departure::Unregistered);
    harness.register(DAEMON);
    harness.judge(call, ask, Verdict::Abort);
    harness.pass(29_000);
    assert_eq!(harness.told(), []);
    harness.machine.handle_result(call, "still here", harness.now);
    harness.answered(call, Answer::Result("still here"));
}

#[test]
fn a_doubt_gets_worse() {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.unregister(DAEMON);
    let (stale, ..) = harness.doubt();
    harness.pass(5);
    harness.machine.handle_disconnect(DAEMON, Departure::Evicted, harness.now);
    let (ask, input, doubt) = harness.doubt();
    assert_eq!((doubt.cause, doubt.since_ms, input.attempt), (Departure::Evicted, 5, 1));
    harness.judge(call, stale, Verdict::Abort);
    assert_eq!(harness.told(), []);
    // The same socket id again does not undo a lost connection.
    harness.connect(DAEMON);
    harness.register(DAEMON);
    harness.judge(call, ask, Verdict::Abort);
    harness.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_deadline_ends_a_call_wherever_it_is() {
    let timed_out = |harness: &mut Harness, call| {
        harness.pass(30_000);
        harness.answered(call, Answer::TimedOut);
    };
    let mut choosing = Harness::served();
    let call = choosing.call();
    choosing.told();
    timed_out(&mut choosing, call);

    let mut asking_grace = Harness::new();
    let call = asking_grace.call();
    asking_grace.told();
    timed_out(&mut asking_grace, call);

    let mut in_doubt = Harness::served();
    let call = in_doubt.call_in_flight();
    in_doubt.disconnect(DAEMON);
    let (ask, ..) = in_doubt.doubt();
    in_doubt.judge(call, ask, Verdict::Hold(u32::MAX));
    timed_out(&mut in_doubt, call);

    let mut in_flight = Harness::served();
    let call = in_flight.call_in_flight();
    timed_out(&mut in_flight, call);
    in_flight.call();
    assert_eq!(in_flight.candidates().2[0].unanswered, 1);
}

#[test]
fn what_comes_late_finds_the_call_ended() {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.now = Time::from_millis(30_000);
    harness.machine.handle_result(call, "too late", harness.now);
    harness.answered(call, Answer::TimedOut);
}

#[test]
fn a_moment_before_an_earlier_one_counts_as_that_one() {
    let mut harness = Harness::served();
    harness.pass(1_000);
    harness.now = Time::from_millis(400);
    harness.call();
    assert_eq!(harness.machine.poll_timeout(), Some(Time::from_millis(31_000)));
}

#[test]
fn an_unanswerable_call_waits_for_the_reason() {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.machine.handle_unanswerable(call, harness.now);
    harness.machine.handle_unanswerable(call, harness.now);
    harness.pass(999);
    assert_eq!(harness.told(), []);
    harness.disconnect(DAEMON);
    let (ask, ..) = harness.doubt();
    harness.machine.handle_unanswerable(call, harness.now);
    harness.judge(call, ask, Verdict::Abort);
    harness.answered(call, Answer::TargetDisconnected);
}

#[test]
fn an_unanswerable_call_ends_as_by_its_deadline() {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.machine.handle_unanswerable(call, harness.now);
    harness.pass(1_000);
    harness.answered(call, Answer::TimedOut);
    harness.call();
    assert_eq!(harness.candidates().2[0].unanswered, 1);
}

#[test]
fn a_caller_that_leaves_is_forgotten() {
    let mut harness = Harness::served();
    let in_flight = harness.call_in_flight();
    let choosing = harness.call();
    let waiting = harness.try_call("other").unwrap();
    harness.told();
    harness.disconnect(CALLER);
    let forgotten: Vec<Told> = [in_flight, choosing, waiting].map(|call| CallCommand::Forget { call }).into();
    assert_eq!(harness.told(), forgotten);
    assert_eq!(harness.machine.in_flight(DAEMON), 0);
    harness.machine.handle_result(in_flight, "to nobody", harness.now);
    harness.disconnect(CALLER);
    assert_eq!(harness.told(), []);
    harness.disconnect(DAEMON);
    assert_eq!(harness.machine.load(), CallLoad { remembered_rooms: 1, ..CallLoad::default() });
}

#[test]
fn bounds_refuse_calls() {
    let mut harness = Harness::new();
    assert_eq!(harness.try_call(""), Err(CallRefused::InvalidMethod));
    assert_eq!(harness.try_call(&"m".repeat(4_097)), Err(CallRefused::InvalidMethod));
    let nobody = SocketId(77);
    let from_nobody = harness.machine.handle_call(nobody, "m".into(), 0, Duration::ZERO, harness.now);
    assert_eq!(from_nobody, Err(CallRefused::UnknownCaller));

    let mut harness = Harness::with(CallSettings { calls_max: 1, ..CallSettings::default() });
    harness.call();
    assert_eq!(harness.try_call("m"), Err(CallRefused::TooManyCalls));

    let mut harness = Harness::with(CallSettings { calls_per_user_max: 1, ..CallSettings::default() });
    harness.call();
    assert_eq!(harness.try_call("n"), Err(CallRefused::TooManyCallsOfUser));

    let mut harness = Harness::with(CallSettings { waiting_per_room_max: 1, ..CallSettings::default() });
    harness.call();
    assert_eq!(harness.try_call("m"), Err(CallRefused::TooManyWaiting));
    assert!(harness.try_call("n").is_ok());
    // A refusal leaves nothing behind.
    assert_eq!((harness.machine.load().calls, harness.machine.load().timers), (2, 2));
}

#[test]
fn a_call_that_would_wait_in_a_full_room_is_unavailable() {
    let mut harness = Harness::with(CallSettings { waiting_per_room_max: 0, ..CallSettings::default() });
    harness.connect(DAEMON);
    harness.register(DAEMON);
    let call = harness.call();
    let ask = harness.asked(call);
    harness.unregister(DAEMON);
    harness.choose(call, ask, 0);
    harness.answered(call, Answer::Unavailable);
}

#[test]
fn several_daemons_are_warned_about_once_a_minute() {
    let mut harness = Harness::served();
    harness.connect(SECOND);
    harness.register(SECOND);
    let warned = |told: Vec<Told>| {
        let is_warning = |command: &&Told| matches!(command, CallCommand::WarnSeveral { count: 2, .. });
        told.iter().filter(is_warning).count()
    };
    harness.call();
    harness.call();
    assert_eq!(warned(harness.told()), 1);
    harness.pass(60_000);
    harness.told();
    harness.call();
    assert_eq!(warned(harness.told()), 1);
}

#[test]
fn a_socket_that_comes_as_another_user_has_left_first() {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.connect(DAEMON);
    assert_eq!((harness.told(), harness.machine.directory().is_served(&room())), (vec![], true));
    harness.machine.handle_connect(DAEMON, "v".into(), 0, Traits::default(), harness.now);
    let (ask, _, doubt) = harness.doubt();
    assert_eq!(doubt.cause, Departure::Closed);
    assert!(!harness.machine.directory().is_served(&room()));
    harness.judge(call, ask, Verdict::Abort);
    harness.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_packet_ends_idleness() {
    let mut harness = Harness::served();
    harness.pass(500);
    harness.machine.handle_packet(DAEMON, harness.now);
    harness.pass(20);
    harness.call();
    assert_eq!(harness.candidates().2[0].idle_ms, 20);
}

fn room() -> RpcRoom {
    RpcRoom { user: "u".into(), method: "m".into() }
}
