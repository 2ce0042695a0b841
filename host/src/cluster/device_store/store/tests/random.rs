//! Records of all kinds.

use std::sync::Arc;

use fastrand::Rng;
use pointwork_core::SocketId;
use pointwork_core::decisions::{Departure, HISTORY_MAX, Happening};
use pointwork_core::devices::{DeviceRecord, DeviceStatus, Ended, Happened, Holder};
use pointwork_core::experiments::{Exposure, Trial};

const DEPARTURES: [Departure; 8] = [
    Departure::NeverSeen,
    Departure::Closed,
    Departure::Unregistered,
    Departure::TransportLost,
    Departure::ReplicaLost,
    Departure::ReplicaSilent,
    Departure::Drained,
    Departure::Evicted,
];
const HAPPENINGS: [Happening; 6] = [
    Happening::Accepted,
    Happening::Refused,
    Happening::Evicted,
    Happening::Lost,
    Happening::Closed,
    Happening::Refreshed,
];
const STATUSES: [DeviceStatus; 3] = [DeviceStatus::Offline, DeviceStatus::Online, DeviceStatus::Provisioning];
const REPLICAS: [&str; 3] = ["r-1", "r-2", "00ff"];
const CODES: [&str; 4] = ["", "c-1", "c-2", "ü\n\"\\\u{0}"];

/// Any record.
pub(in crate::cluster::device_store) fn record(random: &mut Rng) -> DeviceRecord {
    let holder = random.bool().then(|| holder(random));
    let ended = holder.is_none().then(|| random.bool().then(|| ended(random))).flatten();
    let events = random.usize(..=HISTORY_MAX);
    let happened = |_| Happened { at_ms: number(random), what: *random.choice(&HAPPENINGS).unwrap() };
    let events = (0..events).map(happened).collect();
    DeviceRecord {
        epoch: number(random),
        holder,
        ended,
        events,
        flips: number(random),
        refusals: number(random),
        status: *random.choice(&STATUSES).unwrap(),
        is_blocked: random.u8(..4) == 0,
        is_paired: random.u8(..3) == 0,
        owner: maybe(random, &["o", "", "ö\"\\\n"]),
        pairing_code: maybe(random, &CODES),
        last_seen_ms: number(random),
        trial: random.bool().then(|| Box::new(trial(random))),
    }
}

fn trial(random: &mut Rng) -> Trial {
    let exposure = Exposure {
        experiment: (*random.choice(&["e:s", "f:ö\"\\"]).unwrap()).to_owned(),
        arm: "treatment".to_owned(),
        is_control: false,
        weights: vec![random.u32(..), random.u32(..)],
        horizon_ms: random.u32(..),
        window_ms: random.u32(..),
        silence_ms: random.u32(..),
        is_failed: random.bool(),
    };
    let mut trial = *DeviceRecord::default().exposed(&exposure, number(random)).trial.unwrap();
    for count in [&mut trial.decisions, &mut trial.failures, &mut trial.flips, &mut trial.refused] {
        *count = random.u32(..);
    }
    (trial.stranded_ms, trial.offline_ms, trial.burst_ms) = (number(random), number(random), number(random));
    let times =
        [&mut trial.offline_since_ms, &mut trial.refused_since_ms, &mut trial.holder_since_ms, &mut trial.stable_ms];
    for time in times {
        *time = random.bool().then(|| number(random));
    }
    trial.guard = random.bool().then(|| Box::new(self::trial(random)));
    trial
}

fn holder(random: &mut Rng) -> Holder {
    Holder {
        replica: (*random.choice(&REPLICAS).unwrap()).into(),
        socket: SocketId(random.u128(..)),
        epoch: number(random),
        accepted_ms: number(random),
        has_proved: random.bool(),
        fingerprint: random.bool().then(|| number(random)),
        address: random.bool().then(|| number(random)),
    }
}

fn ended(random: &mut Rng) -> Ended {
    Ended {
        how: *random.choice(&DEPARTURES).unwrap(),
        at_ms: number(random),
        replica: (*random.choice(&REPLICAS).unwrap()).into(),
    }
}

/// Small ones, and those that no floating-point number holds.
fn number(random: &mut Rng) -> u64 {
    let bits = random.u32(..64);
    random.u64(..) >> bits
}

fn maybe(random: &mut Rng, texts: &[&str]) -> Option<Arc<str>> {
    random.bool().then(|| (*random.choice(texts).unwrap()).into())
}
