//! {{name}}: which of two sockets holds a device's session. Say here what the rule does, and where it is the wrong one.
//!
//! It starts as the native rule: a live incumbent is held for the settle window, any other gives way.

use pointwork_policy_sdk::settle::{Event, Incumbent, Liveness, Newcomer, Settle, Verdict};
use pointwork_policy_sdk::{Moment, PolicyError, check_span};
use serde::Deserialize;

/// What the operator may set.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How long a live incumbent is held, in milliseconds; 0 is the host's `device.settle_ms`.
    pub window_ms: u32,
}

/// The rule.
pub struct Rule(Config);

impl Settle for Rule {
    type Config = Config;

    fn configure(config: Config) -> Result<Self, String> {
        check_span("window_ms", config.window_ms)?;
        Ok(Self(config))
    }

    fn decide(
        &self,
        _: &Moment,
        window_ms: u32,
        incumbent: &Incumbent,
        _: &Newcomer,
        _: &[Event],
    ) -> Result<Verdict, PolicyError> {
        let window_ms = if self.0.window_ms == 0 { window_ms } else { self.0.window_ms };
        Ok(match incumbent.liveness {
            Liveness::Alive if incumbent.age_ms < window_ms => Verdict::Refuse(window_ms - incumbent.age_ms),
            _ => Verdict::Accept,
        })
    }
}

pointwork_policy_sdk::export_settle!(Rule);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pointwork_policy_sdk::parse_config;

    fn decide(config: &str, liveness: Liveness, age_ms: u32) -> Verdict {
        let at = Moment { now_ms: 0, seed: 0, key: 0 };
        let incumbent = Incumbent { liveness, age_ms, idle_ms: 0, heartbeat_ms: 0, local: true };
        let newcomer = Newcomer { paired: true, same_fingerprint: true, same_address: true, polling: false };
        let rule = Rule::configure(parse_config(config).unwrap()).unwrap();
        rule.decide(&at, 2_500, &incumbent, &newcomer, &[]).unwrap()
    }

    #[test]
    fn a_live_incumbent_is_held_for_the_window() {
        assert_eq!(decide("{}", Liveness::Alive, 0), Verdict::Refuse(2_500));
        assert_eq!(decide("{}", Liveness::Alive, 2_500), Verdict::Accept);
        assert_eq!(decide(r#"{"window_ms": 9000}"#, Liveness::Alive, 2_500), Verdict::Refuse(6_500));
    }

    #[test]
    fn a_device_is_never_held_on_a_socket_that_may_be_dead() {
        assert_eq!(decide("{}", Liveness::Doubtful, 0), Verdict::Accept);
        assert_eq!(decide("{}", Liveness::Gone, 0), Verdict::Accept);
    }

    #[test]
    fn a_setting_that_it_does_not_know_is_refused() {
        assert!(parse_config::<Config>(r#"{"window": 1}"#).is_err());
    }
}
