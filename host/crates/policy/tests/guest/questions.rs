//! One plausible question for each slot.

use pointwork_policy::contract::{Call, Departure, Moment};
use pointwork_policy::{grace, presence, settle, target};

pub fn moment() -> Moment {
    Moment { now_ms: 1_000, seed: 7, key: 3 }
}

pub fn call() -> Call {
    Call { method: "u1:bash".into(), params_bytes: 90, waited_ms: 0, left_ms: 30_000, attempt: 0 }
}

pub fn target(candidates: u32) -> target::Question {
    let candidate = |replica| target::Candidate {
        replica,
        registered_ms: 5_000,
        idle_ms: 10,
        in_flight: 0,
        answer_us: 900,
        unanswered: 0,
        traits: target::Traits::LOCAL,
    };
    target::Question { at: moment(), call: call(), candidates: (0..candidates).map(candidate).collect() }
}

pub fn grace() -> grace::Question {
    let absence = grace::Absence {
        cause: Departure::TransportLost,
        gone_ms: 20,
        departures: 2,
        returns_ms: vec![900, 1_100],
        waiting: 0,
        replica_age_ms: 60_000,
    };
    grace::Question { at: moment(), call: call(), absence }
}

pub fn presence() -> presence::Question {
    let doubt = presence::Doubt {
        cause: Departure::ReplicaSilent,
        since_ms: 10,
        sent_ms: 300,
        resumable: false,
        returned: true,
        departures: 1,
        returns_ms: vec![],
    };
    presence::Question { at: moment(), call: call(), doubt }
}

pub fn settle() -> settle::Question {
    let incumbent = settle::Incumbent {
        liveness: settle::Liveness::Alive,
        age_ms: 4_000,
        idle_ms: 20,
        heartbeat_ms: 900,
        local: true,
    };
    let newcomer = settle::Newcomer { paired: true, same_fingerprint: true, same_address: false, polling: false };
    let history = vec![settle::Event { ago_ms: 4_000, what: settle::Happening::Accepted }];
    settle::Question { at: moment(), window_ms: 2_500, incumbent, newcomer, history }
}
