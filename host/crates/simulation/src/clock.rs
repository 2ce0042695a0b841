//! The clock of one replica: it never goes back, but may leap and may be slow.

use std::time::Duration;

use pointwork_core::Time;

use crate::agenda::Moment;

/// A replica's own clock, which begins at zero with its process.
pub(crate) struct Clock {
    /// Since when it has run as it does.
    since: Moment,
    /// What it showed then.
    shown: Time,
    percent: u64,
}

impl Clock {
    pub(crate) fn new(now: Moment) -> Clock {
        Clock { since: now, shown: Time::ZERO, percent: 100 }
    }

    /// What it shows.
    pub(crate) fn at(&self, now: Moment) -> Time {
        self.shown + scaled(now.since(self.since), self.percent, 100)
    }

    /// When it will show a time, if nothing happens to it before; at once if it does already.
    pub(crate) fn when(&self, time: Time) -> Moment {
        // A microsecond more, for what division drops: never too early.
        self.since + scaled(time.saturating_since(self.shown), 100, self.percent) + Duration::from_micros(1)
    }

    pub(crate) fn leap(&mut self, now: Moment, span: Duration) {
        (self.shown, self.since) = (self.at(now) + span, now);
    }

    /// From now on it runs at so many percent of the world's speed; at least one.
    pub(crate) fn pace(&mut self, now: Moment, percent: u64) {
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
    fn it_leaps_and_is_slow_and_never_goes_back() {
        let at = |ms| Moment::ZERO + Duration::from_millis(ms);
        let mut clock = Clock::new(at(1_000));
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
