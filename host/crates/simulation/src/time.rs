//! Simulated time: the time of the world, and the clock that each replica reads instead.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

use pointwork_core::Time;

/// Microseconds in a millisecond.
pub(crate) const MS: u64 = 1_000;
/// Microseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000;

/// The wall clock when a world begins, in milliseconds since 1970.
pub(crate) const BEGAN_MS: u64 = 1_800_000_000_000;

/// A moment of the world, in microseconds since its beginning. No replica can read it: each has a clock of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct WorldTime(u64);

impl WorldTime {
    pub(crate) const ZERO: WorldTime = WorldTime(0);

    pub(crate) fn from_micros(micros: u64) -> WorldTime {
        WorldTime(micros)
    }

    /// The span from `earlier`; zero if that is later.
    pub(crate) fn since(self, earlier: WorldTime) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for WorldTime {
    type Output = WorldTime;

    fn add(self, span: Duration) -> WorldTime {
        WorldTime(self.0 + u64::try_from(span.as_micros()).unwrap_or(u64::MAX / 2))
    }
}

/// Seconds, to the microsecond.
impl fmt::Display for WorldTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>4}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// The clock of one replica. It begins at zero with its process and never goes back, but it may leap and may be slow.
pub(crate) struct ReplicaClock {
    /// Since when it has run as it does.
    since: WorldTime,
    /// What it showed then.
    shown: Time,
    percent: u64,
}

impl ReplicaClock {
    pub(crate) fn new(now: WorldTime) -> ReplicaClock {
        ReplicaClock { since: now, shown: Time::ZERO, percent: 100 }
    }

    /// What it shows.
    pub(crate) fn at(&self, now: WorldTime) -> Time {
        self.shown + scaled(now.since(self.since), self.percent, 100)
    }

    /// When it will show a time, if nothing happens to it before; at once if it does already.
    pub(crate) fn when(&self, time: Time) -> WorldTime {
        // A microsecond more, for what division drops: never too early.
        self.since + scaled(time.saturating_since(self.shown), 100, self.percent) + Duration::from_micros(1)
    }

    pub(crate) fn leap(&mut self, now: WorldTime, span: Duration) {
        (self.shown, self.since) = (self.at(now) + span, now);
    }

    /// From now on it runs at so many percent of the world's speed; at least one.
    pub(crate) fn pace(&mut self, now: WorldTime, percent: u64) {
        (self.shown, self.since, self.percent) = (self.at(now), now, percent.max(1));
    }
}

fn scaled(span: Duration, by: u64, of: u64) -> Duration {
    let micros = span.as_micros() * u128::from(by) / u128::from(of);
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaps_runs_slowly_and_never_goes_back() {
        let at = |ms| WorldTime::ZERO + Duration::from_millis(ms);
        let mut clock = ReplicaClock::new(at(1_000));
        assert_eq!(clock.at(at(1_500)), Time::from_millis(500));
        clock.leap(at(1_500), Duration::from_secs(60));
        assert_eq!(clock.at(at(1_501)), Time::from_millis(60_501));
        clock.pace(at(1_501), 50);
        assert_eq!(clock.at(at(1_601)), Time::from_millis(60_551));
        let due = clock.when(Time::from_millis(60_601));
        assert!(due >= at(1_701) && clock.at(due) >= Time::from_millis(60_601));
        assert_eq!(clock.when(Time::ZERO), at(1_501) + Duration::from_micros(1));
    }
}
