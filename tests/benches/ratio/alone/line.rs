//! Describes one figure of the second table.

use pointwork_tests::measure::quantile::quantile;

/// Of [`Line::cells`].
pub(crate) const HEAD: [&str; 6] = ["Pointwork alone", "samples", "p50", "p99", "budget of the p99", "met"];

/// A line of the second table.
pub(crate) struct Line {
    label: String,
    unit: &'static str,
    samples: Vec<f64>,
    /// What the 99th percentile should not exceed.
    budget: Option<f64>,
}

impl Line {
    pub(super) fn new(label: impl Into<String>, unit: &'static str, samples: Vec<f64>, budget: Option<f64>) -> Self {
        Self { label: label.into(), unit, samples, budget }
    }

    /// Cells for [`HEAD`].
    pub(crate) fn cells(&self) -> Vec<String> {
        let shown = |q| format!("{:.2} {}", quantile(&self.samples, q), self.unit);
        let is_met = self.budget.map(|budget| quantile(&self.samples, 0.99) <= budget);
        vec![
            self.label.clone(),
            self.samples.len().to_string(),
            shown(0.5),
            shown(0.99),
            self.budget.map_or_else(String::new, |budget| format!("≤ {budget} {}", self.unit)),
            is_met.map_or_else(String::new, |is_met| if is_met { "yes" } else { "no" }.to_owned()),
        ]
    }
}
