//! Settles in the arms of an experiment: what is asked with, what is written, what is found at a holder's end.

use super::*;

fn exposure(arm: &str, is_failed: bool) -> Exposure {
    Exposure {
        experiment: "e:s".into(),
        arm: arm.into(),
        is_control: false,
        weights: vec![5_000, 5_000],
        horizon_ms: 120_000,
        window_ms: 2_500,
        silence_ms: 25_000,
        is_failed,
    }
}

fn trial(replica: &Replica) -> Trial {
    *replica.record().trial.unwrap()
}

fn arms(said: &[DeviceCommand]) -> Vec<(SessionOutcome, Option<&str>)> {
    let events = said.iter().filter_map(|command| match command {
        DeviceCommand::Event(event) => Some(event),
        _ => None,
    });
    events.map(|event| (event.outcome, event.exposure.as_ref().map(|exposure| &*exposure.arm))).collect()
}

#[test]
fn the_arm_is_written_with_what_was_decided_and_asked_with_the_next_time() {
    let mut replica = Replica::wide();
    assert_eq!(arms(&replica.come(ONE, "d")), [(SessionOutcome::Accepted, None)], "settle is not asked");
    assert_eq!(replica.record().trial, None);
    replica.exposure = Some(exposure("treatment", true));
    let before = replica.record();
    assert_eq!(arms(&replica.come(TWO, "d")), [(SessionOutcome::Refused, Some("treatment"))]);
    assert_eq!(replica.told, (None, None));
    assert_eq!((replica.record().refusals, trial(&replica).refused), (before.refusals + 1, 1));
    assert_eq!((trial(&replica).decisions, trial(&replica).failures), (1, 1));
    let before = replica.record();
    (replica.exposure, replica.verdict) = (Some(exposure("treatment", false)), Some(SettleVerdict::Accept));
    let said = replica.come(THREE, "d");
    assert_eq!(arms(&said), [(SessionOutcome::Evicted, None), (SessionOutcome::Accepted, Some("treatment"))]);
    assert_eq!((&replica.told.0, &replica.told.1), (&before.trial, &None));
    assert_eq!((trial(&replica).flips, trial(&replica).decisions, trial(&replica).failures), (1, 2, 1));
}

#[test]
fn a_settle_that_is_decided_again_is_told_its_arm() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    (replica.exposure, replica.verdict) = (Some(exposure("treatment", false)), Some(SettleVerdict::Accept));
    replica.loses = 2;
    let said = replica.come(TWO, "d");
    assert!(is_registered(&said, TWO));
    assert_eq!(replica.told, (None, Some(Box::new(exposure("treatment", false)))));
    assert_eq!((trial(&replica).flips, trial(&replica).decisions), (1, 1), "what was not written does not count");
    replica.come(THREE, "d");
    assert_eq!(replica.told.1, None, "it is the register's, not the device's");
}

#[test]
fn a_verdict_without_an_arm_exposes_nobody() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    replica.come(TWO, "d");
    assert_eq!((replica.record().refusals, replica.record().trial), (1, None));
    replica.holds_settle = true;
    replica.exposure = Some(exposure("treatment", false));
    replica.come(THREE, "d");
    replica.pass(5_000);
    assert_eq!((replica.record().refusals, replica.record().trial), (2, None), "nobody answered in time");
}

/// Two newcomers are refused, 1,000 and 2,000 ms after the holder was accepted. Each time the transport knows better than what
/// came as events: it is heard of until `heard_ms`. Then it is `ends_ms`.
fn half_open(heard_ms: u64, ends_ms: u64) -> Replica {
    let mut replica = Replica::wide();
    replica.exposure = Some(exposure("treatment", false));
    replica.verdict = Some(SettleVerdict::Refuse(1_000));
    replica.come(ONE, "d");
    let began_ms = replica.ms;
    for (at_ms, newcomer) in [(1_000, Some(TWO)), (2_000, Some(THREE)), (ends_ms, None)] {
        replica.pass(began_ms + at_ms - replica.ms);
        let (at, silent_ms) = (replica.at(), at_ms.saturating_sub(heard_ms));
        replica.sessions.handle_heard(ONE, u32::try_from(silent_ms).unwrap(), at);
        newcomer.map(|newcomer| replica.come(newcomer, "d"));
    }
    replica
}

#[test]
fn a_holder_that_ends_in_silence_had_stranded_its_device() {
    let mut replica = half_open(0, 45_000);
    replica.close(ONE);
    assert_eq!((trial(&replica).refused, trial(&replica).stranded_ms), (2, 44_000));
    let mut replica = half_open(1_500, 45_000);
    replica.close(ONE);
    assert_eq!(trial(&replica).stranded_ms, 43_000, "it lived after the first refusal");
    let mut replica = half_open(40_000, 45_000);
    replica.close(ONE);
    assert_eq!(trial(&replica).stranded_ms, 0);
}

#[test]
fn one_that_is_evicted_in_silence_is_no_flip() {
    for (heard_ms, expected) in [(0, (0, 29_000)), (10_000, (1, 0))] {
        let mut replica = half_open(heard_ms, 30_000);
        replica.verdict = Some(SettleVerdict::Accept);
        replica.come(SocketId(4), "d");
        assert_eq!((trial(&replica).flips, trial(&replica).stranded_ms), expected);
        assert_eq!(replica.record().flips, 1);
    }
}
