//! `pointwork policy record`: writes the last decisions of a running host into a file.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::Context;
use clap::Args;
use pointwork_policy::{SlotName, record};

use crate::cli::admin_client::AdminClient;

/// More bytes than a host keeps in memory, as text.
const BYTES_MAX: u64 = 1 << 30;

/// What to record.
#[derive(Args, Debug, Clone)]
pub(in crate::cli) struct RecordArgs {
    /// The file, one JSON object a line; one that is there is written anew
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Decisions of this slot alone
    #[arg(long)]
    slot: Option<SlotName>,
    /// So many at most
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

impl RecordArgs {
    /// Returns how many records of each slot the file holds.
    pub(super) fn run(&self, host: &AdminClient) -> anyhow::Result<String> {
        let filters = [self.slot.map(|slot| format!("slot={slot}")), self.limit.map(|limit| format!("limit={limit}"))];
        let query: Vec<String> = filters.into_iter().flatten().collect();
        let answer = host.get_raw(&format!("/v1/policies/records?{}", query.join("&")), BYTES_MAX)?;
        let mut counts = BTreeMap::<&str, u64>::new();
        for record in record::records(answer.body().as_slice()) {
            let (_, record) = record.context("what the host gives are no records")?;
            *counts.entry(record.exchange.slot().as_str()).or_default() += 1;
        }
        let out = self.out.display();
        fs::write(&self.out, answer.body()).with_context(|| out.to_string())?;
        let total = counts.values().sum::<u64>();
        let by_slot: Vec<String> = counts.iter().map(|(slot, count)| format!("{slot} {count}")).collect();
        let by_slot = if by_slot.is_empty() { String::new() } else { format!(" ({})", by_slot.join(", ")) };
        Ok(format!("{total} records{by_slot} in {out}\n"))
    }
}
