//! The wall clock.

use std::time::SystemTime;

/// Milliseconds since the Unix epoch; 0 on a machine that believes it is earlier.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
