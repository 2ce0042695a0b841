//! The daemon that will answer soonest gets the call.
//!
//! For methods that several daemons register. The order: not the caller's own socket, not on a replica that is shutting
//! down, not one that has stopped answering, on this replica, fewest calls in flight, fewest unanswered, shortest
//! answer time. Answer times within a factor of two count as equal, and equals are drawn by the seed, so that
//! replicas which see the same candidates do not all pick the same one. What is worse is still picked when there is
//! nothing better. A daemon that has not answered yet counts as the fastest: that is how its time becomes known.

use std::cmp::Reverse;

use pointwork_policy_sdk::target::{Candidate, Choice, Target, Traits};
use pointwork_policy_sdk::{Call, Moment, PolicyError};
use serde::Deserialize;

/// What the operator may set.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether a daemon on the deciding replica comes before a less loaded one elsewhere. It saves a Redis hop of some
    /// hundred microseconds; turn it off when calls take far longer than that and daemons are unevenly spread.
    pub local_first: bool,
    /// Number of calls without an answer, since its last answer, from which on a daemon counts as stuck.
    pub stuck_unanswered: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { local_first: true, stuck_unanswered: 3 }
    }
}

/// The rule.
pub struct LeastLoaded(Config);

impl Target for LeastLoaded {
    type Config = Config;

    fn configure(config: Config) -> Result<Self, String> {
        if config.stuck_unanswered == 0 {
            return Err("stuck_unanswered must be at least 1: with 0 every daemon counts as stuck".into());
        }
        Ok(Self(config))
    }

    fn choose(&self, at: &Moment, _: &Call, candidates: &[Candidate]) -> Result<Choice, PolicyError> {
        let draw = |index| mixed(at.seed ^ u64::from(index));
        let best = (0_u32..).zip(candidates).min_by_key(|(index, candidate)| (self.rank(candidate), draw(*index)));
        Ok(best.map_or(Choice::Reject, |(index, _)| Choice::Pick(index)))
    }
}

/// Lower is better, the first difference decides.
type Rank = (bool, bool, bool, bool, u32, u32, Reverse<u32>);

impl LeastLoaded {
    fn rank(&self, candidate: &Candidate) -> Rank {
        let is = |what| candidate.traits.contains(what);
        (
            is(Traits::CALLER),
            is(Traits::DRAINING),
            candidate.unanswered >= self.0.stuck_unanswered,
            self.0.local_first && !is(Traits::LOCAL),
            candidate.in_flight,
            candidate.unanswered,
            Reverse(candidate.answer_us.leading_zeros()),
        )
    }
}

/// Spreads neighbouring inputs over all 64 bits, so that each of the equals is as likely to come first (splitmix64).
fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

pointwork_policy_sdk::export_target!(LeastLoaded);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pointwork_policy_sdk::parse_config;

    fn idle(traits: Traits) -> Candidate {
        Candidate { replica: 0, registered_ms: 0, idle_ms: 0, in_flight: 0, answer_us: 1_000, unanswered: 0, traits }
    }

    fn choose(config: &str, seed: u64, candidates: &[Candidate]) -> Choice {
        let at = Moment { now_ms: 0, seed, key: 0 };
        let call = Call { method: "m".into(), params_bytes: 0, waited_ms: 0, left_ms: 30_000, attempt: 0 };
        LeastLoaded::configure(parse_config(config).unwrap()).unwrap().choose(&at, &call, candidates).unwrap()
    }

    /// In each pair the second must win, by a criterion that comes before all on which the first is better.
    #[test]
    fn criteria_decide_in_their_order() {
        let (local, remote) = (idle(Traits::LOCAL), idle(Traits::empty()));
        let pairs = [
            (idle(Traits::LOCAL | Traits::CALLER), Candidate { unanswered: 9, ..idle(Traits::DRAINING) }),
            (idle(Traits::LOCAL | Traits::DRAINING), Candidate { unanswered: 9, ..remote }),
            (Candidate { unanswered: 3, ..local }, Candidate { in_flight: 9, ..remote }),
            (remote, Candidate { in_flight: 9, unanswered: 2, ..local }),
            (Candidate { in_flight: 2, ..remote }, Candidate { in_flight: 1, unanswered: 2, ..remote }),
            (Candidate { unanswered: 1, answer_us: 1, ..remote }, Candidate { answer_us: u32::MAX, ..remote }),
            (Candidate { answer_us: 2_100, ..remote }, remote),
            (remote, Candidate { answer_us: 0, ..remote }),
        ];
        for (loser, winner) in pairs {
            for seed in 0..16 {
                assert_eq!(choose("{}", seed, &[loser, winner]), Choice::Pick(1), "{loser:?} {winner:?}");
                assert_eq!(choose("{}", seed, &[winner, loser]), Choice::Pick(0), "{loser:?} {winner:?}");
            }
        }
    }

    #[test]
    fn the_only_candidate_is_picked_whatever_it_is() {
        assert_eq!(choose("{}", 1, &[idle(Traits::CALLER | Traits::DRAINING)]), Choice::Pick(0));
    }

    #[test]
    fn equals_share_the_load() {
        let candidates =
            [idle(Traits::LOCAL), Candidate { answer_us: 600, ..idle(Traits::LOCAL) }, idle(Traits::LOCAL)];
        let mut picks = [0; 3];
        for seed in 0..3_000 {
            match choose("{}", seed, &candidates) {
                Choice::Pick(index) => picks[index as usize] += 1,
                Choice::Reject => unreachable!("there are candidates"),
            }
        }
        assert!(picks.iter().all(|&n| (900..=1_100).contains(&n)), "{picks:?}");
    }

    #[test]
    fn the_operator_can_put_load_before_locality() {
        let pair = [Candidate { in_flight: 1, ..idle(Traits::LOCAL) }, idle(Traits::empty())];
        assert_eq!(choose("{}", 1, &pair), Choice::Pick(0));
        assert_eq!(choose(r#"{"local_first": false}"#, 1, &pair), Choice::Pick(1));
    }

    #[test]
    fn refuses_a_configuration_that_makes_no_sense() {
        assert!(LeastLoaded::configure(parse_config(r#"{"stuck_unanswered": 0}"#).unwrap()).is_err());
        assert!(parse_config::<Config>(r#"{"local": true}"#).is_err());
    }
}
