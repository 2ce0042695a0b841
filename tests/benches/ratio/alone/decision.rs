//! Decisions of the default policies: each timed for itself, warm, on one thread, from the host's question to its verdict.

use std::{hint::black_box, time::Instant};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use pointwork::{
    config::{PolicyConfig, RpcConfig},
    policies::slots::Policies,
};
use pointwork_core::decisions::Call;
use pointwork_policy::SlotName;
use pointwork_tests::{built, measure::quantile::quantile, questions};

use super::line::Line;
use crate::options::Amounts;

/// The host's own bound: with more candidates a decision may take longer.
const P99_MAX_US: f64 = 10.0;

/// A line for each slot; gives the median of a decision between the one candidate of a usual call, in microseconds.
pub(super) fn measure(amounts: &Amounts, lines: &mut Vec<Line>) -> Result<f64> {
    let rng = &mut Rng::with_seed(1);
    let call = Call { method: "machine-1:bash".into(), ..questions::call(rng) };
    let (one, eight) = (questions::candidates(rng, 1), questions::candidates(rng, 8));
    let target = Slot::new(SlotName::Target, "target-first")?;
    let choice = target.time(amounts, |policies| policies.choose(1, black_box(&call), black_box(&one)))?;
    let choice_us = quantile(&choice, 0.5);
    lines.push(Line::new("decision: target, 1 candidate", "µs", choice, Some(P99_MAX_US)));
    let choice = target.time(amounts, |policies| policies.choose(1, black_box(&call), black_box(&eight)))?;
    lines.push(Line::new("decision: target, 8 candidates", "µs", choice, Some(P99_MAX_US)));

    let (absence, doubt) = (questions::absence(rng), questions::doubt(rng));
    let wait = Slot::new(SlotName::Grace, "grace-fixed")?
        .time(amounts, |policies| policies.wait(1, black_box(&call), black_box(&absence)))?;
    lines.push(Line::new("decision: grace", "µs", wait, Some(P99_MAX_US)));
    let verdict = Slot::new(SlotName::Presence, "presence-seed")?
        .time(amounts, |policies| policies.judge(1, black_box(&call), black_box(&doubt)))?;
    lines.push(Line::new("decision: presence", "µs", verdict, Some(P99_MAX_US)));
    let (incumbent, newcomer) = (questions::incumbent(rng, 2_500), questions::newcomer(rng));
    let history = questions::history(rng);
    let settled = Slot::new(SlotName::Settle, "settle-hold")?
        .time(amounts, |policies| policies.settle(1, 2_500, black_box(&incumbent), &newcomer, black_box(&history)))?;
    lines.push(Line::new("decision: settle", "µs", settled, Some(P99_MAX_US)));
    Ok(choice_us)
}

/// One slot with its policy.
struct Slot {
    name: SlotName,
    policies: Policies,
}

impl Slot {
    fn new(name: SlotName, policy: &str) -> Result<Self> {
        let policies = Policies::new(&PolicyConfig::default(), &RpcConfig::default())?;
        policies.load(name, &built::policy(policy)?, "{}");
        Ok(Self { name, policies })
    }

    /// How long each of so many decisions took, in microseconds. Errors when the policy did not answer all of them.
    fn time<T>(&self, amounts: &Amounts, mut decide: impl FnMut(&Policies) -> T) -> Result<Vec<f64>> {
        for _ in 0..amounts.decisions / 10 {
            black_box(decide(&self.policies));
        }
        let mut took_us = Vec::with_capacity(amounts.decisions);
        for _ in 0..amounts.decisions {
            let begun = Instant::now();
            black_box(decide(&self.policies));
            took_us.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        let status = self.policies.status().into_iter().find(|status| status.slot == self.name);
        let status = status.context("a slot has a status")?;
        ensure!(status.source == "wasm" && status.native == 0, "{:?} {:?}", status.last_load_error, status.failures);
        Ok(took_us)
    }
}
