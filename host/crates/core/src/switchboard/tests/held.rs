//! What callers are told of being held.

use super::line::{CALLER, DAEMON, Line, SECOND};
use super::*;

#[test]
fn a_call_that_waits_is_held_until_its_request_is_sent() {
    let mut line = Line::new();
    let call = line.call();
    let ask = line.asked(call);
    assert_eq!(line.held, []);
    line.pass(5);
    line.wait(call, ask, 10_000);
    line.told();
    assert_eq!(line.held, [(call, 5, 10_000)]);
    line.pass(2_000);
    line.connect(DAEMON);
    line.register(DAEMON);
    let (ask, ..) = line.candidates();
    assert_eq!(line.held.len(), 1, "not before it is sent");
    line.choose(call, ask, 0);
    line.told();
    assert_eq!(line.held[1..], [(call, 2_005, 0)]);
}

#[test]
fn a_wait_beyond_the_deadline_is_told_as_one_to_it() {
    let mut line = Line::new();
    let call = line.call();
    let ask = line.asked(call);
    line.wait(call, ask, u32::MAX);
    line.told();
    assert_eq!(line.held, [(call, 0, 30_000)]);
}

#[test]
fn a_call_that_is_not_held_is_told_nothing() {
    let mut line = Line::new();
    let call = line.call();
    let ask = line.asked(call);
    line.wait(call, ask, 0);
    line.answered(call, Answer::Unavailable);
    line.connect(DAEMON);
    line.register(DAEMON);
    let call = line.call_in_flight();
    line.disconnect(DAEMON);
    let (ask, ..) = line.doubt();
    line.judge(call, ask, Verdict::Abort);
    line.answered(call, Answer::TargetDisconnected);
    assert_eq!(line.held, []);
}

#[test]
fn a_doubt_is_told_once_and_so_is_its_end() {
    let mut line = Line::served();
    let call = line.call_in_flight();
    line.pass(1_000);
    line.leave(DAEMON, Departure::ReplicaSilent);
    for _ in 0..3 {
        let (ask, ..) = line.doubt();
        line.judge(call, ask, Verdict::Hold(500));
        line.told();
        line.pass(500);
    }
    assert_eq!(line.held, [(call, 0, 29_000)]);
    line.connect(DAEMON);
    line.register(DAEMON);
    line.told();
    assert_eq!(line.held[1..], [(call, 1_500, 0)]);
}

#[test]
fn a_call_that_waits_again_is_told_again() {
    let mut line = Line::new();
    let call = line.call();
    let ask = line.asked(call);
    line.wait(call, ask, 10_000);
    line.pass(1_000);
    line.connect(DAEMON);
    line.register(DAEMON);
    line.told();
    line.disconnect(DAEMON);
    // The pick has left.
    line.choose(call, AskId(2), 0);
    let ask = line.asked(call);
    line.wait(call, ask, 4_000);
    line.told();
    assert_eq!(line.held, [(call, 0, 10_000), (call, 1_000, 4_000)]);
    line.connect(CALLER);
    line.connect(SECOND);
    line.register(SECOND);
    let ask = line.asked(call);
    line.choose(call, ask, 0);
    line.told();
    assert_eq!(line.held.len(), 3);
}
