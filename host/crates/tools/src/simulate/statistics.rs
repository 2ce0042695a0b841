//! Compares the outcomes of two rules on the same seeds: their distributions, and the mean difference with its interval.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// How many pairs a conclusion needs.
const PAIRS_MIN: usize = 10;

/// How an outcome is distributed over worlds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Distribution {
    pub(super) mean: f64,
    /// Half of the worlds have at most this.
    pub(super) p50: f64,
    /// Nine in ten have at most this.
    pub(super) p90: f64,
    /// 99 in 100 have at most this.
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// The first rule's outcome minus the second rule's, over the worlds in which both have the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Difference {
    /// How many worlds.
    pub(super) pairs: usize,
    pub(super) mean: f64,
    /// The lower end of its 95 % interval (paired t).
    pub(super) low: f64,
    pub(super) high: f64,
}

/// What the difference says about the first rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Conclusion {
    /// No world differed.
    Same,
    /// The interval lies on the better side of 0.
    Better,
    /// The interval lies on the worse side of 0.
    Worse,
    /// The interval contains 0.
    Undecided,
    /// There were too few worlds.
    TooFew,
}

impl Conclusion {
    /// The word in the text report.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Undecided => "undecided",
            Self::TooFew => "too few",
        }
    }
}

impl Distribution {
    /// The distribution of these values; `None` if there are none.
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
    /// The mean of these differences and its interval; `None` if there are none.
    pub(super) fn of(differences: &[f64]) -> Option<Difference> {
        let pairs = differences.len();
        if pairs == 0 {
            return None;
        }
        let mean = differences.iter().sum::<f64>() / pairs as f64;
        let half = if pairs == 1 { f64::INFINITY } else { half_width(differences, mean) };
        Some(Difference { pairs, mean, low: mean - half, high: mean + half })
    }

    /// The conclusion, by whether less of the outcome is better, or more.
    pub(super) fn conclusion(&self, is_less_better: bool) -> Conclusion {
        let is_nothing = self.low == 0.0 && self.high == 0.0;
        match (self.low > 0.0, self.high < 0.0) {
            _ if is_nothing => Conclusion::Same,
            _ if self.pairs < PAIRS_MIN => Conclusion::TooFew,
            (false, false) => Conclusion::Undecided,
            (is_more, _) if is_more == is_less_better => Conclusion::Worse,
            _ => Conclusion::Better,
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
    fn uses_values_that_occurred_as_quantiles() {
        let of = |values: &[f64]| Distribution::of(values.iter().copied());
        assert_eq!(of(&[]), None);
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let all = of(&hundred).unwrap();
        assert_eq!((all.mean, all.p50, all.p90, all.p99, all.max), (50.5, 50.0, 90.0, 99.0, 100.0));
        let one = of(&[7.0]).unwrap();
        assert_eq!((one.p50, one.p99, one.max), (7.0, 7.0, 7.0));
    }

    /// R's `t.test(c(1, 2, 3, 4, 5, 6, 7, 8, 9, 10))` says 3.334149 to 7.665851.
    #[test]
    fn computes_the_interval_of_the_paired_t_test() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        let difference = Difference::of(&ten).unwrap();
        assert!((difference.low - 3.334_149).abs() < 1e-6 && (difference.high - 7.665_851).abs() < 1e-6);
        assert_eq!(
            (difference.conclusion(true), difference.conclusion(false)),
            (Conclusion::Worse, Conclusion::Better)
        );
    }

    #[test]
    fn draws_conclusions() {
        let conclusion = |values: &[f64]| Difference::of(values).unwrap().conclusion(true);
        assert_eq!(Difference::of(&[]), None);
        assert_eq!(conclusion(&[0.0; 20]), Conclusion::Same);
        assert_eq!(conclusion(&[0.0]), Conclusion::TooFew, "one world says nothing");
        assert_eq!(conclusion(&[-1.0; 9]), Conclusion::TooFew);
        assert_eq!(conclusion(&[-1.0; 10]), Conclusion::Better);
        let mixed: Vec<f64> = (0..20).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert_eq!(conclusion(&mixed), Conclusion::Undecided);
    }
}
