//! The first candidate, which is the one that registered first, gets the call.
//!
//! The native default of the `target` slot, and right wherever each method has one daemon. With several, the newer ones
//! only stand by: use `target-least-loaded` to share the load. Nothing to configure.

use pointwork_policy_sdk::target::{Candidate, Choice, Target};
use pointwork_policy_sdk::{Call, Moment, NoConfig, PolicyError};

/// The rule.
pub struct First;

impl Target for First {
    type Config = NoConfig;

    fn configure(_: NoConfig) -> Result<Self, String> {
        Ok(Self)
    }

    fn choose(&self, _: &Moment, _: &Call, candidates: &[Candidate]) -> Result<Choice, PolicyError> {
        Ok(if candidates.is_empty() { Choice::Reject } else { Choice::Pick(0) })
    }
}

pointwork_policy_sdk::export_target!(First);

#[cfg(test)]
mod tests {
    use super::*;
    use pointwork_policy_sdk::target::Traits;

    #[test]
    fn picks_the_oldest_registration_even_if_it_is_the_callers_own() {
        let at = Moment { now_ms: 0, seed: 7, key: 7 };
        let call = Call { method: "m".into(), params_bytes: 0, waited_ms: 0, left_ms: 30_000, attempt: 0 };
        let candidate = |traits| Candidate {
            replica: 0,
            registered_ms: 0,
            idle_ms: 0,
            in_flight: 0,
            answer_us: 0,
            unanswered: 0,
            traits,
        };
        let candidates = [candidate(Traits::CALLER), candidate(Traits::LOCAL)];
        assert_eq!(First.choose(&at, &call, &candidates), Ok(Choice::Pick(0)));
        assert_eq!(First.choose(&at, &call, &[]), Ok(Choice::Reject));
    }
}
