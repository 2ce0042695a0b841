#![allow(clippy::unwrap_used)]

use pointwork_policy_sdk::parse_config;

use super::*;

/// A daemon that has just dropped off a replica that has served long, for the first time.
fn lost() -> Absence {
    Absence {
        cause: Departure::TransportLost,
        gone_ms: 0,
        departures: 1,
        returns_ms: vec![],
        waiting: 0,
        replica_age_ms: 3_600_000,
    }
}

fn wait_after(waited_ms: u32, absence: &Absence) -> u32 {
    let at = Moment { now_ms: 0, seed: 0, key: 0 };
    let call = Call { method: "m1:bash".into(), params_bytes: 0, waited_ms, left_ms: 30_000, attempt: 0 };
    Adaptive::configure(Config::default()).unwrap().wait(&at, &call, absence).unwrap()
}

fn wait(absence: &Absence) -> u32 {
    wait_after(0, absence)
}

#[test]
fn a_first_absence_is_waited_for_to_the_most() {
    assert_eq!(wait(&lost()), 20_000);
    assert_eq!(wait(&Absence { gone_ms: 5_000, ..lost() }), 15_000);
}

#[test]
fn the_slowest_recent_return_sets_the_span_within_the_bounds() {
    let returning = |returns_ms: &[u32]| Absence { returns_ms: returns_ms.to_vec(), ..lost() };
    assert_eq!(wait(&returning(&[1_000, 4_000, 2_000])), 6_000);
    assert_eq!(wait(&returning(&[100])), 2_000);
    assert_eq!(wait(&returning(&[u32::MAX])), 20_000);
}

#[test]
fn an_overdue_daemon_is_waited_for_only_shortly() {
    let overdue = Absence { gone_ms: 600_000, returns_ms: vec![4_000], ..lost() };
    assert_eq!(wait(&overdue), 2_000);
}

#[test]
fn leaving_on_purpose_is_waited_for_only_shortly() {
    for cause in [Departure::Closed, Departure::Unregistered] {
        assert_eq!(wait(&Absence { cause, ..lost() }), 2_000);
    }
}

#[test]
fn an_unknown_method_fails_fast_unless_the_replica_is_young() {
    let unknown = |replica_age_ms| Absence { cause: Departure::NeverSeen, replica_age_ms, ..lost() };
    assert_eq!(wait(&unknown(3_600_000)), 500);
    assert_eq!(wait(&unknown(5_000)), 10_000);
}

#[test]
fn waiting_calls_are_bounded_and_asking_again_does_not_start_anew() {
    assert_eq!(wait(&Absence { waiting: 256, ..lost() }), 0);
    assert_eq!(wait_after(3_000, &Absence { gone_ms: 3_000, ..lost() }), 17_000);
    assert_eq!(wait_after(20_000, &Absence { gone_ms: 20_000, ..lost() }), 0);
}

#[test]
fn a_method_has_its_own_bounds() {
    let config = parse_config(r#"{"methods": [{"pattern": "*:bash", "max_ms": 0}]}"#).unwrap();
    let at = Moment { now_ms: 0, seed: 0, key: 0 };
    let call = Call { method: "m1:bash".into(), params_bytes: 0, waited_ms: 0, left_ms: 30_000, attempt: 0 };
    assert_eq!(Adaptive::configure(config).unwrap().wait(&at, &call, &lost()), Ok(0));
}
