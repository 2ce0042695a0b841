//! Sockets of other replicas: offered, out of reach, silent, back, lost, forgotten.

use super::line::{CALLER, DAEMON, Line, SECOND};
use super::*;

/// A daemon of another replica, with a call in flight to it.
fn remote_call_in_flight() -> (Line, CallId) {
    let mut line = Line::new();
    line.serve_remotely(DAEMON, 0);
    let call = line.call_in_flight();
    (line, call)
}

#[test]
fn a_remote_daemon_is_offered_by_its_true_age() {
    let mut line = Line::new();
    line.connect(SECOND);
    line.register(SECOND);
    line.pass(10);
    line.serve_remotely(DAEMON, 60_000);
    let call = line.call();
    let (ask, _, candidates) = line.candidates();
    let seen: Vec<_> = candidates.iter().map(|one| (one.replica, one.registered_ms, one.traits.local)).collect();
    assert_eq!(seen, [(1, 60_000, false), (0, 10, true)]);
    line.choose(call, ask, 0);
    assert_eq!(line.told(), [emitted(call, DAEMON, 30_000)]);
    line.board.handle_result(call, "from afar", line.now);
    assert_eq!(line.told(), [Command::Answer { call, answer: Answer::Result("from afar") }]);
}

#[test]
fn without_the_link_only_local_daemons_are_offered() {
    let mut line = Line::new();
    line.serve_remotely(DAEMON, 5);
    line.connect(SECOND);
    line.register(SECOND);
    line.board.handle_link(false, line.now);
    line.call();
    let (_, _, candidates) = line.candidates();
    assert_eq!((candidates.len(), candidates[0].replica), (1, 0));
    line.board.handle_link(true, line.now);
    line.call();
    assert_eq!(line.candidates().2.len(), 2);
}

#[test]
fn without_the_link_what_only_others_have_is_unreachable_at_once() {
    let mut line = Line::new();
    line.serve_remotely(DAEMON, 0);
    line.board.handle_link(false, line.now);
    let call = line.call();
    line.answered(call, Answer::Unreachable);
    line.board.handle_link(true, line.now);
    let call = line.call();
    line.asked(call);
}

#[test]
fn a_pick_that_is_out_of_reach_by_now_is_not_taken() {
    let mut line = Line::new();
    line.serve_remotely(DAEMON, 5);
    let alone = line.call();
    let ask = line.asked(alone);
    line.board.handle_link(false, line.now);
    line.choose(alone, ask, 0);
    line.answered(alone, Answer::Unreachable);

    line.board.handle_link(true, line.now);
    line.connect(SECOND);
    line.register(SECOND);
    let call = line.call();
    let (ask, ..) = line.candidates();
    line.board.handle_link(false, line.now);
    line.choose(call, ask, 0);
    let (ask, input, candidates) = line.candidates();
    assert_eq!((input.attempt, candidates.len()), (1, 1));
    line.choose(call, ask, 0);
    assert_eq!(line.told(), [emitted(call, SECOND, 30_000)]);
}

#[test]
fn the_link_touches_no_call_that_waits_or_is_in_flight() {
    let (mut line, in_flight) = remote_call_in_flight();
    let waiting = line.try_call("other").unwrap();
    let ask = line.asked(waiting);
    assert!(line.board.is_waiting(&RpcRoom { user: "u".into(), method: "other".into() }));
    assert!(!line.board.is_waiting(&room()));
    line.wait(waiting, ask, 1_000);
    line.board.handle_link(false, line.now);
    line.board.handle_link(true, line.now);
    assert_eq!(line.told(), []);
    line.pass(1_000);
    assert_eq!(line.told(), [Command::Answer { call: waiting, answer: Answer::Unavailable }]);
    line.board.handle_result(in_flight, "done", line.now);
    line.answered(in_flight, Answer::Result("done"));
}

#[test]
fn a_call_that_could_not_be_handed_over_ends_wherever_its_flight_is() {
    let (mut confident, call) = remote_call_in_flight();
    confident.board.handle_unreachable(call, confident.now);
    confident.answered(call, Answer::Unreachable);
    confident.board.handle_unreachable(call, confident.now);
    assert_eq!(confident.told(), []);

    let (mut unanswerable, call) = remote_call_in_flight();
    unanswerable.board.handle_unanswerable(call, unanswerable.now);
    unanswerable.board.handle_unreachable(call, unanswerable.now);
    unanswerable.answered(call, Answer::Unreachable);

    let (mut doubtful, call) = remote_call_in_flight();
    doubtful.leave(DAEMON, Departure::ReplicaSilent);
    doubtful.told();
    doubtful.board.handle_unreachable(call, doubtful.now);
    doubtful.answered(call, Answer::Unreachable);

    let mut not_sent = Line::served();
    let call = not_sent.call();
    not_sent.asked(call);
    not_sent.board.handle_unreachable(call, not_sent.now);
    assert_eq!(not_sent.told(), []);
}

#[test]
fn a_replica_that_shuts_down_gets_no_more_calls() {
    let (mut line, in_flight) = remote_call_in_flight();
    line.board.handle_draining(1, true, line.now);
    line.call();
    let (_, absence) = line.absence();
    assert_eq!((absence.cause, absence.gone_ms), (Departure::Drained, 0));
    line.board.handle_result(in_flight, "done", line.now);
    assert_eq!(line.told(), [Command::Answer { call: in_flight, answer: Answer::Result("done") }]);
    line.connect(SECOND);
    line.register(SECOND);
    assert_eq!(line.candidates().2.len(), 1, "the daemon is back elsewhere, and offered alone");
    line.leave(DAEMON, Departure::Drained);
    line.board.handle_draining(1, false, line.now);
    line.serve_remotely(DAEMON, 0);
    line.call();
    assert_eq!(line.candidates().2.len(), 2, "the number may be another replica's by now");
}

#[test]
fn a_silent_replica_that_is_lost_is_news() {
    let (mut line, call) = remote_call_in_flight();
    line.pass(50);
    line.leave(DAEMON, Departure::ReplicaSilent);
    let (ask, _, doubt) = line.doubt();
    assert_eq!((doubt.cause, doubt.since_ms), (Departure::ReplicaSilent, 0));
    assert!(!line.board.directory().is_served(&room()));
    assert_eq!(line.board.in_flight(DAEMON), 1);
    line.judge(call, ask, Verdict::Hold(60_000));
    line.pass(70);
    // The same once more is no news.
    line.leave(DAEMON, Departure::ReplicaSilent);
    assert_eq!(line.told(), []);
    line.leave(DAEMON, Departure::ReplicaLost);
    let (ask, input, doubt) = line.doubt();
    assert_eq!((doubt.cause, doubt.since_ms, input.attempt), (Departure::ReplicaLost, 70, 1));
    // Nor is what comes after the proof.
    for cause in [Departure::ReplicaSilent, Departure::TransportLost, Departure::Unregistered] {
        line.leave(DAEMON, cause);
    }
    assert_eq!(line.told(), []);
    line.judge(call, ask, Verdict::Abort);
    line.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_replica_that_was_only_hung_ends_the_doubt() {
    let (mut line, call) = remote_call_in_flight();
    line.leave(DAEMON, Departure::ReplicaSilent);
    let (ask, ..) = line.doubt();
    line.pass(4_000);
    line.serve_remotely(DAEMON, 4_000);
    line.judge(call, ask, Verdict::Abort);
    line.pass(20_000);
    assert_eq!(line.told(), []);
    assert_eq!(line.board.poll_timeout(), Some(Time::from_millis(30_000)));
    // And it may leave for good after that.
    line.leave(DAEMON, Departure::TransportLost);
    let (ask, input, doubt) = line.doubt();
    assert_eq!((doubt.cause, doubt.since_ms, input.attempt), (Departure::TransportLost, 0, 0));
    line.judge(call, ask, Verdict::Abort);
    line.answered(call, Answer::TargetDisconnected);
}

#[test]
fn proof_is_not_taken_back_by_silence() {
    let (mut line, call) = remote_call_in_flight();
    line.leave(DAEMON, Departure::TransportLost);
    let (ask, ..) = line.doubt();
    // By the same name again, and silent, and back: the connection that had the request is gone all the same.
    line.serve_remotely(DAEMON, 0);
    line.leave(DAEMON, Departure::ReplicaSilent);
    line.serve_remotely(DAEMON, 0);
    assert_eq!(line.told(), []);
    line.judge(call, ask, Verdict::Abort);
    line.answered(call, Answer::TargetDisconnected);
}

#[test]
fn a_result_answers_a_call_whose_replica_is_silent() {
    let (mut line, call) = remote_call_in_flight();
    line.leave(DAEMON, Departure::ReplicaSilent);
    line.told();
    line.board.handle_result(call, "late", line.now);
    line.answered(call, Answer::Result("late"));
}

#[test]
fn a_found_socket_is_forgotten_and_its_calls_go_on() {
    let (mut line, call) = remote_call_in_flight();
    let own = line.try_call("other").unwrap();
    line.told();
    assert!(!line.board.handle_forget(CALLER, line.now), "it has called");
    assert!(line.board.handle_forget(DAEMON, line.now));
    assert_eq!(line.board.in_flight(DAEMON), 1);
    line.board.handle_result(call, "done", line.now);
    assert!(!line.board.handle_forget(DAEMON, line.now));
    assert_eq!(line.told(), [Command::Answer { call, answer: Answer::Result("done") }]);
    let load = line.board.load();
    assert_eq!((load.sockets, load.rooms, load.remembered_rooms), (1, 0, 0));
    // Whoever was offered it is asked anew.
    line.serve_remotely(DAEMON, 0);
    let call = line.call();
    let ask = line.asked(call);
    assert!(line.board.handle_forget(DAEMON, line.now));
    line.choose(call, ask, 0);
    assert_eq!(line.absence().1.cause, Departure::NeverSeen);
    // What becomes known of it later counts.
    line.serve_remotely(DAEMON, 0);
    let ask = line.asked(call);
    line.choose(call, ask, 0);
    line.told();
    assert!(line.board.handle_forget(DAEMON, line.now));
    line.disconnect(DAEMON);
    assert_eq!(line.doubt().2.cause, Departure::TransportLost);
    line.disconnect(CALLER);
    assert_eq!(line.told(), [own, call].map(|call| Command::Forget { call }));
}
