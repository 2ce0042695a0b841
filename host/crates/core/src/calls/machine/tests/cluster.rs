//! Sockets of other replicas: offered, out of reach, silent, back, lost, forgotten.

use super::harness::{CALLER, DAEMON, Harness, SECOND};
use super::*;

/// A daemon of another replica, with a call in flight to it.
fn remote_call_in_flight() -> (Harness, CallId) {
    let mut harness = Harness::new();
    harness.serve_remotely(DAEMON, 0);
    let call = harness.call_in_flight();
    (harness, call)
}

#[test]
fn a_remote_daemon_is_offered_by_its_true_age() {
    let mut harness = Harness::new();
    harness.connect(SECOND);
    harness.register(SECOND);
    harness.pass(10);
    harness.serve_remotely(DAEMON, 60_000);
    let call = harness.call();
    let (ask, _, candidates) = harness.candidates();
    let seen: Vec<_> = candidates.iter().map(|one| (one.replica, one.registered_ms, one.traits.local)).collect();
    assert_eq!(seen, [(1, 60_000, false), (0, 10, true)]);
    harness.choose(call, ask, 0);
    assert_eq!(harness.told(), [emitted(call, DAEMON, 30_000)]);
    harness.machine.handle_result(call, "from afar", harness.now);
    assert_eq!(harness.told(), [CallCommand::Answer { call, answer: Answer::Result("from afar") }]);
}

#[test]
fn without_the_link_only_local_daemons_are_offered() {
    let mut harness = Harness::new();
    harness.serve_remotely(DAEMON, 5);
    harness.connect(SECOND);
    harness.register(SECOND);
    harness.machine.handle_link(false, harness.now);
    harness.call();
    let (_, _, candidates) = harness.candidates();
    assert_eq!((candidates.len(), candidates[0].replica), (1, 0));
    harness.machine.handle_link(true, harness.now);
    harness.call();
    assert_eq!(harness.candidates().2.len(), 2);
}

#[test]
fn without_the_link_what_only_others_have_is_unreachable_at_once() {
    let mut harness = Harness::new();
    harness.serve_remotely(DAEMON, 0);
    harness.machine.handle_link(false, harness.now);
    let call = harness.call();
    harness.answered(call, Answer::Unreachable);
    harness.machine.handle_link(true, harness.now);
    let call = harness.call();
    harness.asked(call);
}

#[test]
fn a_pick_that_is_out_of_reach_by_now_is_not_taken() {
    let mut harness = Harness::new();
    harness.serve_remotely(DAEMON, 5);
    let alone = harness.call();
    let ask = harness.asked(alone);
    harness.machine.handle_link(false, harness.now);
    harness.choose(alone, ask, 0);
    harness.answered(alone, Answer::Unreachable);

    harness.machine.handle_link(true, harness.now);
    harness.connect(SECOND);
    harness.register(SECOND);
    let call = harness.call();
    let (ask, ..) = harness.candidates();
    harness.machine.handle_link(false, harness.now);
    harness.choose(call, ask, 0);
    let (ask, input, candidates) = harness.candidates();
    assert_eq!((input.attempt, candidates.len()), (1, 1));
    harness.choose(call, ask, 0);
    assert_eq!(harness.told(), [emitted(call, SECOND, 30_000)]);
}

#[test]
fn the_link_touches_no_call_that_waits_or_is_in_flight() {
    let (mut harness, in_flight) = remote_call_in_flight();
    let waiting = harness.try_call("other").unwrap();
    let ask = harness.asked(waiting);
    assert!(harness.machine.is_waiting(&RpcRoom { user: "u".into(), method: "other".into() }));
    assert!(!harness.machine.is_waiting(&room()));
    harness.wait(waiting, ask, 1_000);
    harness.machine.handle_link(false, harness.now);
    harness.machine.handle_link(true, harness.now);
    assert_eq!(harness.told(), []);
    harness.pass(1_000);
    assert_eq!(harness.told(), [CallCommand::Answer { call: waiting, answer: Answer::Unavailable }]);
    harness.machine.handle_result(in_flight, "done", harness.now);
    harness.answered(in_flight, Answer::Result("done"));
}

#[test]
fn a_call_that_could_not_be_handed_over_ends_wherever_its_flight_is() {
    let (mut confident, call) = remote_call_in_flight();
    confident.machine.handle_unreachable(call, confident.now);
    confident.answered(call, Answer::Unreachable);
    confident.machine.handle_unreachable(call, confident.now);
    assert_eq!(confident.told(), []);

    let (mut unanswerable, call) = remote_call_in_flight();
    unanswerable.machine.handle_unanswerable(call, unanswerable.now);
    unanswerable.machine.handle_unreachable(call, unanswerable.now);
    unanswerable.answered(call, Answer::Unreachable);

    let (mut doubtful, call) = remote_call_in_flight();
    doubtful.leave(DAEMON, Departure::ReplicaSilent);
    doubtful.told();
    doubtful.machine.handle_unreachable(call, doubtful.now);
    doubtful.answered(call, Answer::Unreachable);

    let mut not_sent = Harness::served();
    let call = not_sent.call();
    not_sent.asked(call);
    not_sent.machine.handle_unreachable(call, not_sent.now);
    assert_eq!(not_sent.told(), []);
}

#[test]
fn a_replica_that_shuts_down_gets_no_more_calls() {
    let (mut harness, in_flight) = remote_call_in_flight();
    harness.machine.handle_draining(1, true, harness.now);
    harness.call();
    let (_, absence) = harness.absence();
    assert_eq!((absence.cause, absence.gone_ms), (Departure::Drained, 0));
    harness.machine.handle_result(in_flight, "done", harness.now);
    assert_eq!(harness.told(), [CallCommand::Answer { call: in_flight, answer: Answer::Result("done") }]);
    harness.connect(SECOND);
    harness.register(SECOND);
    assert_eq!(harness.candidates().2.len(), 1, "the daemon is back elsewhere, and offered alone");
    harness.leave(DAEMON, Departure::Drained);
    harness.machine.handle_draining(1, false, harness.now);
    harness.serve_remotely(DAEMON, 0);
    harness.call();
    assert_eq!(harness.candidates().2.len(), 2, "the number may be another replica's by now");
}

#[test]
fn a_silent_replica_that_is_lost_is_news() {
    let (mut harness, call) = remote_call_in_flight();
    harness.pass(50);
    harness.leave(DAEMON, Departure::ReplicaSilent);
    let (ask, _, doubt) = harness.doubt();
    assert_eq!((doubt.cause, doubt.since_ms), (Departure::ReplicaSilent, 0));
    assert!(!harness.machine.directory().is_served(&room()));
    assert_eq!(harness.machine.in_flight(DAEMON), 1);
    harness.judge(call, ask, Verdict::Hold(60_000));
    harness.pass(70);
    // The same once more is no news.
    harness.leave(DAEMON, Departure::ReplicaSilent);
    assert_eq!(harness.told(), []);
    harness.leave(DAEMON, Departure::ReplicaLost);
    let (ask, input, doubt) = harness.doubt();
    assert_eq!((doubt.cause, doubt.since_ms, input.attempt), (Departure::ReplicaLost, 70, 1));
    // Nor is what comes after the proof.
    for cause in [Departure::ReplicaSilent, Departure::TransportLost, Departure::Unregistered] {
        harness.leave(DAEMON, cause);
    }
    assert_eq!(harness.told(), []);
    harness.judge(call, ask, Verdict::Abort);
    harness.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_replica_that_was_only_hung_ends_the_doubt() {
    let (mut harness, call) = remote_call_in_flight();
    harness.leave(DAEMON, Departure::ReplicaSilent);
    let (ask, ..) = harness.doubt();
    harness.pass(4_000);
    harness.serve_remotely(DAEMON, 4_000);
    harness.judge(call, ask, Verdict::Abort);
    harness.pass(20_000);
    assert_eq!(harness.told(), []);
    assert_eq!(harness.machine.poll_timeout(), Some(Time::from_millis(30_000)));
    // And it may leave for good after that.
    harness.leave(DAEMON, Departure::TransportLost);
    let (ask, input, doubt) = harness.doubt();
    assert_eq!((doubt.cause, doubt.since_ms, input.attempt), (Departure::TransportLost, 0, 0));
    harness.judge(call, ask, Verdict::Abort);
    harness.answered(call, Answer::TargetDisconnected);
}

#[test]
fn proof_is_not_taken_back_by_silence() {
    let (mut harness, call) = remote_call_in_flight();
    harness.leave(DAEMON, Departure::TransportLost);
    let (ask, ..) = harness.doubt();
    // By the same name again, and silent, and back: the connection that had the request is gone all the same.
    harness.serve_remotely(DAEMON, 0);
    harness.leave(DAEMON, Departure::ReplicaSilent);
    harness.serve_remotely(DAEMON, 0);
    assert_eq!(harness.told(), []);
    harness.judge(call, ask, Verdict::Abort);
    harness.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_result_answers_a_call_whose_replica_is_silent() {
    let (mut harness, call) = remote_call_in_flight();
    harness.leave(DAEMON, Departure::ReplicaSilent);
    harness.told();
    harness.machine.handle_result(call, "late", harness.now);
    harness.answered(call, Answer::Result("late"));
}

#[test]
fn a_found_socket_is_forgotten_and_its_calls_go_on() {
    let (mut harness, call) = remote_call_in_flight();
    let own = harness.try_call("other").unwrap();
    harness.told();
    assert!(!harness.machine.handle_forget(CALLER, harness.now), "it has called");
    assert!(harness.machine.handle_forget(DAEMON, harness.now));
    assert_eq!(harness.machine.in_flight(DAEMON), 1);
    harness.machine.handle_result(call, "done", harness.now);
    assert!(!harness.machine.handle_forget(DAEMON, harness.now));
    assert_eq!(harness.told(), [CallCommand::Answer { call, answer: Answer::Result("done") }]);
    let load = harness.machine.load();
    assert_eq!((load.sockets, load.rooms, load.remembered_rooms), (1, 0, 0));
    // Whoever was offered it is asked anew.
    harness.serve_remotely(DAEMON, 0);
    let call = harness.call();
    let ask = harness.asked(call);
    assert!(harness.machine.handle_forget(DAEMON, harness.now));
    harness.choose(call, ask, 0);
    assert_eq!(harness.absence().1.cause, Departure::NeverSeen);
    // What becomes known of it later counts.
    harness.serve_remotely(DAEMON, 0);
    let ask = harness.asked(call);
    harness.choose(call, ask, 0);
    harness.told();
    assert!(harness.machine.handle_forget(DAEMON, harness.now));
    harness.disconnect(DAEMON);
    assert_eq!(harness.doubt().2.cause, Departure::TransportLost);
    harness.disconnect(CALLER);
    assert_eq!(harness.told(), [own, call].map(|call| CallCommand::Forget { call }));
}
