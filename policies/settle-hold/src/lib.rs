//! The incumbent keeps the session while it is alive and was accepted less than the settle window ago.
//!
//! The native default of the `settle` slot: a burst of duplicate sockets ends on the first of them, a real move is
//! accepted once the window is over, and a device is never held on a socket that is gone. The window is the host's
//! setting `device.settle_ms`; nothing else to configure. Devices that open a duplicate just after each window still
//! flip, and a half-open connection counts as alive: `settle-adaptive` sees both.

use pointwork_policy_sdk::settle::{Event, Incumbent, Liveness, Newcomer, Settle, Verdict};
use pointwork_policy_sdk::{Moment, NoConfig, PolicyError};

/// The rule.
pub struct Hold;

impl Settle for Hold {
    type Config = NoConfig;

    fn configure(_: NoConfig) -> Result<Self, String> {
        Ok(Self)
    }

    fn decide(
        &self,
        _: &Moment,
        window_ms: u32,
        incumbent: &Incumbent,
        _: &Newcomer,
        _: &[Event],
    ) -> Result<Verdict, PolicyError> {
        Ok(match incumbent.liveness {
            Liveness::Alive if incumbent.age_ms < window_ms => Verdict::Refuse(window_ms - incumbent.age_ms),
            _ => Verdict::Accept,
        })
    }
}

pointwork_policy_sdk::export_settle!(Hold);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn decide(liveness: Liveness, age_ms: u32) -> Verdict {
        let at = Moment { now_ms: 0, seed: 0, key: 0 };
        let incumbent = Incumbent { liveness, age_ms, idle_ms: 0, heartbeat_ms: 0, local: true };
        let newcomer = Newcomer { paired: true, same_fingerprint: true, same_address: true, polling: false };
        Hold.decide(&at, 2_500, &incumbent, &newcomer, &[]).unwrap()
    }

    #[test]
    fn a_live_incumbent_is_held_for_the_window() {
        assert_eq!(decide(Liveness::Alive, 0), Verdict::Refuse(2_500));
        assert_eq!(decide(Liveness::Alive, 2_499), Verdict::Refuse(1));
        assert_eq!(decide(Liveness::Alive, 2_500), Verdict::Accept);
    }

    #[test]
    fn a_device_is_never_held_on_a_socket_that_may_be_dead() {
        assert_eq!(decide(Liveness::Doubtful, 0), Verdict::Accept);
        assert_eq!(decide(Liveness::Gone, 0), Verdict::Accept);
    }
}
