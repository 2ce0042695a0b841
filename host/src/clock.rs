//! The wall clock.

use std::time::SystemTime;

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Milliseconds since the Unix epoch; 0 on a machine that believes it is earlier.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Now, as RFC 3339 has it: `2026-01-31T12:00:00.5Z`. Empty if the clock is beyond the year 9999.
pub(crate) fn utc() -> String {
    let now = OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ms()) * 1_000_000);
    now.ok().and_then(|now| now.format(&Rfc3339).ok()).unwrap_or_default()
}
