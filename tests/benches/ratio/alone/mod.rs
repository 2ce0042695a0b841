//! What only Pointwork has, in figures of its own.

mod decision;
mod fail;
mod line;
mod recovery;
mod swap;

use anyhow::Result;

use crate::servers::cluster::Kind;
use crate::{
    figures::Figures,
    options::{Options, What},
    redis::Redis,
};

pub(crate) use line::{HEAD, Line};

/// What the decision of a target may take of a call.
const SHARE_MAX_PERCENT: f64 = 3.0;

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
