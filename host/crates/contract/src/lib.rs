//! Translates between the decisions of `pointwork-core` and the types of the policies' contract, so that neither side knows the other.

use pointwork_core::decision as core;
use pointwork_policy::{
    contract::{self, Moment},
    grace::{self, Absence},
    presence::{self, Doubt, Verdict},
    settle::{self, Event, Happening, Incumbent, Liveness, Newcomer},
    target::{self, Candidate, Choice, Traits},
};

/// The question of `target`: which of the candidates receives a call.
#[must_use]
pub fn target_question(at: Moment, call: &core::Call, candidates: &[core::Candidate]) -> target::Question {
    target::Question { at, call: from_call(call), candidates: candidates.iter().map(from_candidate).collect() }
}

/// The question of `grace`: how long a call without a daemon waits.
#[must_use]
pub fn grace_question(at: Moment, call: &core::Call, absence: &core::Absence) -> grace::Question {
    let absence = Absence {
        cause: from_departure(absence.cause),
        gone_ms: absence.gone_ms,
        departures: absence.departures,
        returns_ms: absence.returns_ms.clone(),
        waiting: absence.waiting,
        replica_age_ms: absence.replica_age_ms,
    };
    grace::Question { at, call: from_call(call), absence }
}

/// The question of `presence`: whether to give up a call whose target may be gone.
#[must_use]
pub fn presence_question(at: Moment, call: &core::Call, doubt: &core::Doubt) -> presence::Question {
    let doubt = Doubt {
        cause: from_departure(doubt.cause),
        since_ms: doubt.since_ms,
        sent_ms: doubt.sent_ms,
        resumable: doubt.resumable,
        returned: doubt.returned,
        departures: doubt.departures,
        returns_ms: doubt.returns_ms.clone(),
    };
    presence::Question { at, call: from_call(call), doubt }
}

/// The question of `settle`: which of two sockets holds a device's session. `history` is newest first.
#[must_use]
pub fn settle_question(
    at: Moment,
    window_ms: u32,
    incumbent: &core::Incumbent,
    newcomer: &core::Newcomer,
    history: &[core::Event],
) -> settle::Question {
    let incumbent = Incumbent {
        liveness: match incumbent.liveness {
            core::Liveness::Alive => Liveness::Alive,
            core::Liveness::Doubtful => Liveness::Doubtful,
            core::Liveness::Gone => Liveness::Gone,
        },
        age_ms: incumbent.age_ms,
        idle_ms: incumbent.idle_ms,
        heartbeat_ms: incumbent.heartbeat_ms,
        local: incumbent.local,
    };
    let newcomer = Newcomer {
        paired: newcomer.paired,
        same_fingerprint: newcomer.same_fingerprint,
        same_address: newcomer.same_address,
        polling: newcomer.polling,
    };
    let history = history.iter().take(core::HISTORY_MAX).map(from_event).collect();
    settle::Question { at, window_ms, incumbent, newcomer, history }
}

/// The contract's type of the core's verdict.
#[must_use]
pub fn from_choice(choice: core::Choice) -> Choice {
    match choice {
        core::Choice::Pick(index) => Choice::Pick(index),
        core::Choice::Reject => Choice::Reject,
    }
}

/// The core's type of the contract's verdict.
#[must_use]
pub fn to_choice(choice: Choice) -> core::Choice {
    match choice {
        Choice::Pick(index) => core::Choice::Pick(index),
        Choice::Reject => core::Choice::Reject,
    }
}

/// The contract's type of the core's verdict.
#[must_use]
pub fn from_verdict(verdict: core::Verdict) -> Verdict {
    match verdict {
        core::Verdict::Abort => Verdict::Abort,
        core::Verdict::Hold(ms) => Verdict::Hold(ms),
    }
}

/// The core's type of the contract's verdict.
#[must_use]
pub fn to_verdict(verdict: Verdict) -> core::Verdict {
    match verdict {
        Verdict::Abort => core::Verdict::Abort,
        Verdict::Hold(ms) => core::Verdict::Hold(ms),
    }
}

/// The contract's type of the core's verdict.
#[must_use]
pub fn from_settle(verdict: core::SettleVerdict) -> settle::Verdict {
    match verdict {
        core::SettleVerdict::Accept => settle::Verdict::Accept,
        core::SettleVerdict::Refuse(ms) => settle::Verdict::Refuse(ms),
        core::SettleVerdict::Beside(ms) => settle::Verdict::Beside(ms),
    }
}

/// The core's type of the contract's verdict.
#[must_use]
pub fn to_settle(verdict: settle::Verdict) -> core::SettleVerdict {
    match verdict {
        settle::Verdict::Accept => core::SettleVerdict::Accept,
        settle::Verdict::Refuse(ms) => core::SettleVerdict::Refuse(ms),
        settle::Verdict::Beside(ms) => core::SettleVerdict::Beside(ms),
    }
}

fn from_call(call: &core::Call) -> contract::Call {
    contract::Call {
        method: call.method.as_ref().to_owned(),
        params_bytes: call.params_bytes,
        waited_ms: call.waited_ms,
        left_ms: call.left_ms,
        attempt: call.attempt,
    }
}

fn from_candidate(candidate: &core::Candidate) -> Candidate {
    let mut traits = Traits::empty();
    for (has, flag) in [
        (candidate.traits.local, Traits::LOCAL),
        (candidate.traits.recovered, Traits::RECOVERED),
        (candidate.traits.draining, Traits::DRAINING),
        (candidate.traits.resumable, Traits::RESUMABLE),
        (candidate.traits.foreign, Traits::FOREIGN),
        (candidate.traits.caller, Traits::CALLER),
    ] {
        if has {
            traits |= flag;
        }
    }
    Candidate {
        replica: candidate.replica,
        registered_ms: candidate.registered_ms,
        idle_ms: candidate.idle_ms,
        in_flight: candidate.in_flight,
        answer_us: candidate.answer_us,
        unanswered: candidate.unanswered,
        traits,
    }
}

fn from_event(event: &core::Event) -> Event {
    let what = match event.what {
        core::Happening::Accepted => Happening::Accepted,
        core::Happening::Refused => Happening::Refused,
        core::Happening::Evicted => Happening::Evicted,
        core::Happening::Lost => Happening::Lost,
        core::Happening::Closed => Happening::Closed,
        core::Happening::Refreshed => Happening::Refreshed,
    };
    Event { ago_ms: event.ago_ms, what }
}

fn from_departure(departure: core::Departure) -> contract::Departure {
    match departure {
        core::Departure::NeverSeen => contract::Departure::NeverSeen,
        core::Departure::Closed => contract::Departure::Closed,
        core::Departure::Unregistered => contract::Departure::Unregistered,
        core::Departure::TransportLost => contract::Departure::TransportLost,
        core::Departure::ReplicaLost => contract::Departure::ReplicaLost,
        core::Departure::ReplicaSilent => contract::Departure::ReplicaSilent,
        core::Departure::Drained => contract::Departure::Drained,
        core::Departure::Evicted => contract::Departure::Evicted,
    }
}
