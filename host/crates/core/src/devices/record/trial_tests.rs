//! What a trial counts, by simulated time.

use super::*;
use crate::experiments::Outcomes;
use crate::experiments::tests::experiment;
use crate::ids::SocketId;

/// The exposure.
const T: u64 = 1_800_000_000_000;
/// The horizon, the window and the ping interval of the experiment.
const HORIZON: u64 = 60_000;
const WINDOW: u64 = 2_500;
const PING: u32 = 25_000;

fn holder(socket: u128, at_ms: u64) -> Holder {
    let replica = "r".into();
    Holder {
        replica,
        socket: SocketId(socket),
        epoch: 0,
        accepted_ms: at_ms,
        has_proved: true,
        fingerprint: None,
        address: None,
    }
}

fn exposure(is_failed: bool) -> Exposure {
    experiment("e", &[5_000, 5_000]).exposure(1, is_failed).unwrap()
}

/// A device that has been held for an hour.
fn held() -> DeviceRecord {
    let at_ms = T - 3_600_000;
    DeviceRecord::default().accepted(holder(1, at_ms), Fate::Evicted, 0, at_ms)
}

/// A newcomer comes and is refused.
fn refused(record: &DeviceRecord, idle_ms: u32, at_ms: u64) -> DeviceRecord {
    record.exposed(&exposure(false), at_ms).silent_for(idle_ms).refused(at_ms)
}

/// A newcomer comes and gets the session.
fn flipped(record: &DeviceRecord, idle_ms: u32, socket: u128, at_ms: u64) -> DeviceRecord {
    let known = record.exposed(&exposure(false), at_ms).silent_for(idle_ms);
    known.accepted(holder(socket, at_ms), Fate::Evicted, 0, at_ms)
}

fn outcomes(record: &DeviceRecord, at_ms: u64) -> Outcomes {
    record.trial.as_ref().unwrap().outcomes(at_ms)
}

#[test]
fn a_device_that_no_arm_decided_for_has_no_trial() {
    let record = held().refused(T).accepted(holder(2, T), Fate::Evicted, 0, T);
    assert_eq!(record.trial, None);
    let exposed = record.exposed(&exposure(false), T);
    assert_eq!((exposed.epoch, exposed.trial.is_some()), (record.epoch, true));
}

#[test]
fn the_first_decision_exposes_and_later_ones_count() {
    let first = refused(&held(), 0, T);
    let trial = first.trial.as_ref().unwrap();
    assert_eq!((&*trial.experiment, &*trial.arm, &*trial.weights), ("e:salt", "treatment", &[5_000, 5_000][..]));
    assert_eq!((trial.exposed_ms, trial.ends_ms()), (T, T + HORIZON));
    let control = experiment("e", &[9_000, 1_000]).exposure(0, true).unwrap();
    let second = first.exposed(&control, T + 1_000).refused(T + 1_000);
    let trial = second.trial.as_ref().unwrap();
    assert_eq!((trial.exposed_ms, &*trial.arm, &*trial.weights), (T, "treatment", &[5_000, 5_000][..]), "as it was");
    assert_eq!((trial.decisions, trial.failures, trial.refused), (2, 1, 2));
    let another = Exposure { experiment: "f:salt".into(), ..control };
    let third = second.exposed(&another, T + 2_000).refused(T + 2_000);
    let trial = third.trial.as_ref().unwrap();
    assert_eq!((&*trial.experiment, trial.exposed_ms, trial.decisions, trial.refused), ("f:salt", T + 2_000, 1, 1));
}

#[test]
fn a_flip_takes_the_session_from_one_that_lives() {
    let one = flipped(&held(), 10_000, 2, T);
    assert_eq!((outcomes(&one, T).flips, one.flips), (1, 1));
    let two = flipped(&one, PING, 3, T + 10);
    assert_eq!(outcomes(&two, T + 10).flips, 2, "not longer than the interval");
    let three = flipped(&two, PING + 1, 4, T + 30_000);
    assert_eq!((outcomes(&three, T + 30_000).flips, three.flips), (2, 3), "half-open");
    // Its replica answered for the holder before it.
    let four = flipped(&three, PING + 1, 5, T + 30_010);
    assert_eq!(outcomes(&four, T + 30_010).flips, 3, "it was accepted only then");
    let gone = four.accepted(holder(6, T + 30_020), Fate::Gone(Departure::TransportLost), 0, T + 30_020);
    assert_eq!(outcomes(&gone, T + 30_020).flips, 3);
    let released = gone.released(Departure::Closed, T + 30_030);
    let free = released.accepted(holder(7, T + 30_040), Fate::Evicted, 0, T + 30_040);
    assert_eq!(outcomes(&free, T + 30_040).flips, 3);
}

#[test]
fn a_device_is_stranded_since_the_first_refusal_for_a_dead_holder() {
    // The holder was last heard of five seconds before the exposure, and its silence is found thirty later.
    let asked = refused(&refused(&held(), 5_000, T), 8_000, T + 3_000);
    let ended = asked.silent_for(35_000).released(Departure::TransportLost, T + 30_000);
    assert_eq!((outcomes(&asked, T + 29_999).stranded_ms, outcomes(&ended, T + 30_000).stranded_ms), (0, 30_000));
    // A sign of life between the refusals: only what came after it counts.
    let alive = refused(&refused(&held(), 5_000, T), 1_000, T + 3_000);
    let ended = alive.silent_for(28_000).released(Departure::TransportLost, T + 30_000);
    assert_eq!(outcomes(&ended, T + 30_000).stranded_ms, 27_000);
    // A sign of life after them: nothing does.
    let ended = alive.silent_for(26_000).released(Departure::TransportLost, T + 30_000);
    assert_eq!(outcomes(&ended, T + 30_000).stranded_ms, 0);
    // One that closes while it is heard of was none that strands; nor one of which nothing is known.
    for ended in [alive.silent_for(PING), alive.clone()] {
        let ended = ended.released(Departure::TransportLost, T + 30_000);
        assert_eq!(outcomes(&ended, T + 30_000).stranded_ms, 0);
    }
    // Evicted instead.
    let evicted = flipped(&alive, 28_000, 2, T + 30_000);
    assert_eq!((outcomes(&evicted, T + 30_000).stranded_ms, outcomes(&evicted, T + 30_000).flips), (27_000, 0));
    // What was refused in favour of one does not count for the next.
    let next = evicted.silent_for(26_000).released(Departure::TransportLost, T + 59_000);
    assert_eq!(outcomes(&next, T + 59_000).stranded_ms, 27_000);
}

#[test]
fn offline_is_what_dashboards_show() {
    let one = refused(&held(), 0, T);
    let silent = one.touched(DeviceStatus::Offline, false, 0, T + 1_000);
    assert_eq!((outcomes(&one, T + 900).offline_ms, outcomes(&silent, T + 4_000).offline_ms), (0, 3_000));
    let back = silent.touched(DeviceStatus::Online, false, 0, T + 5_000);
    assert_eq!(outcomes(&back, T + 9_000).offline_ms, 4_000);
    let gone = back.released(Departure::Closed, T + 10_000);
    assert_eq!(outcomes(&gone, T + 12_000).offline_ms, 4_000, "until it is said");
    let said = gone.offline(0, T + 15_000).accepted(holder(2, T + 16_000), Fate::Evicted, 0, T + 16_000);
    assert_eq!(outcomes(&said, T + 20_000).offline_ms, 5_000);
    let blocked = said.blocked(T + 50_000);
    assert_eq!(
        (outcomes(&blocked, T + 55_000).offline_ms, outcomes(&blocked, T + 90_000).offline_ms),
        (10_000, 15_000)
    );
    // It was offline when it was exposed.
    let silent = held().touched(DeviceStatus::Offline, false, 0, T - 1_000);
    assert_eq!(outcomes(&refused(&silent, 0, T), T + 700).offline_ms, 700);
}

#[test]
fn the_first_holder_that_is_kept_for_a_window_is_stable() {
    // The incumbent is kept.
    let one = refused(&held(), 0, T);
    let unstable = Outcomes { stable_ms: WINDOW - 1, is_stable: false, ..outcomes(&one, T) };
    assert_eq!(outcomes(&one, T + WINDOW - 1), unstable);
    assert_eq!((outcomes(&one, T + WINDOW).stable_ms, outcomes(&one, T + WINDOW).is_stable), (0, true));
    // It flips until a fifth one stays.
    let mut record = held();
    for number in 0..5 {
        record = flipped(&record, 0, 2 + number, T + 1_000 * number as u64);
    }
    let stable = outcomes(&record, T + 4_000 + WINDOW);
    assert_eq!((stable.stable_ms, stable.is_stable, stable.flips), (4_000, true, 5));
    // What comes after that does not change it.
    let later = flipped(&record, 0, 9, T + 30_000);
    assert_eq!(outcomes(&later, T + 30_001).stable_ms, 4_000);
    // Nobody is there for a while.
    let gone = refused(&held(), 0, T).released(Departure::Closed, T + 500);
    assert!(!outcomes(&gone, T + 59_000).is_stable);
    let back = gone.accepted(holder(2, T + 9_000), Fate::Evicted, 0, T + 9_000);
    assert_eq!(outcomes(&back, T + HORIZON).stable_ms, 9_000);
    assert_eq!(
        (outcomes(&gone, T + HORIZON).stable_ms, outcomes(&gone, T + 2 * HORIZON).stable_ms),
        (HORIZON, HORIZON)
    );
}

#[test]
fn a_burst_is_a_chain_of_opens() {
    // Opens 1,000 ms apart before the one that exposes it; before them one that is a window away from the first.
    let apart = T - 3_000 - WINDOW;
    let mut record = held().refused(apart);
    for at_ms in [T - 3_000, T - 2_000, T - 1_000] {
        record = record.refused(at_ms);
    }
    let exposed = flipped(&record, 0, 2, T);
    assert_eq!(exposed.trial.as_ref().unwrap().burst_ms, T - 3_000);
    assert_eq!(outcomes(&exposed, T + WINDOW).stable_ms, 3_000);
    let chained = flipped(&held().refused(T - WINDOW + 1), 0, 2, T);
    assert_eq!(chained.trial.as_ref().unwrap().burst_ms, T - WINDOW + 1);
}

#[test]
fn nothing_changes_after_the_horizon() {
    let end = T + HORIZON;
    let flips = |number: u64| flipped(&held(), 0, 2, T + number);
    let before = refused(&flips(0), 5_000, end - 2_000);
    let at_the_end = outcomes(&before, end);
    let silent = before.touched(DeviceStatus::Offline, false, 0, end - 1_000);
    let then = outcomes(&silent, end);
    assert_eq!((at_the_end.offline_ms, then.offline_ms, then.flips, then.refused), (0, 1_000, 1, 1));
    let mut record = silent;
    for step in 0..6 {
        let at_ms = end + step * 5_000;
        record = match step {
            0 => record.silent_for(40_000).released(Departure::TransportLost, at_ms),
            1 => record.accepted(holder(3, at_ms), Fate::Evicted, 0, at_ms),
            2 => record.exposed(&exposure(true), at_ms).refused(at_ms),
            3 => flipped(&record, 0, 4, at_ms),
            4 => record.blocked(at_ms),
            // It takes the session back that it had got within the horizon.
            _ => record.accepted(holder(5, T + 10_000), Fate::Gone(Departure::ReplicaLost), 0, at_ms),
        };
        assert_eq!(outcomes(&record, at_ms + 1), then, "step {step}");
        assert_eq!(outcomes(&record, u64::MAX), then, "step {step}");
    }
}

fn guard(record: &DeviceRecord) -> &Trial {
    record.trial.as_ref().unwrap().guard.as_deref().unwrap()
}

#[test]
fn a_guard_counts_a_treatment_that_comes_after_the_horizon() {
    // The control for a horizon; then the weights change and the device comes into the treatment.
    let control = experiment("e", &[9_500, 500]).exposure(0, false).unwrap();
    let first = held().exposed(&control, T).refused(T);
    let at_ms = T + HORIZON + 5_000;
    let again = first.exposed(&control, at_ms).refused(at_ms);
    assert_eq!(again.trial.as_ref().unwrap().guard, None, "the control has no guardrails");
    let closed = outcomes(&again, at_ms);
    let failed = again.exposed(&exposure(true), at_ms + 1_000).silent_for(500).refused(at_ms + 1_000);
    let failed = refused(&failed, 1_500, at_ms + 2_000);
    let found = guard(&failed).outcomes(at_ms + 2_000);
    assert_eq!((&*guard(&failed).arm, guard(&failed).exposed_ms), ("treatment", at_ms + 1_000));
    assert_eq!((found.decisions, found.failures, found.refused), (2, 1, 2));
    // The holder was half-open from then on.
    let ended = failed.silent_for(27_000).released(Departure::TransportLost, at_ms + 29_000).offline(0, at_ms + 29_000);
    let found = guard(&ended).outcomes(at_ms + 31_000);
    assert_eq!((found.stranded_ms, found.offline_ms), (0, 2_000), "a sign of life at 2,000");
    let ended = failed.silent_for(28_500).released(Departure::TransportLost, at_ms + 29_000);
    assert_eq!(guard(&ended).outcomes(at_ms + 29_000).stranded_ms, 28_000);
    assert_eq!(outcomes(&ended, at_ms + 29_000), closed, "the observation is as it was");
    // Of the same arm it begins anew when its own horizon is over, and ends with a decision of the control.
    let later_ms = at_ms + 1_000 + HORIZON;
    let later = refused(&ended, 0, later_ms);
    assert_eq!((guard(&later).exposed_ms, guard(&later).decisions), (later_ms, 1));
    assert_eq!(later.exposed(&control, later_ms + 1).trial.unwrap().guard, None);
    assert_eq!(guard(&later).guard, None);
}

#[test]
fn a_guard_counts_another_treatment_within_the_horizon() {
    let first = refused(&held(), 0, T);
    assert_eq!(refused(&first, 0, T + 1).trial.unwrap().guard, None, "it is the exposure's arm");
    let another = Exposure { arm: "other".into(), ..exposure(true) };
    let second = first.exposed(&another, T + 1_000).refused(T + 1_000);
    assert_eq!((&*guard(&second).arm, guard(&second).decisions, guard(&second).failures), ("other", 1, 1));
    assert_eq!((outcomes(&second, T + 1_000).decisions, &*second.trial.unwrap().arm), (2, "treatment"));
}
