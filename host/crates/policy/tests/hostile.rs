//! If a guest misbehaves while it decides, the native rule answers, with the matching kind of failure.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod guest;

use guest::{Guest, pick, questions};
use pointwork_policy::target::Choice;
use pointwork_policy::{Breaker, By, Engine, FailureKind, Policy, SlotLimits, SlotStatus, Target};
use std::time::{Duration, Instant};

fn policy(guest: &Guest) -> Policy<Target> {
    let limits = SlotLimits { instances_max: 2, ..SlotLimits::default() };
    let policy = Policy::new(&Engine::new().unwrap(), limits);
    policy.load(&guest.wasm(), "{}").unwrap();
    policy
}

/// Decides once more often than there are warm instances, so that one made on demand fails as well.
fn fails(guest: &Guest, kind: FailureKind) -> SlotStatus {
    let policy = policy(guest);
    for _ in 0..3 {
        let decision = policy.decide(&questions::target(2), || Choice::Pick(1));
        assert_eq!(decision.by, By::Native { reason: Some(kind) }, "{:?}", policy.status().last_failure);
        assert_eq!(decision.verdict, Choice::Pick(1));
    }
    let status = policy.status();
    assert_eq!((status.calls, status.native), (3, 3));
    assert_eq!(status.failures.get(kind.as_str()), Some(&3));
    assert_eq!(status.last_failure.as_ref().map(|failure| failure.kind), Some(kind));
    status
}

#[test]
fn stops_an_endless_loop_each_time() {
    let started = Instant::now();
    fails(&Guest::target("(loop $forever (br $forever)) unreachable"), FailureKind::Deadline);
    assert!(started.elapsed() < Duration::from_secs(5), "three deadlines of 4 ms, and a compilation");
}

#[test]
fn a_trap_message_names_the_functions() {
    let guest = Guest::target("call $choose_badly").extra("(func $choose_badly (result i32) unreachable)");
    let message = fails(&guest, FailureKind::Trap).last_failure.unwrap().message;
    assert!(message.contains("unreachable") && message.contains("choose_badly"), "{message}");
}

#[test]
fn reports_endless_recursion_as_a_stack_failure() {
    let guest = Guest::target("call $again").extra("(func $again (result i32) call $again i32.const 1 i32.add)");
    fails(&guest, FailureKind::Stack);
}

#[test]
fn reports_endless_allocation_as_a_memory_failure() {
    let body = "(loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable";
    fails(&Guest::target(body), FailureKind::Memory);
}

#[test]
fn a_guest_may_continue_after_it_is_denied_memory() {
    let body = format!("(drop (memory.grow (i32.const 60000))) {}", pick("i32.const 0"));
    let decision = policy(&Guest::target(body)).decide(&questions::target(2), || Choice::Reject);
    assert_eq!(decision.verdict, Choice::Pick(0));
}

#[test]
fn rejects_an_answer_that_is_no_variant() {
    fails(&Guest::target(guest::variant(9, "i32.const 0")), FailureKind::OutOfBounds);
}

#[test]
fn the_policy_decides_again_after_a_trap() {
    let body = format!("(if (i32.eq (local.get $count) (i32.const 1)) (then unreachable)) {}", pick("i32.const 0"));
    let policy = Policy::<Target>::new(&Engine::new().unwrap(), SlotLimits::default())
        .with_breaker(Breaker { failures_max: 51, window_ms: 1_000 });
    policy.load(&Guest::target(body).wasm(), "{}").unwrap();
    for _ in 0..50 {
        let bad = policy.decide(&questions::target(1), || Choice::Reject);
        assert_eq!(bad.by, By::Native { reason: Some(FailureKind::Trap) });
        let good = policy.decide(&questions::target(2), || Choice::Reject);
        assert_eq!(good.by, By::Wasm { generation: 1 });
    }
}

#[test]
fn bounds_the_handles_of_a_guest() {
    let guest = Guest::target("(loop $more (drop (call $get-stderr)) (br $more)) unreachable").says("");
    let message = fails(&guest, FailureKind::Trap).last_failure.unwrap().message;
    assert!(message.contains("streams and pollables"), "{message}");
}

#[test]
fn the_same_seed_gives_the_same_random_numbers() {
    let body = pick("(i32.wrap_i64 (i64.rem_u (call $random) (i64.const 32)))");
    let policy = policy(&Guest::target(body).with_random());
    let ask = |seed| {
        let mut question = questions::target(32);
        question.at.seed = seed;
        match policy.decide(&question, || panic!("not native")).verdict {
            Choice::Pick(index) => index,
            Choice::Reject => panic!("not rejected"),
        }
    };
    let first: Vec<u32> = (0..16).map(ask).collect();
    let again: Vec<u32> = (0..16).map(ask).collect();
    assert_eq!(first, again);
    assert!(first.iter().any(|index| *index != first[0]), "{first:?}");
}
