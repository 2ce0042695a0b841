//! Moments and spans. The host passes them to the machines, which never read a clock.

use std::ops::Add;
use std::time::Duration;

/// What a span is called in a policy's input when it does not fit into 32 bits, or is not known.
pub const SPAN_UNKNOWN: u32 = u32::MAX;

/// A moment: microseconds since the replica began to serve. It never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The moment the replica began to serve.
    pub const ZERO: Time = Time(0);

    /// The moment so many microseconds after the replica began to serve.
    pub const fn from_micros(micros: u64) -> Time {
        Time(micros)
    }

    /// The moment so many milliseconds after the replica began to serve; the last moment there is if that is too far.
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis.saturating_mul(1_000))
    }

    /// Microseconds since the replica began to serve.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to this moment; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// Saturates: adding what is too long gives the last moment there is. Parts of a microsecond are dropped.
impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, span: Duration) -> Time {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(micros))
    }
}

/// A moment that may lie before the replica began to serve: what other replicas tell began at one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin {
    /// Since the replica began to serve; wide enough for every [`Time`] and every span before it.
    micros: i128,
}

impl Origin {
    /// The moment that lies `age` before `now`.
    pub(crate) fn before(now: Time, age: Duration) -> Origin {
        // No span has more than 2^84 microseconds.
        let age = i128::try_from(age.as_micros()).unwrap_or(i128::MAX / 2);
        Origin { micros: i128::from(now.0) - age }
    }

    /// How long ago it was; zero if it is yet to come, and the longest span of a [`Time`] if it was longer ago.
    pub(crate) fn age(self, now: Time) -> Duration {
        let micros = (i128::from(now.0) - self.micros).max(0);
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// A span in whole milliseconds for a policy; [`SPAN_UNKNOWN`] if it does not fit.
pub fn span_ms(span: Duration) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(SPAN_UNKNOWN)
}

/// A span in whole microseconds for a policy; [`SPAN_UNKNOWN`] if it does not fit.
pub fn span_us(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(SPAN_UNKNOWN)
}

/// So many milliseconds.
pub(crate) const fn millis(ms: u32) -> Duration {
    Duration::from_millis(ms as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_between_units() {
        assert_eq!(Time::from_millis(3), Time::from_micros(3_000));
        assert_eq!(Time::from_millis(3).as_micros(), 3_000);
        assert_eq!(Time::ZERO + Duration::from_secs(1), Time::from_millis(1_000));
        assert_eq!(Time::from_micros(1) + Duration::from_nanos(1_999), Time::from_micros(2));
    }

    #[test]
    fn nothing_overflows() {
        let last = Time::from_micros(u64::MAX);
        assert_eq!(Time::from_millis(u64::MAX), last);
        assert_eq!(last + Duration::MAX, last);
        assert_eq!(Time::ZERO + Duration::MAX, last);
    }

    #[test]
    fn a_span_into_the_past_is_zero() {
        let (early, late) = (Time::from_millis(1), Time::from_millis(5));
        assert_eq!(late.saturating_since(early), Duration::from_millis(4));
        assert_eq!(early.saturating_since(late), Duration::ZERO);
    }

    #[test]
    fn an_origin_may_lie_before_the_beginning() {
        let origin = Origin::before(Time::from_millis(1), Duration::from_secs(3_600));
        assert_eq!(origin.age(Time::from_millis(1)), Duration::from_secs(3_600));
        assert_eq!(origin.age(Time::from_millis(5)), Duration::from_millis(3_600_004));
        assert_eq!(Origin::before(Time::from_millis(5), Duration::ZERO).age(Time::ZERO), Duration::ZERO);
        let oldest = Origin::before(Time::ZERO, Duration::MAX);
        assert!(oldest < origin);
        assert_eq!(oldest.age(Time::from_micros(u64::MAX)), Duration::from_micros(u64::MAX));
    }

    #[test]
    fn a_span_that_does_not_fit_is_unknown() {
        assert_eq!(span_ms(Duration::from_micros(1_999)), 1);
        assert_eq!(span_ms(Duration::from_millis(u64::from(u32::MAX) - 1)), u32::MAX - 1);
        assert_eq!(span_ms(Duration::from_millis(u64::from(u32::MAX) + 1)), SPAN_UNKNOWN);
        assert_eq!(span_us(Duration::from_micros(7)), 7);
        assert_eq!(span_us(Duration::from_secs(5_000)), SPAN_UNKNOWN);
    }
}
