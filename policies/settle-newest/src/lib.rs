//! The newcomer always gets the session, and the incumbent is evicted.
//!
//! For devices that never open a duplicate: a real move is served without any delay. A device that does open duplicates
//! flips with each of them: then use `settle-hold` or `settle-adaptive`. Nothing to configure.

use pointwork_policy_sdk::settle::{Event, Incumbent, Newcomer, Settle, Verdict};
use pointwork_policy_sdk::{Moment, NoConfig, PolicyError};

/// The rule.
pub struct Newest;

impl Settle for Newest {
    type Config = NoConfig;

    fn configure(_: NoConfig) -> Result<Self, String> {
        Ok(Self)
    }

    fn decide(&self, _: &Moment, _: u32, _: &Incumbent, _: &Newcomer, _: &[Event]) -> Result<Verdict, PolicyError> {
        Ok(Verdict::Accept)
    }
}

pointwork_policy_sdk::export_settle!(Newest);

#[cfg(test)]
mod tests {
    use super::*;
    use pointwork_policy_sdk::settle::Liveness;

    #[test]
    fn accepts_within_the_window_too() {
        let at = Moment { now_ms: 0, seed: 0, key: 0 };
        let incumbent = Incumbent { liveness: Liveness::Alive, age_ms: 0, idle_ms: 0, heartbeat_ms: 0, local: true };
        let newcomer = Newcomer { paired: true, same_fingerprint: true, same_address: true, polling: false };
        assert_eq!(Newest.decide(&at, 2_500, &incumbent, &newcomer, &[]), Ok(Verdict::Accept));
    }
}
