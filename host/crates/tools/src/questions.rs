//! Questions of every slot, from a seed: each bound, each enum value and the extremes of each number come up.
//! `pointwork policy test` asks them, and so do the tests.

use fastrand::Rng;
use pointwork_core::decision::{
    Absence, CANDIDATES_MAX, Call, Candidate, Departure, Doubt, Event, HISTORY_MAX, Happening, Incumbent, Liveness,
    Newcomer, RETURNS_MAX, Traits,
};
use pointwork_policy::{Grace, Presence, Settle, Slot, Target, contract::Moment};

use pointwork_contract as contract;

/// A slot for which questions can be made up.
pub trait Generated: Slot {
    /// One within the contract's bounds.
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

/// Any moment of the next centuries, any seed, any key.
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

/// Between one candidate and as many as there may be.
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

/// A settle window in milliseconds, within what the setting allows.
pub fn window_ms(rng: &mut Rng) -> u32 {
    if rng.bool() { 2_500 } else { rng.u32(..=3_600_000) }
}

/// An incumbent, often of an age around the window's.
pub fn incumbent(rng: &mut Rng, window_ms: u32) -> Incumbent {
    let age_ms = match rng.u8(..4) {
        0 => number(rng),
        1 => rng.u32(..=window_ms),
        _ => window_ms.saturating_add(rng.u32(..3)).saturating_sub(1),
    };
    let liveness = [Liveness::Alive, Liveness::Doubtful, Liveness::Gone];
    Incumbent {
        liveness: liveness[rng.usize(..liveness.len())],
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

/// A device's last events.
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
    (0..count).map(|_| Event { ago_ms: number(rng), what: happenings[rng.usize(..happenings.len())] }).collect()
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
    departures[rng.usize(..departures.len())]
}

fn returns(rng: &mut Rng) -> Vec<u32> {
    let count = rng.usize(..=RETURNS_MAX);
    (0..count).map(|_| number(rng)).collect()
}

/// Small, any, or an extreme.
fn number(rng: &mut Rng) -> u32 {
    match rng.u8(..6) {
        0 => 0,
        1 => u32::MAX,
        2 => rng.u32(..),
        _ => rng.u32(..60_000),
    }
}
