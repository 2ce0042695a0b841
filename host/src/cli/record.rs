//! `pointwork policy record`: writes the last decisions of a host that runs into a file.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::Context;
use pointwork_policy::{SlotName, record};

use crate::cli::admin_client::AdminClient;

/// The most that a host keeps in memory, as text.
const BYTES_MAX: u64 = 1 << 30;

/// What is wanted of a host.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The file; one that is there is written anew.
    pub out: PathBuf,
    /// Decisions of one slot alone.
    pub slot: Option<SlotName>,
    /// The last ones, so many at most.
    pub limit: Option<usize>,
}

/// Fetches and writes; says how many.
///
/// # Errors
/// When the host does not answer or refuses, what it gives are no records, or the file cannot be written.
pub fn record(client: &AdminClient, what: &Recording) -> anyhow::Result<String> {
    let asked = [what.slot.map(|slot| format!("slot={slot}")), what.limit.map(|limit| format!("limit={limit}"))];
    let query: Vec<String> = asked.into_iter().flatten().collect();
    let given = client.get_raw(&format!("/v1/policies/records?{}", query.join("&")), BYTES_MAX)?;
    let mut counts = BTreeMap::<&str, u64>::new();
    for read in record::records(given.body.as_slice()) {
        let (_, record) = read.context("what the host gives are no records")?;
        *counts.entry(record.exchange.slot().as_str()).or_default() += 1;
    }
    let named = || what.out.display().to_string();
    fs::write(&what.out, &given.body).with_context(named)?;
    let each: Vec<String> = counts.iter().map(|(slot, count)| format!("{slot} {count}")).collect();
    let total = counts.values().sum::<u64>();
    let each = if each.is_empty() { String::new() } else { format!(" ({})", each.join(", ")) };
    Ok(format!("{total} records{each} in {}\n", named()))
}
