//! Checks whether the units are split as the weights say. If not, assignment or logging is broken, and a difference between the
//! arms says nothing about the treatment.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::sequence::count;
use super::unit::{Unit, WHOLE};

/// A split that is less likely than this counts as broken.
pub const BROKEN_BELOW: f64 = 0.001;

/// The chi-square test needs at least this many expected units in each arm.
pub const EXPECTED_MIN: f64 = 5.0;

/// How the units are split between the arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleRatio {
    /// Units exposed, by arm.
    pub exposed: Vec<usize>,
    /// Units to expect by the weights in force at each unit's exposure, by arm.
    pub expected: Vec<f64>,
    /// Pearson's chi-square of the two. `None` if too few units are expected, or a unit is in an arm without weight.
    pub chi_square: Option<f64>,
    /// The probability that a split deviates at least this much by chance.
    pub p: Option<f64>,
    /// What follows.
    pub verdict: Split,
}

/// The result of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// The units are split as the weights say.
    Fair,
    /// Assignment or logging is broken, so no effect can be reported.
    Broken,
    /// Too few units to say.
    TooEarly,
}

/// Compares where the units are with where the weights in force at their exposure would have put them. All units must fit `arms`
/// ([`Unit::fits`]).
///
/// Where weights changed on the way, the sum of the expectations varies less than one weight for all would have it, so chance
/// alone is called broken less often than [`BROKEN_BELOW`], not more.
pub fn sample_ratio<'a>(arms: usize, units: impl IntoIterator<Item = &'a Unit>) -> SampleRatio {
    let mut exposed = vec![0; arms];
    let mut shares = vec![0; arms];
    let mut impossible = false;
    for unit in units {
        exposed[unit.arm] += 1;
        impossible |= unit.shares[unit.arm] == 0;
        for (sum, share) in shares.iter_mut().zip(&unit.shares) {
            *sum += usize::from(*share);
        }
    }
    let expected: Vec<f64> = shares.into_iter().map(|sum| count(sum) / f64::from(WHOLE)).collect();
    if impossible {
        return SampleRatio { exposed, expected, chi_square: None, p: Some(0.0), verdict: Split::Broken };
    }
    let Some((chi_square, p)) = pearson(&exposed, &expected) else {
        return SampleRatio { exposed, expected, chi_square: None, p: None, verdict: Split::TooEarly };
    };
    let verdict = if p < BROKEN_BELOW { Split::Broken } else { Split::Fair };
    SampleRatio { exposed, expected, chi_square: Some(chi_square), p: Some(p), verdict }
}

/// Chi-square and its tail, over the arms that had any weight. `None` if those are fewer than two or one expects too few.
fn pearson(exposed: &[usize], expected: &[f64]) -> Option<(f64, f64)> {
    let cells: Vec<(f64, f64)> =
        exposed.iter().map(|units| count(*units)).zip(expected.iter().copied()).filter(|cell| cell.1 > 0.0).collect();
    if cells.len() < 2 || cells.iter().any(|cell| cell.1 < EXPECTED_MIN) {
        return None;
    }
    let chi_square = cells.iter().map(|(units, expected)| (units - expected).powi(2) / expected).sum();
    let distribution = ChiSquared::new(count(cells.len() - 1)).ok()?;
    Some((chi_square, distribution.sf(chi_square)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn units(arm: usize, shares: &[u16], many: usize) -> Vec<Unit> {
        let unit = |id| Unit { id: format!("{arm}-{id}"), arm, shares: shares.to_vec(), exposed_ms: 0, values: vec![] };
        (0..many).map(unit).collect()
    }

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() <= 1e-9 * right.abs(), "{left} is not {right}");
    }

    /// 95/5 with 900 and 100: (900-950)²/950 + (100-50)²/50 = 52.63; 930 and 70: 8.42. One degree of freedom, so the tail is
    /// erfc(sqrt(x/2)), by Python's math.erfc.
    #[test]
    fn two_arms_against_known_answers() {
        let off = sample_ratio(2, &[units(0, &[9_500, 500], 900), units(1, &[9_500, 500], 100)].concat());
        close(off.chi_square.unwrap(), 1_000.0 / 19.0);
        close(off.p.unwrap(), 4.023_672_190_684_239_4e-13);
        assert_eq!((off.expected.as_slice(), off.verdict), ([950.0, 50.0].as_slice(), Split::Broken));
        let fair = sample_ratio(2, &[units(0, &[9_500, 500], 930), units(1, &[9_500, 500], 70)].concat());
        close(fair.p.unwrap(), 0.003_709_009_990_974_805_8);
        assert_eq!(fair.verdict, Split::Fair);
    }

    /// 1,000 units at 80/10/10 and 1,000 at 40/30/30: 1,200, 400 and 400 expected. Two degrees of freedom: the tail is exp(-x/2).
    #[test]
    fn each_unit_counts_by_the_weights_in_force_at_its_exposure() {
        let (early, late) = ([8_000, 1_000, 1_000], [4_000, 3_000, 3_000]);
        let parts = [(0, early, 800), (1, early, 110), (2, early, 90), (0, late, 370), (1, late, 330), (2, late, 300)];
        let all: Vec<Unit> = parts.iter().flat_map(|(arm, shares, many)| units(*arm, shares, *many)).collect();
        let split = sample_ratio(3, &all);
        let chi_square: f64 = 30.0 * 30.0 / 1_200.0 + 40.0 * 40.0 / 400.0 + 10.0 * 10.0 / 400.0;
        close(split.chi_square.unwrap(), chi_square);
        close(split.p.unwrap(), (-chi_square / 2.0).exp());
    }

    #[test]
    fn a_unit_in_an_arm_without_weight_is_broken() {
        let split = sample_ratio(2, &[units(0, &[10_000, 0], 3), units(1, &[10_000, 0], 1)].concat());
        assert_eq!((split.p, split.verdict), (Some(0.0), Split::Broken));
    }

    #[test]
    fn few_units_or_one_arm_are_too_early() {
        let few = sample_ratio(2, &units(1, &[9_500, 500], 99));
        assert_eq!((few.p, few.verdict), (None, Split::TooEarly));
        let alone = sample_ratio(2, &units(0, &[10_000, 0], 5_000));
        assert_eq!((alone.p, alone.verdict), (None, Split::TooEarly));
        assert_eq!(sample_ratio(2, &[]).verdict, Split::TooEarly);
    }
}
