//! Draws numbers from a seed by name: the same name gives the same number, whatever else was drawn before.
//!
//! So two runs of one seed with different policies meet the same clients and the same network as far as that can be:
//! the third connection of a device takes as long with either, however many registers were refused meanwhile.

use crate::scenario::Span;

/// What is drawn. Each is a stream of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawn {
    FirstOpen = 1,
    Bursts,
    BurstEvery,
    Opens,
    Spacing,
    Heartbeat,
    Replica,
    Latency,
    Reopen,
    Jitter,
    Drop,
    HalfOpen,
    Unnoticed,
    Away,
    Move,
    Overlap,
    Lingers,
    Kill,
    Killed,
    Back,
    Noticed,
    StoreAway,
    StoreSpan,
    StoreEmpty,
    Store,
    Peer,
    Lost,
    Skew,
    Question,
    World,
    Step,
    Fault,
    Packet,
    Message,
    Connect,
    Return,
    Cut,
    Work,
    Quickness,
    Finish,
    Close,
}

/// The seed of a world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Draws {
        Draws(mix(seed))
    }

    /// 64 bits for the `nth` of its kind of `whom`.
    pub(crate) fn bits(self, what: Drawn, whom: u64, nth: u64) -> u64 {
        mix(mix(mix(self.0 ^ what as u64) ^ whom) ^ nth)
    }

    /// A number below `bound`; 0 if that is 0.
    pub(crate) fn below(self, bound: u64, what: Drawn, whom: u64, nth: u64) -> u64 {
        scaled(self.bits(what, whom, nth), bound)
    }

    /// A number of a span, its ends included.
    pub(crate) fn span(self, span: Span, what: Drawn, whom: u64, nth: u64) -> u64 {
        span.min + self.below(span.max - span.min + 1, what, whom, nth)
    }

    /// A moment of a span of milliseconds, in microseconds.
    pub(crate) fn micros(self, span: Span, what: Drawn, whom: u64, nth: u64) -> u64 {
        let (min, max) = (span.min * 1_000, span.max * 1_000);
        min + self.below(max - min + 1, what, whom, nth)
    }

    /// True so many times in a hundred.
    pub(crate) fn percent(self, percent: u64, what: Drawn, whom: u64, nth: u64) -> bool {
        self.below(100, what, whom, nth) < percent
    }

    /// The moments of a Poisson process of so many an hour, in microseconds, below `end_us`.
    pub(crate) fn moments(self, per_hour: u64, end_us: u64, what: Drawn, whom: u64) -> Vec<u64> {
        const HOUR_US: f64 = 3_600e6;
        let (mut at, mut moments) = (0.0, Vec::new());
        if per_hour == 0 {
            return moments;
        }
        for nth in 0.. {
            // Above 0, so that its logarithm is finite.
            let share = (self.bits(what, whom, nth) >> 11) as f64 / (1_u64 << 53) as f64;
            at -= (1.0 - share).ln() * HOUR_US / per_hour as f64;
            if at >= end_us as f64 {
                break;
            }
            moments.push(at as u64);
        }
        moments
    }
}

/// A number below `bound`, evenly enough: the error is below bound / 2^64.
fn scaled(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

/// SplitMix64's step: each bit of the outcome depends on each of the input.
fn mix(bits: u64) -> u64 {
    let mut bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_the_same_number_whenever_it_is_drawn() {
        let (one, two) = (Draws::new(7), Draws::new(8));
        assert_eq!(one.bits(Drawn::Drop, 1, 2), one.bits(Drawn::Drop, 1, 2));
        let others = [two.bits(Drawn::Drop, 1, 2), one.bits(Drawn::Move, 1, 2), one.bits(Drawn::Drop, 2, 1)];
        assert!(others.iter().all(|other| *other != one.bits(Drawn::Drop, 1, 2)));
    }

    #[test]
    fn spans_are_filled_and_kept() {
        let draws = Draws::new(1);
        let drawn: Vec<u64> = (0..1_000).map(|nth| draws.span(Span { min: 3, max: 6 }, Drawn::Opens, 0, nth)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&6)));
        let hits = (0..10_000).filter(|nth| draws.percent(20, Drawn::Lost, 0, *nth)).count();
        assert!((1_800..2_200).contains(&hits), "{hits}");
    }

    #[test]
    fn so_many_an_hour_on_average() {
        let draws = Draws::new(1);
        let count: usize = (0..100).map(|whom| draws.moments(60, 600_000_000, Drawn::Drop, whom).len()).sum();
        assert!((900..1_100).contains(&count), "{count} in 100 times 10 minutes");
        assert!(draws.moments(0, u64::MAX, Drawn::Drop, 0).is_empty());
    }
}
