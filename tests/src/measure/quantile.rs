//! Quantiles of what was measured, and how far it is spread.

/// The value that a share `q` (0 to 1) of them does not exceed, by nearest rank; 0 of none.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    of_sorted(&sorted, q)
}

/// As [`quantile`], of values that are sorted already.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank is far below 2^53, and held within the slice"
)]
pub fn of_sorted(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(last)).copied().unwrap_or_default()
}

/// The one in the middle, or the mean of the two there; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(middle.wrapping_sub(1)), sorted.get(middle)) {
        (1, _, Some(middle)) => *middle,
        (0, Some(below), Some(above)) => f64::midpoint(*below, *above),
        _ => 0.0,
    }
}

/// Half the distance from the least to the greatest, as a share of the median; 0 of fewer than two.
pub fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let median = median(values);
    if values.len() < 2 || median == 0.0 { 0.0 } else { (greatest - least) / 2.0 / median }
}

/// How far two halves of the same measurement are apart: the median of the rounds with odd numbers by that of the others.
/// 1 of fewer than two.
pub fn halves(values: &[f64]) -> f64 {
    let half = |offset| median(&values.iter().copied().skip(offset).step_by(2).collect::<Vec<_>>());
    let (one, other) = (half(0), half(1));
    if values.len() < 2 || other == 0.0 { 1.0 } else { one / other }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "these are values that went in, or their exact halves")]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_value_that_was_measured() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|q| quantile(&hundred, q)), [1.0, 50.0, 99.0, 100.0]);
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&[5.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn the_spread_is_half_the_range() {
        assert_eq!(spread(&[90.0, 100.0, 110.0]), 0.1);
        assert_eq!(spread(&[5.0]), 0.0);
    }

    #[test]
    fn halves_are_taken_in_turns() {
        assert_eq!(halves(&[1.0, 2.0, 1.0, 2.0, 1.0]), 0.5);
        assert_eq!(halves(&[1.0]), 1.0);
    }
}
