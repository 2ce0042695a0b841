//! The clocks: the machines' own, which begins with the process part that it is for, and the wall clock.

use std::time::SystemTime;

use pointwork_core::Time;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::time::Instant;

/// The clock of a machine: microseconds since it was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// A clock that begins at 0 now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time on it.
    pub(crate) fn now(&self) -> Time {
        Time::from_micros(u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// Milliseconds since the Unix epoch; 0 on a machine that believes it is earlier.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Now, in the format of RFC 3339: `2026-01-31T12:00:00.5Z`. Empty if the clock is beyond the year 9999.
pub(crate) fn utc() -> String {
    let now = OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ms()) * 1_000_000);
    now.ok().and_then(|now| now.format(&Rfc3339).ok()).unwrap_or_default()
}
