//! The interval of an effect that holds at every look: an asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha, Kennedy,
//! Ramdas, "Time-uniform central limit theory and asymptotic confidence sequences").
//!
//! Each unit that is counted becomes one `x = (y - c) * (Z/p - (1-Z)/(1-p))`: `y` its outcome, `Z` whether it is in the treatment,
//! `p` the treatment's probability when the unit was exposed, `c` the mean of the units counted before it. The mean of `x`
//! estimates treatment minus control whatever `c` and however `p` changed on the way; over `n` of them with deviation `s`,
//!
//! ```text
//! mean ± s · sqrt( 2 (n ρ² + 1) / (n² ρ²) · ln( sqrt(n ρ² + 1) / α ) ),   ρ² = (-2 ln α + ln(-2 ln α + 1)) / INTENDED_UNITS
//! ```
//!
//! holds for all `n` at once at level `1 - α`. The first unit only gives `c` for the second: without a mean before it, its `x` would
//! depend on where the outcome's zero is, and outcomes of ten minutes in milliseconds would be ruled by it.
//!
//! **The deviation** is the greater of two: that of `x` so far, and that which `x` would have if the arm made no difference,
//! `sqrt(mean of (y - c)² / (p (1-p)))`. The first alone is too small where it matters: of counts that are mostly 0, a small arm that
//! has by chance none of the rare high ones has a low mean and a low deviation at once, and is called better. How often the
//! two arms of 4,000 experiments without any difference were called different, looked at 100 times while they grew to so many
//! units, from [`SMALLER_ARM_MIN`] on:
//!
//! | counts, negative binomial | units | 50/50 | 5/95, deviation of `x` alone | 5/95, the greater |
//! |---|---|---|---|---|
//! | mean 0.5, dispersion 0.25: 76 % are 0 | 6,000 | 2.0 % | 6.7 % | 0.2 % |
//! | mean 2, dispersion 0.15: 67 % are 0 | 6,000 | 1.9 % | 9.4 % | 0.1 % |
//! | mean 1, dispersion 0.05: 86 % are 0 | 6,000 | 1.9 % | 18.9 % | 0.0 % |
//! | mean 0.5, dispersion 0.25 | 20,000 | | 7.7 % | 0.3 % |
//!
//! A higher minimum is no way out: of the third kind, 200 units in the smaller arm still leave 6.1 %. The price is units, and only in
//! uneven splits: an effect of -60 % on the first kind is found at 480 units (median) at 50/50, 820 at 20/80, 3,020 at
//! 5/95, instead of 420, 420 and 1,320.

/// How often all intervals of one outcome may be wrong at any look, over the whole life of an experiment.
pub const ALPHA: f64 = 0.05;

/// The number of units at which the interval is tightest. A treatment of 5 % that is worth having is found between a thousand and
/// some thousand units; at 50/50, where hundreds do, being tuned for 2,000 costs 60 units more than being tuned for 1,000.
pub const INTENDED_UNITS: f64 = 2_000.0;

/// Below so many units in the smaller arm nothing is said of an effect: the interval rests on the central limit theorem.
pub const SMALLER_ARM_MIN: usize = 60;

/// One unit's outcome as the sequence takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Whether the unit is in the treatment; in control otherwise.
    pub treated: bool,
    /// The probability with which it got into the treatment, above 0 and below 1.
    pub probability: f64,
    /// What was measured.
    pub value: f64,
}

/// The comparison of one treatment with control in one outcome: fed with the units in order of their exposure.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// Control and treatment.
    arms: [Mean; 2],
    all: Mean,
    effect: Mean,
    /// Sum of squared deviations of `x` from its mean.
    squares: f64,
    /// Sum of the squares that `x` has on average over both arms, if they are alike.
    squares_if_alike: f64,
}

impl Sequence {
    /// Counts one more unit.
    pub fn add(&mut self, observation: Observation) {
        let Observation { treated, probability, value } = observation;
        debug_assert!(probability > 0.0 && probability < 1.0);
        let before = self.all;
        self.all.add(value);
        self.arms[usize::from(treated)].add(value);
        if before.units == 0 {
            return;
        }
        let centred = value - before.mean;
        let x = centred * if treated { 1.0 / probability } else { -1.0 / (1.0 - probability) };
        let off = x - self.effect.mean;
        self.effect.add(x);
        self.squares += off * (x - self.effect.mean);
        self.squares_if_alike += centred * centred / (probability * (1.0 - probability));
    }

    /// How many units of control and of the treatment were counted.
    pub fn units(&self) -> [usize; 2] {
        self.arms.map(|arm| arm.units)
    }

    /// The interval over what was counted, wrong at any look with probability `alpha`. `None` before [`SMALLER_ARM_MIN`].
    pub fn interval(&self, alpha: f64) -> Option<Interval> {
        if self.arms.iter().any(|arm| arm.units < SMALLER_ARM_MIN) {
            return None;
        }
        let units = count(self.effect.units);
        let deviation = (self.squares.max(self.squares_if_alike) / units).sqrt();
        let half = deviation * width(units, alpha);
        let estimate = self.effect.mean;
        Some(Interval { estimate, low: estimate - half, high: estimate + half })
    }
}

/// Half the interval's width over `units` observations with a deviation of 1.
fn width(units: f64, alpha: f64) -> f64 {
    let log = -2.0 * alpha.ln();
    let rho2 = (log + (log + 1.0).ln()) / INTENDED_UNITS;
    let grown = units * rho2 + 1.0;
    (2.0 * grown / (units * units * rho2) * (grown.sqrt() / alpha).ln()).sqrt()
}

/// Treatment minus control, and where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The effect as measured, in the outcome's own unit of measure.
    pub estimate: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Interval {
    /// Whether it excludes that there is no effect.
    pub fn excludes_none(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// A mean as it grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    pub(super) units: usize,
    pub(super) mean: f64,
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.units += 1;
        self.mean += (value - self.mean) / count(self.units);
    }
}

/// A count as a number to calculate with; exact below 2⁵³.
#[allow(clippy::cast_precision_loss)]
pub(super) fn count(units: usize) -> f64 {
    units as f64
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
