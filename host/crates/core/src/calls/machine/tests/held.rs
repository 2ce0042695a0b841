//! What callers are told of being held.

use super::harness::{CALLER, DAEMON, Harness, SECOND};
use super::*;

#[test]
fn a_call_that_waits_is_held_until_its_request_is_sent() {
    let mut harness = Harness::new();
    let call = harness.call();
    let ask = harness.asked(call);
    assert_eq!(harness.held, []);
    harness.pass(5);
    harness.wait(call, ask, 10_000);
    harness.told();
    assert_eq!(harness.held, [(call, 5, 10_000)]);
    harness.pass(2_000);
    harness.connect(DAEMON);
    harness.register(DAEMON);
    let (ask, ..) = harness.candidates();
    assert_eq!(harness.held.len(), 1, "not before it is sent");
    harness.choose(call, ask, 0);
    harness.told();
    assert_eq!(harness.held[1..], [(call, 2_005, 0)]);
}

#[test]
fn a_wait_beyond_the_deadline_is_told_as_one_to_it() {
    let mut harness = Harness::new();
    let call = harness.call();
    let ask = harness.asked(call);
    harness.wait(call, ask, u32::MAX);
    harness.told();
    assert_eq!(harness.held, [(call, 0, 30_000)]);
}

#[test]
fn a_call_that_is_not_held_is_told_nothing() {
    let mut harness = Harness::new();
    let call = harness.call();
    let ask = harness.asked(call);
    harness.wait(call, ask, 0);
    harness.answered(call, Answer::Unavailable);
    harness.connect(DAEMON);
    harness.register(DAEMON);
    let call = harness.call_in_flight();
    harness.disconnect(DAEMON);
    let (ask, ..) = harness.doubt();
    harness.judge(call, ask, Verdict::Abort);
    harness.answered(call, Answer::TargetDisconnected);
    assert_eq!(harness.held, []);
}

#[test]
fn a_doubt_is_told_once_and_so_is_its_end() {
    let mut harness = Harness::served();
    let call = harness.call_in_flight();
    harness.pass(1_000);
    harness.leave(DAEMON, Departure::ReplicaSilent);
    for _ in 0..3 {
        let (ask, ..) = harness.doubt();
        harness.judge(call, ask, Verdict::Hold(500));
        harness.told();
        harness.pass(500);
    }
    assert_eq!(harness.held, [(call, 0, 29_000)]);
    harness.connect(DAEMON);
    harness.register(DAEMON);
    harness.told();
    assert_eq!(harness.held[1..], [(call, 1_500, 0)]);
}

#[test]
fn a_call_that_waits_again_is_told_again() {
    let mut harness = Harness::new();
    let call = harness.call();
    let ask = harness.asked(call);
    harness.wait(call, ask, 10_000);
    harness.pass(1_000);
    harness.connect(DAEMON);
    harness.register(DAEMON);
    harness.told();
    harness.disconnect(DAEMON);
    // The pick has left.
    harness.choose(call, AskId(2), 0);
    let ask = harness.asked(call);
    harness.wait(call, ask, 4_000);
    harness.told();
    assert_eq!(harness.held, [(call, 0, 10_000), (call, 1_000, 4_000)]);
    harness.connect(CALLER);
    harness.connect(SECOND);
    harness.register(SECOND);
    let ask = harness.asked(call);
    harness.choose(call, ask, 0);
    harness.told();
    assert_eq!(harness.held.len(), 3);
}
