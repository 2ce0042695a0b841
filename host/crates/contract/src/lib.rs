//! Translates between the decisions of `pointwork-core` and the types of the policies' contract, so that neither depends on the other.

use pointwork_core::decisions as core;
use pointwork_policy::{
    contract::{self, Moment},
    grace::{self, Absence},
    presence::{self, Doubt},
    settle::{self, Event, Incumbent, Newcomer},
    target::{self, Candidate, Traits},
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
        liveness: from_liveness(incumbent.liveness),
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
    let history = history.iter().take(core::HISTORY_MAX);
    let history = history.map(|event| Event { ago_ms: event.ago_ms, what: from_happening(event.what) }).collect();
    settle::Question { at, window_ms, incumbent, newcomer, history }
}

/// Defines functions that translate the variants of one enum, by name.
macro_rules! translate {
    ($($(#[$doc:meta])* $visibility:vis fn $name:ident($from:ty) -> $to:ty { $($variant:ident $(($value:ident))?),* })*) => {$(
        $(#[$doc])*
        #[must_use]
        $visibility fn $name(value: $from) -> $to {
            type From = $from;
            type To = $to;
            match value {
                $(From::$variant $(($value))? => To::$variant $(($value))?,)*
            }
        }
    )*};
}

translate! {
    /// A verdict of the slot `target` as the contract has it.
    pub fn target_to_contract(core::Choice) -> target::Choice { Pick(index), Reject }
    /// A verdict of the slot `target` as the core has it.
    pub fn target_to_core(target::Choice) -> core::Choice { Pick(index), Reject }
    /// A verdict of the slot `presence` as the contract has it.
    pub fn presence_to_contract(core::Verdict) -> presence::Verdict { Abort, Hold(ms) }
    /// A verdict of the slot `presence` as the core has it.
    pub fn presence_to_core(presence::Verdict) -> core::Verdict { Abort, Hold(ms) }
    /// A verdict of the slot `settle` as the contract has it.
    pub fn settle_to_contract(core::SettleVerdict) -> settle::Verdict { Accept, Refuse(ms), Beside(ms) }
    /// A verdict of the slot `settle` as the core has it.
    pub fn settle_to_core(settle::Verdict) -> core::SettleVerdict { Accept, Refuse(ms), Beside(ms) }

    fn from_liveness(core::Liveness) -> settle::Liveness { Alive, Doubtful, Gone }
    fn from_happening(core::Happening) -> settle::Happening { Accepted, Refused, Evicted, Lost, Closed, Refreshed }
    fn from_departure(core::Departure) -> contract::Departure {
        NeverSeen, Closed, Unregistered, TransportLost, ReplicaLost, ReplicaSilent, Drained, Evicted
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
