//! The control flow of the seed's rpc-call, each branch by its name, with the native rules as policies.

use super::line::{CALLER, DAEMON, Line, SECOND};
use super::*;
use crate::call::message;
use crate::decision::{Absence, Candidate};
use crate::rules::{self, GRACE_MS, RECHECK_MS};

/// Answers every open question by the native rules and gives what else there is to do.
fn go(line: &mut Line) -> Vec<Command<&'static str>> {
    let mut done = Vec::new();
    loop {
        let told = line.told();
        if told.is_empty() {
            return done;
        }
        for command in told {
            match command {
                Command::AskTarget { call, ask, candidates, .. } => choose(line, call, ask, &candidates),
                Command::AskGrace { call, ask, absence, .. } => wait(line, call, ask, &absence),
                Command::AskPresence { call, ask, doubt, .. } => {
                    line.judge(call, ask, rules::presence(&doubt, RECHECK_MS, GRACE_MS));
                }
                other => done.push(other),
            }
        }
    }
}

fn choose(line: &mut Line, call: CallId, ask: AskId, candidates: &[Candidate]) {
    line.board.handle_choice(call, ask, rules::target(candidates), line.now);
}

fn wait(line: &mut Line, call: CallId, ask: AskId, absence: &Absence) {
    line.wait(call, ask, rules::grace(absence, GRACE_MS));
}

/// A daemon that cannot hand in its result, as all were in the seed.
fn plain(line: &mut Line, socket: SocketId) {
    line.board.handle_connect(socket, "u".into(), 0, Traits { local: true, ..Traits::default() }, line.now);
    line.register(socket);
}

fn is_emit(command: &Command<&'static str>, to: SocketId) -> bool {
    matches!(command, Command::Emit { target, .. } if *target == to)
}

fn errors(commands: &[Command<&'static str>]) -> Vec<&'static str> {
    let error = |command: &Command<&'static str>| match command {
        Command::Answer { answer, .. } => answer.error(),
        _ => None,
    };
    commands.iter().filter_map(error).collect()
}

/// In flight to a plain daemon.
fn sent() -> (Line, CallId) {
    let mut line = Line::new();
    plain(&mut line, DAEMON);
    let call = line.call();
    assert!(is_emit(&go(&mut line)[0], DAEMON));
    (line, call)
}

#[test]
fn input_validation_method_name_invalid() {
    let mut line = Line::new();
    let told = |refused: Result<CallId, CallRefused>| refused.unwrap_err().message();
    assert_eq!(told(line.try_call("")), message::METHOD_REQUIRED);
    assert_eq!(told(line.try_call(&"m".repeat(4_097))), message::METHOD_REQUIRED);
    assert_eq!(go(&mut line), []);
}

#[test]
fn resolve_returns_a_target() {
    let (line, call) = sent();
    assert_eq!(line.board.poll_timeout(), Some(Time::from_millis(30_000)));
    assert_eq!(line.held, [], "{call:?} did not wait");
}

#[test]
fn resolve_with_a_peer_that_does_not_respond_is_nobody_here() {
    let mut line = Line::new();
    line.serve_remotely(DAEMON, 1_000);
    line.leave(DAEMON, Departure::ReplicaSilent);
    let call = line.call();
    assert_eq!(go(&mut line), []);
    assert_eq!(line.held, [(call, 0, 10_000)]);
}

#[test]
fn resolve_returns_nobody_and_the_grace_begins() {
    let mut line = Line::new();
    let call = line.call();
    assert_eq!(go(&mut line), []);
    assert_eq!((line.board.load().waiting, line.held.as_slice()), (1, [(call, 0, 10_000)].as_slice()));
}

#[test]
fn grace_room_gained_a_member() {
    let mut line = Line::new();
    line.call();
    go(&mut line);
    line.pass(9_999);
    plain(&mut line, DAEMON);
    let done = go(&mut line);
    assert!(done.len() == 1 && is_emit(&done[0], DAEMON));
}

#[test]
fn grace_deadline_reached() {
    let mut line = Line::new();
    let call = line.call();
    go(&mut line);
    line.pass(9_999);
    assert_eq!(go(&mut line), []);
    line.pass(1);
    line.answered(call, Answer::Unavailable);
}

#[test]
fn checks_multiple_sockets_log_a_warning_and_use_the_first() {
    let mut line = Line::new();
    plain(&mut line, SECOND);
    line.pass(1);
    plain(&mut line, DAEMON);
    line.call();
    let done = go(&mut line);
    assert!(matches!(&done[0], Command::WarnSeveral { count: 2, .. }));
    assert!(done.len() == 2 && is_emit(&done[1], SECOND), "the oldest registration is the first");
}

#[test]
fn checks_target_is_the_caller() {
    let mut line = Line::new();
    line.register(CALLER);
    line.call();
    assert_eq!(errors(&go(&mut line)), [message::SAME_SOCKET]);
}

#[test]
fn race_ack_resolves() {
    let (mut line, call) = sent();
    line.board.handle_result(call, "done", line.now);
    line.answered(call, Answer::Result("done"));
}

#[test]
fn race_ack_throws_by_timeout() {
    let (mut line, _) = sent();
    line.pass(29_999);
    assert_eq!(go(&mut line), []);
    line.pass(1);
    assert_eq!(errors(&go(&mut line)), [message::TIMED_OUT]);
}

#[test]
fn race_ack_throws_by_an_error() {
    let (mut line, call) = sent();
    line.board.handle_unusable(call, line.now);
    assert_eq!(errors(&go(&mut line)), [message::INTERNAL]);
}

#[test]
fn presence_target_still_in_the_room_keeps_watching() {
    let (mut line, call) = sent();
    // Somebody else's end, and news of the target that are none.
    plain(&mut line, SECOND);
    line.disconnect(SECOND);
    line.register(DAEMON);
    line.pass(20_000);
    assert_eq!(go(&mut line), []);
    line.board.handle_result(call, "done", line.now);
    line.answered(call, Answer::Result("done"));
}

#[test]
fn presence_target_absent() {
    for cause in
        [Departure::Closed, Departure::TransportLost, Departure::ReplicaLost, Departure::Drained, Departure::Evicted]
    {
        let (mut line, _) = sent();
        line.leave(DAEMON, cause);
        assert_eq!(errors(&go(&mut line)), [message::TARGET_DISCONNECTED], "{cause:?}");
    }
    let (mut line, _) = sent();
    line.unregister(DAEMON);
    assert_eq!(errors(&go(&mut line)), [message::TARGET_DISCONNECTED]);
}

#[test]
fn presence_of_a_silent_replica_is_watched_until_there_is_proof() {
    let mut line = Line::new();
    line.board.handle_connect(DAEMON, "u".into(), 1, Traits::default(), line.now);
    line.board.handle_registered(DAEMON, "m".into(), Duration::ZERO, line.now).unwrap();
    line.call();
    go(&mut line);
    line.leave(DAEMON, Departure::ReplicaSilent);
    for _ in 0..5 {
        assert_eq!(go(&mut line), []);
        line.pass(1_000);
    }
    line.leave(DAEMON, Departure::ReplicaLost);
    assert_eq!(errors(&go(&mut line)), [message::TARGET_DISCONNECTED]);
}

#[test]
fn finally_the_watch_ends_with_the_call() {
    let (mut line, call) = sent();
    line.board.handle_result(call, "done", line.now);
    line.answered(call, Answer::Result("done"));
    line.disconnect(DAEMON);
    line.pass(60_000);
    assert_eq!(go(&mut line), []);
    let (mut line, _) = sent();
    line.disconnect(DAEMON);
    assert_eq!(errors(&go(&mut line)), [message::TARGET_DISCONNECTED]);
    line.pass(60_000);
    assert_eq!((go(&mut line), line.board.poll_timeout()), (Vec::new(), None));
}

#[test]
fn past_the_seed_a_daemon_that_may_hand_in_is_waited_for() {
    let mut line = Line::served();
    let call = line.call();
    go(&mut line);
    line.pass(3_000);
    line.disconnect(DAEMON);
    for _ in 0..3 {
        assert_eq!(go(&mut line), []);
        line.pass(1_000);
    }
    line.connect(SECOND);
    line.register(SECOND);
    assert_eq!(go(&mut line), []);
    assert!(line.board.handle_handed_in("u", call, "done", line.now));
    line.answered(call, Answer::Result("done"));
    assert_eq!(line.held, [(call, 0, 27_000)]);

    let mut line = Line::served();
    line.call();
    go(&mut line);
    line.disconnect(DAEMON);
    go(&mut line);
    for _ in 0..9 {
        line.pass(1_000);
        assert_eq!(go(&mut line), []);
    }
    line.pass(1_000);
    assert_eq!(errors(&go(&mut line)), [message::TARGET_DISCONNECTED], "it did not come back");
}
