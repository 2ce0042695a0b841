//! The control flow of the seed's rpc-call, each branch by its name, with the native rules as policies.

use super::harness::{CALLER, DAEMON, Harness, SECOND};
use super::*;
use crate::calls::answer::message;
use crate::decisions::rules::{GRACE_MS, RECHECK_MS};
use crate::decisions::{Absence, Candidate, rules};

/// Answers every open question by the native rules and gives what else there is to do.
fn go(harness: &mut Harness) -> Vec<CallCommand<&'static str>> {
    let mut done = Vec::new();
    loop {
        let told = harness.told();
        if told.is_empty() {
            return done;
        }
        for command in told {
            match command {
                CallCommand::AskTarget { call, ask, candidates, .. } => choose(harness, call, ask, &candidates),
                CallCommand::AskGrace { call, ask, absence, .. } => wait(harness, call, ask, &absence),
                CallCommand::AskPresence { call, ask, doubt, .. } => {
                    harness.judge(call, ask, rules::presence(&doubt, RECHECK_MS, GRACE_MS));
                }
                other => done.push(other),
            }
        }
    }
}

fn choose(harness: &mut Harness, call: CallId, ask: AskId, candidates: &[Candidate]) {
    harness.machine.handle_choice(call, ask, rules::target(candidates), harness.now);
}

fn wait(harness: &mut Harness, call: CallId, ask: AskId, absence: &Absence) {
    harness.wait(call, ask, rules::grace(absence, GRACE_MS));
}

/// A daemon that cannot hand in its result, as all were in the seed.
fn plain(harness: &mut Harness, socket: SocketId) {
    harness.machine.handle_connect(socket, "u".into(), 0, Traits { local: true, ..Traits::default() }, harness.now);
    harness.register(socket);
}

fn is_emit(command: &CallCommand<&'static str>, to: SocketId) -> bool {
    matches!(command, CallCommand::Emit { target, .. } if *target == to)
}

fn errors(commands: &[CallCommand<&'static str>]) -> Vec<&'static str> {
    let error = |command: &CallCommand<&'static str>| match command {
        CallCommand::Answer { answer, .. } => answer.error(),
        _ => None,
    };
    commands.iter().filter_map(error).collect()
}

/// In flight to a plain daemon.
fn sent() -> (Harness, CallId) {
    let mut harness = Harness::new();
    plain(&mut harness, DAEMON);
    let call = harness.call();
    assert!(is_emit(&go(&mut harness)[0], DAEMON));
    (harness, call)
}

#[test]
fn input_validation_method_name_invalid() {
    let mut harness = Harness::new();
    let told = |refused: Result<CallId, CallRefused>| refused.unwrap_err().message();
    assert_eq!(told(harness.try_call("")), message::METHOD_REQUIRED);
    assert_eq!(told(harness.try_call(&"m".repeat(4_097))), message::METHOD_REQUIRED);
    assert_eq!(go(&mut harness), []);
}

#[test]
fn resolve_returns_a_target() {
    let (harness, call) = sent();
    assert_eq!(harness.machine.poll_timeout(), Some(Time::from_millis(30_000)));
    assert_eq!(harness.held, [], "{call:?} did not wait");
}

#[test]
fn resolve_with_a_peer_that_does_not_respond_is_nobody_here() {
    let mut harness = Harness::new();
    harness.serve_remotely(DAEMON, 1_000);
    harness.leave(DAEMON, Departure::ReplicaSilent);
    let call = harness.call();
    assert_eq!(go(&mut harness), []);
    assert_eq!(harness.held, [(call, 0, 10_000)]);
}

#[test]
fn resolve_returns_nobody_and_the_grace_begins() {
    let mut harness = Harness::new();
    let call = harness.call();
    assert_eq!(go(&mut harness), []);
    assert_eq!((harness.machine.load().waiting, harness.held.as_slice()), (1, [(call, 0, 10_000)].as_slice()));
}

#[test]
fn grace_room_gained_a_member() {
    let mut harness = Harness::new();
    harness.call();
    go(&mut harness);
    harness.pass(9_999);
    plain(&mut harness, DAEMON);
    let done = go(&mut harness);
    assert!(done.len() == 1 && is_emit(&done[0], DAEMON));
}

#[test]
fn grace_deadline_reached() {
    let mut harness = Harness::new();
    let call = harness.call();
    go(&mut harness);
    harness.pass(9_999);
    assert_eq!(go(&mut harness), []);
    harness.pass(1);
    harness.answered(call, Answer::Unavailable);
}

#[test]
fn checks_multiple_sockets_log_a_warning_and_use_the_first() {
    let mut harness = Harness::new();
    plain(&mut harness, SECOND);
    harness.pass(1);
    plain(&mut harness, DAEMON);
    harness.call();
    let done = go(&mut harness);
    assert!(matches!(&done[0], CallCommand::WarnSeveral { count: 2, .. }));
    assert!(done.len() == 2 && is_emit(&done[1], SECOND), "the oldest registration is the first");
}

#[test]
fn checks_target_is_the_caller() {
    let mut harness = Harness::new();
    harness.register(CALLER);
    harness.call();
    assert_eq!(errors(&go(&mut harness)), [message::SAME_SOCKET]);
}

#[test]
fn race_ack_resolves() {
    let (mut harness, call) = sent();
    harness.machine.handle_result(call, "done", harness.now);
    harness.answered(call, Answer::Result("done"));
}

#[test]
fn race_ack_throws_by_timeout() {
    let (mut harness, _) = sent();
    harness.pass(29_999);
    assert_eq!(go(&mut harness), []);
    harness.pass(1);
    assert_eq!(errors(&go(&mut harness)), [message::TIMED_OUT]);
}

#[test]
fn race_ack_throws_by_an_error() {
    let (mut harness, call) = sent();
    harness.machine.handle_unusable(call, harness.now);
    assert_eq!(errors(&go(&mut harness)), [message::INTERNAL]);
}

#[test]
fn presence_target_still_in_the_room_keeps_watching() {
    let (mut harness, call) = sent();
    // Somebody else's end, and news of the target that are none.
    plain(&mut harness, SECOND);
    harness.disconnect(SECOND);
    harness.register(DAEMON);
    harness.pass(20_000);
    assert_eq!(go(&mut harness), []);
    harness.machine.handle_result(call, "done", harness.now);
    harness.answered(call, Answer::Result("done"));
}

#[test]
fn presence_target_absent() {
    for cause in
        [Departure::Closed, Departure::TransportLost, Departure::ReplicaLost, Departure::Drained, Departure::Evicted]
    {
        let (mut harness, _) = sent();
        harness.leave(DAEMON, cause);
        assert_eq!(errors(&go(&mut harness)), [message::TARGET_DISCONNECTED], "{cause:?}");
    }
    let (mut harness, _) = sent();
    harness.unregister(DAEMON);
    assert_eq!(errors(&go(&mut harness)), [message::TARGET_DISCONNECTED]);
}

#[test]
fn presence_of_a_silent_replica_is_watched_until_there_is_proof() {
    let mut harness = Harness::new();
    harness.machine.handle_connect(DAEMON, "u".into(), 1, Traits::default(), harness.now);
    harness.machine.handle_registered(DAEMON, "m".into(), Duration::ZERO, harness.now).unwrap();
    harness.call();
    go(&mut harness);
    harness.leave(DAEMON, Departure::ReplicaSilent);
    for _ in 0..5 {
        assert_eq!(go(&mut harness), []);
        harness.pass(1_000);
    }
    harness.leave(DAEMON, Departure::ReplicaLost);
    assert_eq!(errors(&go(&mut harness)), [message::TARGET_DISCONNECTED]);
}

#[test]
fn asks_presence_no_more_after_the_call_ended() {
    let (mut harness, call) = sent();
    harness.machine.handle_result(call, "done", harness.now);
    harness.answered(call, Answer::Result("done"));
    harness.disconnect(DAEMON);
    harness.pass(60_000);
    assert_eq!(go(&mut harness), []);
    let (mut harness, _) = sent();
    harness.disconnect(DAEMON);
    assert_eq!(errors(&go(&mut harness)), [message::TARGET_DISCONNECTED]);
    harness.pass(60_000);
    assert_eq!((go(&mut harness), harness.machine.poll_timeout()), (Vec::new(), None));
}

#[test]
fn past_the_seed_a_daemon_that_may_hand_in_is_waited_for() {
    let mut harness = Harness::served();
    let call = harness.call();
    go(&mut harness);
    harness.pass(3_000);
    harness.disconnect(DAEMON);
    for _ in 0..3 {
        assert_eq!(go(&mut harness), []);
        harness.pass(1_000);
    }
    harness.connect(SECOND);
    harness.register(SECOND);
    assert_eq!(go(&mut harness), []);
    assert!(harness.machine.handle_handed_in("u", call, "done", harness.now));
    harness.answered(call, Answer::Result("done"));
    assert_eq!(harness.held, [(call, 0, 27_000)]);

    let mut harness = Harness::served();
    harness.call();
    go(&mut harness);
    harness.disconnect(DAEMON);
    go(&mut harness);
    for _ in 0..9 {
        harness.pass(1_000);
        assert_eq!(go(&mut harness), []);
    }
    harness.pass(1_000);
    assert_eq!(errors(&go(&mut harness)), [message::TARGET_DISCONNECTED], "it did not come back");
}
