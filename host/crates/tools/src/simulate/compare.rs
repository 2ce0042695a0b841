//! Two rules' outcomes on the same seeds: how each is distributed, and the mean difference with its interval.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewer pairs than this give no verdict.
const PAIRS_MIN: usize = 10;

/// How an outcome is distributed over worlds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Distribution {
    /// The mean.
    pub(super) mean: f64,
    /// Half of the worlds have no more.
    pub(super) p50: f64,
    /// Nine in ten have no more.
    pub(super) p90: f64,
    /// All but one in a hundred have no more.
    pub(super) p99: f64,
    /// The greatest.
    pub(super) max: f64,
}

/// The difference of two rules in an outcome, the first less the second, over the worlds in which both have it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Difference {
    /// How many worlds.
    pub(super) pairs: usize,
    /// The mean.
    pub(super) mean: f64,
    /// The lower end of its 95 % interval (paired t).
    pub(super) low: f64,
    /// The upper end.
    pub(super) high: f64,
}

/// What the difference says of the first rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Word {
    /// No world differed at all.
    Same,
    /// The interval lies on the better side of 0.
    Better,
    /// The interval lies on the worse side of 0.
    Worse,
    /// The interval has 0 in it.
    Undecided,
    /// Too few worlds to say.
    TooFew,
}

impl Word {
    /// The word in the report.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Word::Same => "same",
            Word::Better => "better",
            Word::Worse => "worse",
            Word::Undecided => "undecided",
            Word::TooFew => "too few",
        }
    }
}

impl Distribution {
    /// Of these; `None` if there are none.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Distribution> {
        let mut values: Vec<f64> = values.collect();
        let max_index = values.len().checked_sub(1)?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.sort_by(f64::total_cmp);
        // The nearest rank: a value that occurred.
        let at = |percent: usize| values[((values.len() * percent).div_ceil(100)).saturating_sub(1).min(max_index)];
        Some(Distribution { mean, p50: at(50), p90: at(90), p99: at(99), max: values[max_index] })
    }
}

impl Difference {
    /// Of these differences; `None` if there are none.
    pub(super) fn of(differences: &[f64]) -> Option<Difference> {
        let pairs = differences.len();
        if pairs == 0 {
            return None;
        }
        let mean = differences.iter().sum::<f64>() / pairs as f64;
        let half = if pairs == 1 { f64::INFINITY } else { half_width(differences, mean) };
        Some(Difference { pairs, mean, low: mean - half, high: mean + half })
    }

    /// What it says if less is better, or more.
    pub(super) fn word(&self, is_less_better: bool) -> Word {
        let is_nothing = self.low == 0.0 && self.high == 0.0;
        match (self.low > 0.0, self.high < 0.0) {
            _ if is_nothing => Word::Same,
            _ if self.pairs < PAIRS_MIN => Word::TooFew,
            (false, false) => Word::Undecided,
            (is_more, _) if is_more == is_less_better => Word::Worse,
            _ => Word::Better,
        }
    }
}

/// Half of the 95 % interval of the mean; exactly 0 if all are equal.
fn half_width(differences: &[f64], mean: f64) -> f64 {
    let freedom = (differences.len() - 1) as f64;
    if differences.iter().all(|difference| *difference == differences[0]) {
        return 0.0;
    }
    let squares: f64 = differences.iter().map(|difference| (difference - mean).powi(2)).sum();
    let error = (squares / freedom / differences.len() as f64).sqrt();
    // There is always at least one degree of freedom.
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |student| student.inverse_cdf(0.975) * error)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_of_values_that_occurred() {
        let of = |values: &[f64]| Distribution::of(values.iter().copied());
        assert_eq!(of(&[]), None);
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let all = of(&hundred).unwrap();
        assert_eq!((all.mean, all.p50, all.p90, all.p99, all.max), (50.5, 50.0, 90.0, 99.0, 100.0));
        let one = of(&[7.0]).unwrap();
        assert_eq!((one.p50, one.p99, one.max), (7.0, 7.0, 7.0));
    }

    /// Known: R's `t.test(c(1, 2, 3, 4, 5, 6, 7, 8, 9, 10))` says 3.334149 to 7.665851.
    #[test]
    fn the_interval_is_that_of_the_paired_t() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        let difference = Difference::of(&ten).unwrap();
        assert!((difference.low - 3.334_149).abs() < 1e-6 && (difference.high - 7.665_851).abs() < 1e-6);
        assert_eq!((difference.word(true), difference.word(false)), (Word::Worse, Word::Better));
    }

    #[test]
    fn words() {
        let word = |values: &[f64]| Difference::of(values).unwrap().word(true);
        assert_eq!(Difference::of(&[]), None);
        assert_eq!(word(&[0.0; 20]), Word::Same);
        assert_eq!(word(&[0.0]), Word::TooFew, "one world says nothing");
        assert_eq!(word(&[-1.0; 9]), Word::TooFew);
        assert_eq!(word(&[-1.0; 10]), Word::Better);
        let mixed: Vec<f64> = (0..20).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert_eq!(word(&mixed), Word::Undecided);
    }
}
