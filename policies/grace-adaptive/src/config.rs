//! What an operator may set.

use pointwork_policy_sdk::check_span;
use serde::Deserialize;

use crate::glob;

/// The settings; each has a default.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The least that a call waits for a daemon that was seen before, in milliseconds.
    pub min_ms: u32,
    /// The most that a call waits, in milliseconds.
    pub max_ms: u32,
    /// How long a daemon is expected to stay away: so many percent of its slowest recent return.
    pub return_percent: u32,
    /// How long a call waits for a method that nobody has registered within the last hour, in milliseconds: long
    /// enough for a daemon that is just starting, short for a misspelt method.
    pub never_seen_ms: u32,
    /// Until it has served so long, in milliseconds, a replica may not have seen every daemon yet: a method that it
    /// has never seen is waited for as long as the replica is young, up to `max_ms`.
    pub young_ms: u32,
    /// With so many calls held for the same method, a further one fails at once.
    pub waiting_max: u32,
    /// Other bounds for some methods; the first entry whose pattern matches counts.
    pub methods: Vec<Method>,
}

/// Bounds for the methods that match a pattern; what is missing is as for all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// The method's name, in which `*` stands for any text.
    pub pattern: String,
    /// In place of the general `min_ms`, in milliseconds.
    pub min_ms: Option<u32>,
    /// In place of the general `max_ms`, in milliseconds; 0 fails these calls at once.
    pub max_ms: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            min_ms: 2_000,
            max_ms: 20_000,
            return_percent: 150,
            never_seen_ms: 500,
            young_ms: 15_000,
            waiting_max: 256,
            methods: Vec::new(),
        }
    }
}

impl Config {
    /// The least and the most that a call of `method` waits, in milliseconds.
    pub(crate) fn bounds_ms(&self, method: &str) -> (u32, u32) {
        match self.methods.iter().find(|m| glob::matches(&m.pattern, method)) {
            Some(own) => {
                let max_ms = own.max_ms.unwrap_or(self.max_ms.max(own.min_ms.unwrap_or(0)));
                (own.min_ms.unwrap_or(self.min_ms).min(max_ms), max_ms)
            }
            None => (self.min_ms, self.max_ms),
        }
    }

    /// # Errors
    /// Which bounds contradict each other.
    pub(crate) fn checked(self) -> Result<Self, String> {
        check_span("max_ms", self.max_ms)?;
        if self.min_ms > self.max_ms {
            return Err(format!("min_ms {} is over max_ms {}", self.min_ms, self.max_ms));
        }
        for Method { pattern, min_ms, max_ms } in &self.methods {
            for span_ms in [min_ms, max_ms].into_iter().flatten() {
                check_span(&format!("methods: {pattern}:"), *span_ms)?;
            }
            if let (Some(min_ms), Some(max_ms)) = (min_ms, max_ms)
                && min_ms > max_ms
            {
                return Err(format!("methods: {pattern}: min_ms {min_ms} is over max_ms {max_ms}"));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pointwork_policy_sdk::parse_config;

    #[test]
    fn the_first_matching_pattern_counts_and_fills_up_from_the_general_bounds() {
        let config: Config = parse_config(
            r#"{"methods": [
                {"pattern": "*:bash", "max_ms": 0},
                {"pattern": "*:sync", "min_ms": 60000},
                {"pattern": "m1:*", "min_ms": 5000, "max_ms": 5000}
            ]}"#,
        )
        .unwrap();
        assert_eq!(config.bounds_ms("m1:bash"), (0, 0));
        assert_eq!(config.bounds_ms("m1:sync"), (60_000, 60_000));
        assert_eq!(config.bounds_ms("m1:other"), (5_000, 5_000));
        assert_eq!(config.bounds_ms("m2:other"), (2_000, 20_000));
    }

    #[test]
    fn refuses_bounds_that_contradict_each_other_and_names_them() {
        let wrong = |json: &str| parse_config::<Config>(json).unwrap().checked().unwrap_err();
        assert_eq!(wrong(r#"{"min_ms": 2, "max_ms": 1}"#), "min_ms 2 is over max_ms 1");
        let own = r#"{"methods": [{"pattern": "a*", "min_ms": 9, "max_ms": 8}]}"#;
        assert_eq!(wrong(own), "methods: a*: min_ms 9 is over max_ms 8");
        assert_eq!(wrong(r#"{"max_ms": 3600001}"#), "max_ms 3600001 is over an hour");
        let long = r#"{"methods": [{"pattern": "a*", "min_ms": 3600001}]}"#;
        assert_eq!(wrong(long), "methods: a*: 3600001 is over an hour");
        assert!(parse_config::<Config>(r#"{"methods": [{"pattern": "a", "wait": 1}]}"#).is_err());
        assert!(Config::default().checked().is_ok());
    }
}
