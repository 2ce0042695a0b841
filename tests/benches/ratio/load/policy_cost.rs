//! What the policy takes of a call: the cost that the host noted of each decision while it was under load.

use anyhow::{Context, Result, ensure};
use pointwork_tests::measure::quantile::quantile;
use serde_json::Value;

use crate::servers::{cluster::Replica, http};

/// So many are kept by default.
const RECORDS: usize = 1_000;
/// Beyond this quantile a decision was interrupted by the machine, which is no cost of the policy.
const UNDISTURBED: f64 = 0.99;

/// The mean of what a replica's last decisions about targets took, in microseconds. Errors when one of them was not the policy's.
pub(crate) async fn mean_us(replica: &Replica) -> Result<f64> {
    let url = format!("{}/v1/policies/records?slot=target&limit={RECORDS}", replica.admin());
    let mut costs_us = Vec::with_capacity(RECORDS);
    for line in http::get(&url).await?.lines() {
        let record: Value = serde_json::from_str(line).context("a record is a line")?;
        ensure!(record["by"] == "wasm", "a decision was not the policy's: {line}");
        costs_us.push(record["cost_us"].as_f64().context("a record has a cost")?);
    }
    ensure!(!costs_us.is_empty(), "there are no records");
    let most = quantile(&costs_us, UNDISTURBED);
    costs_us.retain(|cost_us| *cost_us <= most);
    Ok(costs_us.iter().sum::<f64>() / costs_us.len() as f64)
}
