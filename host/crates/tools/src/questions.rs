//! Makes up random questions for every slot, in which each bound, each enum value and the extremes of each number occur.

use fastrand::Rng;
use pointwork_contract as contract;
use pointwork_core::decisions::{
    Absence, CANDIDATES_MAX, Call, Candidate, Departure, Doubt, Event, HISTORY_MAX, Happening, Incumbent, Liveness,
    Newcomer, RETURNS_MAX, Traits,
};
use pointwork_policy::{Grace, Presence, Settle, Slot, Target, contract::Moment};

/// A slot for which questions can be made up.
pub trait Generated: Slot {
    /// A question within the contract's bounds.
    fn question(rng: &mut Rng) -> Self::Question;
}

impl Generated for Target {
    fn question(rng: &mut Rng) -> Self::Question {
        contract::target_question(moment(rng), &call(rng), &some_candidates(rng))
    }
}

impl Generated for Grace {
    fn question(rng: &mut Rng) -> Self::Question {
        contract::grace_question(moment(rng), &call(rng), &absence(rng))
    }
}

impl Generated for Presence {
    fn question(rng: &mut Rng) -> Self::Question {
        contract::presence_question(moment(rng), &call(rng), &doubt(rng))
    }
}

impl Generated for Settle {
    fn question(rng: &mut Rng) -> Self::Question {
        let window_ms = window_ms(rng);
        let incumbent = incumbent(rng, window_ms);
        contract::settle_question(moment(rng), window_ms, &incumbent, &newcomer(rng), &history(rng))
    }
}

/// A moment of the next centuries, with any seed and any key.
pub fn moment(rng: &mut Rng) -> Moment {
    Moment { now_ms: rng.u64(..1 << 44), seed: rng.u64(..), key: rng.u64(..) }
}

/// A call.
pub fn call(rng: &mut Rng) -> Call {
    let methods = ["bash", "machine-1:readFile", "", "ärger", "a.b*c?"];
    let method = match rng.u8(..8) {
        0 => "m".repeat(rng.usize(..=4_096)),
        index => methods[usize::from(index) % methods.len()].to_owned(),
    };
    Call {
        method: method.into(),
        params_bytes: number(rng),
        waited_ms: number(rng),
        left_ms: number(rng),
        attempt: rng.u32(..5),
    }
}

/// `count` candidates.
pub fn candidates(rng: &mut Rng, count: usize) -> Vec<Candidate> {
    (0..count).map(|_| candidate(rng)).collect()
}

/// At least one candidate, and at most as many as the contract allows.
pub fn some_candidates(rng: &mut Rng) -> Vec<Candidate> {
    let count = rng.usize(1..=CANDIDATES_MAX);
    candidates(rng, count)
}

/// An absence.
pub fn absence(rng: &mut Rng) -> Absence {
    Absence {
        cause: departure(rng),
        gone_ms: number(rng),
        departures: number(rng),
        returns_ms: returns(rng),
        waiting: number(rng),
        replica_age_ms: number(rng),
    }
}

/// A doubt.
pub fn doubt(rng: &mut Rng) -> Doubt {
    Doubt {
        cause: departure(rng),
        since_ms: number(rng),
        sent_ms: number(rng),
        resumable: rng.bool(),
        returned: rng.bool(),
        departures: number(rng),
        returns_ms: returns(rng),
    }
}

/// A settle window in milliseconds, within the bounds of the setting.
pub fn window_ms(rng: &mut Rng) -> u32 {
    if rng.bool() { 2_500 } else { rng.u32(..=3_600_000) }
}

/// An incumbent, whose age is often close to the window.
pub fn incumbent(rng: &mut Rng, window_ms: u32) -> Incumbent {
    let age_ms = match rng.u8(..4) {
        0 => number(rng),
        1 => rng.u32(..=window_ms),
        _ => window_ms.saturating_add(rng.u32(..3)).saturating_sub(1),
    };
    Incumbent {
        liveness: one_of(rng, &[Liveness::Alive, Liveness::Doubtful, Liveness::Gone]),
        age_ms,
        idle_ms: number(rng),
        heartbeat_ms: number(rng),
        local: rng.bool(),
    }
}

/// A newcomer.
pub fn newcomer(rng: &mut Rng) -> Newcomer {
    Newcomer { paired: rng.bool(), same_fingerprint: rng.bool(), same_address: rng.bool(), polling: rng.bool() }
}

/// The last events of a device.
pub fn history(rng: &mut Rng) -> Vec<Event> {
    let happenings = [
        Happening::Accepted,
        Happening::Refused,
        Happening::Evicted,
        Happening::Lost,
        Happening::Closed,
        Happening::Refreshed,
    ];
    let count = rng.usize(..=HISTORY_MAX);
    (0..count).map(|_| Event { ago_ms: number(rng), what: one_of(rng, &happenings) }).collect()
}

fn candidate(rng: &mut Rng) -> Candidate {
    Candidate {
        replica: rng.u32(..4),
        registered_ms: number(rng),
        idle_ms: number(rng),
        in_flight: rng.u32(..8),
        answer_us: number(rng),
        unanswered: rng.u32(..3),
        traits: Traits {
            local: rng.bool(),
            recovered: rng.bool(),
            draining: rng.bool(),
            resumable: rng.bool(),
            foreign: rng.bool(),
            caller: rng.bool(),
        },
    }
}

fn departure(rng: &mut Rng) -> Departure {
    let departures = [
        Departure::NeverSeen,
        Departure::Closed,
        Departure::Unregistered,
        Departure::TransportLost,
        Departure::ReplicaLost,
        Departure::ReplicaSilent,
        Departure::Drained,
        Departure::Evicted,
    ];
    one_of(rng, &departures)
}

fn returns(rng: &mut Rng) -> Vec<u32> {
    let count = rng.usize(..=RETURNS_MAX);
    (0..count).map(|_| number(rng)).collect()
}

fn one_of<T: Copy>(rng: &mut Rng, values: &[T]) -> T {
    values[rng.usize(..values.len())]
}

/// A small number, any number, or an extreme.
fn number(rng: &mut Rng) -> u32 {
    match rng.u8(..6) {
        0 => 0,
        1 => u32::MAX,
        2 => rng.u32(..),
        _ => rng.u32(..60_000),
    }
}
