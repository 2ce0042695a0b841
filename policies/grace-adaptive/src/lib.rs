//! A call waits as long as it is likely to be worth it.
//!
//! For daemons that differ in how long they stay away, and for methods that differ in how long a caller should wait.
//! A daemon that has returned before is waited for until it is overdue by its own measure; one without history as long
//! as the bounds allow; one that left on purpose, or is overdue, only shortly. A method that nobody has ever
//! registered fails fast, unless this replica is too young to know. The [`Config`] says all spans.

use pointwork_policy_sdk::grace::{Absence, Grace};
use pointwork_policy_sdk::{Call, Departure, Moment, PolicyError};

mod config;
mod glob;

pub use config::{Config, Method};

/// The rule.
pub struct Adaptive(Config);

impl Grace for Adaptive {
    type Config = Config;

    fn configure(config: Config) -> Result<Self, String> {
        config.checked().map(Self)
    }

    fn wait(&self, _: &Moment, call: &Call, absence: &Absence) -> Result<u32, PolicyError> {
        if absence.waiting >= self.0.waiting_max {
            return Ok(0);
        }
        let (min_ms, max_ms) = self.0.bounds_ms(&call.method);
        // Everything is seen from the call's arrival, so that being asked again does not start its grace anew.
        let on_arrival = |ms: u32| ms.saturating_sub(call.waited_ms);
        let span_ms = match absence.cause {
            Departure::NeverSeen => {
                let young_ms = self.0.young_ms.saturating_sub(on_arrival(absence.replica_age_ms));
                self.0.never_seen_ms.max(young_ms).min(max_ms)
            }
            Departure::Closed | Departure::Unregistered => min_ms,
            _ => {
                let due_ms = self.expected_ms(absence, max_ms);
                due_ms.saturating_sub(on_arrival(absence.gone_ms)).clamp(min_ms, max_ms)
            }
        };
        Ok(span_ms.saturating_sub(call.waited_ms))
    }
}

impl Adaptive {
    /// How long the daemon stays away, by its slowest recent return; `max_ms` if it has none.
    fn expected_ms(&self, absence: &Absence, max_ms: u32) -> u32 {
        absence.returns_ms.iter().max().map_or(max_ms, |&slowest_ms| {
            let expected_ms = u64::from(slowest_ms) * u64::from(self.0.return_percent) / 100;
            u32::try_from(expected_ms).unwrap_or(u32::MAX)
        })
    }
}

pointwork_policy_sdk::export_grace!(Adaptive);

#[cfg(test)]
mod tests;
