//! The incumbent is held longer with each duplicate, and not at all once it has gone quiet.
//!
//! For fleets with devices that keep opening duplicate sockets. It starts from the host's setting `device.settle_ms` and improves on `settle-hold` in three ways:
//! - each recent refusal or eviction doubles the window, up to a limit;
//! - the window counts from the last duplicate, not from when the incumbent was accepted, so that opens spaced just
//!   over it do not flip the session;
//! - an incumbent that no longer answers pings, or whose heartbeats stopped, gives way at once.
//!
//! What it costs: a device whose incumbent is half-open comes back into a window that its own refusals stretch, and may be
//! without a living socket until the incumbent counts as quiet, 37.5 s by default, where the native rule takes seconds.
//! Where half-open connections are common, lower the host's `listen.ping_interval_ms`, and `idle_ms` with it.
//!
//! A device that behaves again is back at the plain window once its last duplicate is no longer recent.

use pointwork_policy_sdk::settle::{Event, Happening, Incumbent, Liveness, Newcomer, Settle, Verdict};
use pointwork_policy_sdk::{Moment, PolicyError, check_span};

mod config;

pub use config::Config;

/// The host's way to say that a span is not known.
const UNKNOWN_MS: u32 = u32::MAX;

/// The rule.
pub struct Adaptive(Config);

impl Settle for Adaptive {
    type Config = Config;

    fn configure(config: Config) -> Result<Self, String> {
        if config.idle_ms == 0 || config.heartbeat_ms == 0 {
            return Err("idle_ms and heartbeat_ms must be at least 1: with 0 no incumbent is ever held".into());
        }
        check_span("window_max_ms", config.window_max_ms)?;
        Ok(Self(config))
    }

    fn decide(
        &self,
        _: &Moment,
        window_ms: u32,
        incumbent: &Incumbent,
        _: &Newcomer,
        history: &[Event],
    ) -> Result<Verdict, PolicyError> {
        if incumbent.liveness != Liveness::Alive || self.is_quiet(incumbent) {
            return Ok(Verdict::Accept);
        }
        let duplicates = || history.iter().filter(|event| self.is_duplicate(event));
        let settled_ms = duplicates().map(|event| event.ago_ms).fold(incumbent.age_ms, u32::min);
        let window_ms = grown(window_ms, duplicates().count(), self.0.window_max_ms);
        Ok(match window_ms.saturating_sub(settled_ms) {
            0 => Verdict::Accept,
            left_ms => Verdict::Refuse(left_ms.min(self.quiet_in_ms(incumbent))),
        })
    }
}

impl Adaptive {
    fn is_quiet(&self, incumbent: &Incumbent) -> bool {
        let over = |span_ms, limit_ms| span_ms != UNKNOWN_MS && span_ms > limit_ms;
        over(incumbent.idle_ms, self.0.idle_ms) || over(incumbent.heartbeat_ms, self.0.heartbeat_ms)
    }

    /// In how long an incumbent that already misses a ping counts as quiet unless it is heard of; no bound otherwise. One that is
    /// likely to live does not shorten the wait: each newcomer that comes too early stretches the window.
    fn quiet_in_ms(&self, incumbent: &Incumbent) -> u32 {
        let overdue_ms = self.0.idle_ms / 3 * 2;
        match self.0.idle_ms.checked_sub(incumbent.idle_ms) {
            Some(left_ms) if incumbent.idle_ms > overdue_ms => left_ms.saturating_add(1),
            _ => UNKNOWN_MS,
        }
    }

    /// An accepted duplicate shows as the eviction of its predecessor; an acceptance alone is a plain reconnect.
    fn is_duplicate(&self, event: &Event) -> bool {
        matches!(event.what, Happening::Refused | Happening::Evicted) && event.ago_ms <= self.0.recent_ms
    }
}

/// The window doubled so many times, up to `max_ms` but never below what it was.
fn grown(window_ms: u32, times: usize, max_ms: u32) -> u32 {
    let factor = u32::try_from(times).ok().and_then(|times| 1_u32.checked_shl(times)).unwrap_or(u32::MAX);
    window_ms.saturating_mul(factor).min(max_ms.max(window_ms))
}

pointwork_policy_sdk::export_settle!(Adaptive);

#[cfg(test)]
mod tests;
