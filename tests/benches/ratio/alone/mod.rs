//! What only Pointwork has, in figures of its own.

mod decision;
mod fail;
mod recovery;
mod swap;

use anyhow::Result;
use pointwork_tests::measure::quantile::quantile;

use super::{
    cluster::Kind,
    figures::Figures,
    options::{Options, What},
    redis::Redis,
};

/// What the decision of a target may take of a call.
const SHARE_MAX_PERCENT: f64 = 3.0;

/// A line of the second table.
pub(crate) struct Line {
    label: String,
    unit: &'static str,
    samples: Vec<f64>,
    /// What the 99th percentile should not exceed.
    budget: Option<f64>,
}

impl Line {
    fn new(label: impl Into<String>, unit: &'static str, samples: Vec<f64>, budget: Option<f64>) -> Self {
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

/// Of [`Line::cells`].
pub(crate) const HEAD: [&str; 6] = ["Pointwork alone", "samples", "p50", "p99", "budget of the p99", "met"];

/// All that is asked for; `figures` are those of calls.
pub(crate) async fn measure(options: &Options, redis: &Redis, figures: &Figures) -> Result<Vec<Line>> {
    let amounts = options.amounts();
    let mut lines = Vec::new();
    if !figures.policy_shares.is_empty() {
        let label = "policy's share of a cross-replica call's CPU: the guest, under load";
        lines.push(Line::new(label, "%", figures.policy_shares.clone(), Some(SHARE_MAX_PERCENT)));
    }
    if options.has(What::Decision) {
        let choice_us = decision::measure(&amounts, &mut lines)?;
        if let Some(call_us) = figures.median(Kind::Pointwork, "cross.cpu") {
            let label = "… the whole decision, warm, on a thread alone";
            lines.insert(1, Line::new(label, "%", vec![100.0 * choice_us / call_us], Some(SHARE_MAX_PERCENT)));
        }
    }
    if options.has(What::Swap) {
        lines.push(swap::measure(&amounts, redis).await?);
    }
    if options.has(What::Fail) {
        lines.push(fail::sockets(&amounts, redis).await?);
        lines.push(fail::replicas(&amounts, redis).await?);
    }
    if options.has(What::Recovery) {
        lines.push(recovery::measure(&amounts, redis).await?);
    }
    Ok(lines)
}
