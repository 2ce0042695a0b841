//! The arguments of `pointwork policy simulate`.

use std::ops::Range;
use std::path::PathBuf;

use clap::Args;
use pointwork_policy::SlotName;

/// The most worlds of one run.
pub const SEEDS_MAX: u64 = 100_000;
/// The most threads.
const JOBS_MAX: usize = 64;

/// Two rules for a slot, and the worlds that both are played in.
#[derive(Args, Debug, Clone)]
pub struct SimulateArgs {
    /// Name and say what the scenarios that ship are about, and do nothing else
    #[arg(long)]
    pub list_scenarios: bool,
    /// The slot
    #[arg(long, required_unless_present = "list_scenarios")]
    pub slot: Option<SlotName>,
    /// The rule to be tried: a policy's file, or `native`
    #[arg(long, value_name = "FILE|native", required_unless_present = "list_scenarios")]
    pub policy: Option<PathBuf>,
    /// The rule that it is compared with
    #[arg(long, value_name = "FILE|native", default_value = "native")]
    pub against: PathBuf,
    /// The first policy's configuration, a JSON object or the file that holds one; without it, the JSON file beside the policy
    // It has the type and name of the host's flag for settings, because clap also gives the value of that global flag to it.
    #[arg(id = "config", long = "config", value_name = "JSON|FILE")]
    pub config: Option<PathBuf>,
    /// The other policy's configuration, likewise
    #[arg(long, value_name = "JSON|FILE")]
    pub against_config: Option<PathBuf>,
    /// The worlds: one that ships, or a scenario's file
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "list_scenarios")]
    pub scenario: Option<PathBuf>,
    /// The seeds from A up to B, without B; `A..=B` with it
    #[arg(long, value_name = "A..B", value_parser = seeds, default_value = "0..1000")]
    pub seeds: Range<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Threads; by default one for each core. The output does not depend on it
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let (first, last) = text.split_once("..").ok_or("expected A..B, such as 0..1000")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    let first = number(first)?;
    let end = match last.strip_prefix('=') {
        Some(last) => number(last)?.checked_add(1).ok_or("too great")?,
        None => number(last)?,
    };
    match end.checked_sub(first) {
        None | Some(0) => Err("there is no seed in it".to_owned()),
        Some(count) if count > SEEDS_MAX => Err(format!("{count} seeds, more than {SEEDS_MAX}")),
        Some(_) => Ok(first..end),
    }
}

fn jobs(text: &str) -> Result<usize, String> {
    let jobs = text.parse().ok().filter(|jobs| (1..=JOBS_MAX).contains(jobs));
    jobs.ok_or_else(|| format!("must be from 1 to {JOBS_MAX}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn parses_ranges_of_seeds() {
        assert_eq!(seeds("1..200"), Ok(1..200));
        assert_eq!(seeds("1..=200"), Ok(1..201));
        for wrong in ["", "7", "7..7", "9..7", "a..7", "1..-2", "0..100001", "0..=18446744073709551615"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_the_number_of_jobs() {
        assert_eq!(jobs("2"), Ok(2));
        assert!(["0", "65", "x"].iter().all(|wrong| jobs(wrong).is_err()));
    }
}
