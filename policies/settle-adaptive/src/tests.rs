#![allow(clippy::unwrap_used)]

use pointwork_policy_sdk::parse_config;

use super::*;

const WINDOW_MS: u32 = 2_500;

/// An incumbent that is alive, in use, and accepted so long ago.
fn aged(age_ms: u32) -> Incumbent {
    Incumbent { liveness: Liveness::Alive, age_ms, idle_ms: 1_000, heartbeat_ms: 5_000, local: true }
}

fn decide_in(window_ms: u32, incumbent: &Incumbent, history: &[Event]) -> Verdict {
    let at = Moment { now_ms: 0, seed: 0, key: 0 };
    let newcomer = Newcomer { paired: true, same_fingerprint: true, same_address: true, polling: false };
    Adaptive::configure(Config::default()).unwrap().decide(&at, window_ms, incumbent, &newcomer, history).unwrap()
}

fn decide(incumbent: &Incumbent, history: &[Event]) -> Verdict {
    decide_in(WINDOW_MS, incumbent, history)
}

fn event(ago_ms: u32, what: Happening) -> Event {
    Event { ago_ms, what }
}

#[test]
fn without_duplicates_it_is_the_plain_window() {
    let plain = [event(1_000, Happening::Accepted), event(2_000, Happening::Lost), event(9_000, Happening::Accepted)];
    for history in [&plain[..], &[]] {
        assert_eq!(decide(&aged(1_000), history), Verdict::Refuse(1_500));
        assert_eq!(decide(&aged(2_500), history), Verdict::Accept);
    }
    assert_eq!(decide_in(0, &aged(0), &[]), Verdict::Accept);
}

#[test]
fn each_recent_duplicate_doubles_the_window_up_to_the_limit() {
    let refused = |times: usize| vec![event(1_000, Happening::Refused); times];
    assert_eq!(decide(&aged(8_000), &refused(1)), Verdict::Refuse(4_000));
    assert_eq!(decide(&aged(8_000), &refused(2)), Verdict::Refuse(9_000));
    assert_eq!(decide(&aged(8_000), &refused(16)), Verdict::Refuse(59_000));
    assert_eq!(decide(&aged(3_000), &[event(120_001, Happening::Refused)]), Verdict::Accept);
    assert_eq!(decide_in(u32::MAX, &aged(0), &refused(16)), Verdict::Refuse(u32::MAX));
}

/// The weakness of a fixed window: one open every 2.6 s flips the session each time.
#[test]
fn opens_spaced_just_over_the_window_flip_the_session_once() {
    let mut accepted_at_ms = 0;
    let mut happenings: Vec<(u32, Happening)> = vec![(0, Happening::Accepted)];
    let mut takeovers = 0;
    for now_ms in (1..=100).map(|n| n * 2_600) {
        let history: Vec<_> =
            happenings.iter().rev().take(16).map(|&(at_ms, what)| event(now_ms - at_ms, what)).collect();
        match decide(&aged(now_ms - accepted_at_ms), &history) {
            Verdict::Accept => {
                takeovers += 1;
                accepted_at_ms = now_ms;
                happenings.extend([(now_ms, Happening::Evicted), (now_ms, Happening::Accepted)]);
            }
            _ => happenings.push((now_ms, Happening::Refused)),
        }
    }
    assert_eq!(takeovers, 1);
}

#[test]
fn an_incumbent_gone_quiet_gives_way_at_once() {
    assert_eq!(decide(&Incumbent { idle_ms: 37_501, ..aged(1_000) }, &[]), Verdict::Accept);
    assert_eq!(decide(&Incumbent { heartbeat_ms: 90_001, ..aged(1_000) }, &[]), Verdict::Accept);
    assert_eq!(decide(&Incumbent { idle_ms: 37_500, heartbeat_ms: 90_000, ..aged(0) }, &[]), Verdict::Refuse(1));
}

/// A ping is unanswered after 25 s; one that lives holds a newcomer for the whole window, for its early return would stretch it.
#[test]
fn a_newcomer_comes_back_no_later_than_an_overdue_incumbent_counts_as_quiet() {
    let refused = [event(1_000, Happening::Refused); 16];
    let idle = |idle_ms| decide(&Incumbent { idle_ms, ..aged(90_000) }, &refused);
    assert_eq!(idle(25_000), Verdict::Refuse(59_000));
    assert_eq!(idle(25_001), Verdict::Refuse(12_500));
    assert_eq!((idle(37_500), idle(37_501)), (Verdict::Refuse(1), Verdict::Accept));
    assert_eq!(idle(u32::MAX), Verdict::Refuse(59_000));
    assert_eq!(
        decide(&Incumbent { idle_ms: 26_000, ..aged(1_000) }, &[]),
        Verdict::Refuse(1_500),
        "the window ends before"
    );
}

#[test]
fn what_is_not_known_is_not_held_against_the_incumbent() {
    let unknown = Incumbent { idle_ms: u32::MAX, heartbeat_ms: u32::MAX, ..aged(0) };
    assert_eq!(decide(&unknown, &[]), Verdict::Refuse(2_500));
}

#[test]
fn a_device_is_never_held_on_a_socket_that_may_be_dead() {
    for liveness in [Liveness::Doubtful, Liveness::Gone] {
        assert_eq!(decide(&Incumbent { liveness, ..aged(0) }, &[event(1, Happening::Refused)]), Verdict::Accept);
    }
}

#[test]
fn refuses_settings_under_which_nothing_or_too_long_is_held() {
    for json in [r#"{"idle_ms": 0}"#, r#"{"heartbeat_ms": 0}"#, r#"{"window_max_ms": 3600001}"#] {
        assert!(Adaptive::configure(parse_config(json).unwrap()).is_err());
    }
    assert!(parse_config::<Config>(r#"{"idle": 1}"#).is_err());
}
