//! What an operator may set.

use pointwork_policy_sdk::check_span;
use serde::Deserialize;

/// The settings; each has a default.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How long an absence is tolerated at least, in milliseconds, and how long when the daemon has no history.
    pub tolerance_ms: u32,
    /// How long an absence is tolerated at most, in milliseconds, and how long once the daemon has registered again.
    pub tolerance_max_ms: u32,
    /// In between, so many percent of the daemon's slowest recent return.
    pub return_percent: u32,
    /// How soon to look again, in milliseconds; twice as long each time.
    pub recheck_ms: u32,
    /// The longest time between two looks, in milliseconds.
    pub recheck_max_ms: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tolerance_ms: 5_000,
            tolerance_max_ms: 20_000,
            return_percent: 150,
            recheck_ms: 250,
            recheck_max_ms: 4_000,
        }
    }
}

impl Config {
    /// # Errors
    /// Which settings contradict each other.
    pub(crate) fn checked(self) -> Result<Self, String> {
        if self.tolerance_ms > self.tolerance_max_ms {
            return Err(format!(
                "tolerance_ms {} is over tolerance_max_ms {}",
                self.tolerance_ms, self.tolerance_max_ms
            ));
        }
        if self.recheck_ms < 10 || self.recheck_ms > self.recheck_max_ms {
            return Err(format!(
                "recheck_ms {} is not within 10 and recheck_max_ms {}",
                self.recheck_ms, self.recheck_max_ms
            ));
        }
        check_span("recheck_max_ms", self.recheck_max_ms)?;
        Ok(self)
    }

    /// How long to wait before the look that follows `attempt` others, in milliseconds.
    pub(crate) fn recheck_after_ms(&self, attempt: u32) -> u32 {
        let factor = 1_u32.checked_shl(attempt).unwrap_or(u32::MAX);
        self.recheck_ms.saturating_mul(factor).min(self.recheck_max_ms)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pointwork_policy_sdk::parse_config;

    #[test]
    fn looks_become_rarer_up_to_the_limit() {
        let after_ms = |attempt| Config::default().recheck_after_ms(attempt);
        assert_eq!(
            [0, 1, 2, 4, 5, 31, 32, u32::MAX].map(after_ms),
            [250, 500, 1_000, 4_000, 4_000, 4_000, 4_000, 4_000]
        );
    }

    #[test]
    fn refuses_settings_that_contradict_each_other() {
        let wrong = |json: &str| parse_config::<Config>(json).unwrap().checked().unwrap_err();
        assert_eq!(wrong(r#"{"tolerance_ms": 30000}"#), "tolerance_ms 30000 is over tolerance_max_ms 20000");
        assert_eq!(wrong(r#"{"recheck_ms": 0}"#), "recheck_ms 0 is not within 10 and recheck_max_ms 4000");
        assert_eq!(wrong(r#"{"recheck_max_ms": 20}"#), "recheck_ms 250 is not within 10 and recheck_max_ms 20");
        assert_eq!(wrong(r#"{"recheck_max_ms": 3600001}"#), "recheck_max_ms 3600001 is over an hour");
        assert!(parse_config::<Config>(r#"{"tolerance": 1}"#).is_err());
        assert!(Config::default().checked().is_ok());
    }
}
