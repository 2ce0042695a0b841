//! Parses the weights of arms.

use anyhow::{Context, ensure};
use pointwork_core::experiments::BUCKETS;

/// Parses weights that are separated by commas, in percent or in parts of 10,000. Returns parts of 10,000.
///
/// # Errors
/// When a weight is no whole number of parts, or their sum is not the whole.
pub(super) fn parse_weights(weights: &str) -> anyhow::Result<Vec<u32>> {
    let numbers = weights.split(',').map(|weight| weight.trim().parse::<f64>());
    let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().context("weights must be numbers, as in 95,5")?;
    let sum: f64 = numbers.iter().sum();
    let whole = f64::from(BUCKETS);
    let factor = if (sum - 100.0).abs() < 1e-6 { whole / 100.0 } else { 1.0 };
    ensure!(
        (sum * factor - whole).abs() < 1e-3,
        "the sum of the weights must be 100 (percent) or 10000, and not {sum}"
    );
    let mut parts = Vec::new();
    for number in numbers {
        let part = number * factor;
        ensure!(part >= 0.0 && (part - part.round()).abs() < 1e-6, "a weight is a whole number of ten thousandths");
        // Between 0 and 10,000.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded, and within bounds")]
        parts.push(part.round() as u32);
    }
    Ok(parts)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::parse_weights;

    #[test]
    fn parses_percent_and_parts_of_ten_thousand() {
        assert_eq!(parse_weights("95,5").unwrap(), [9_500, 500]);
        assert_eq!(parse_weights("99.95, 0.05").unwrap(), [9_995, 5]);
        assert_eq!(parse_weights("9500,500").unwrap(), [9_500, 500]);
        assert_eq!(parse_weights("33.33,33.33,33.34").unwrap(), [3_333, 3_333, 3_334]);
        for wrong in ["", "95", "95,6", "a,b", "101,-1", "99.999,0.001", "nan,1"] {
            assert!(parse_weights(wrong).is_err(), "{wrong}");
        }
    }
}
