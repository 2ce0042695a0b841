//! `pointwork policy simulate`: two rules for a slot in the same simulated worlds, and what that was like for devices, or callers.
//!
//! [`SimulateArgs`] name a scenario, seeds and two rules. Each seed's world is played with either (`play`), each rule being a
//! policy in the engine or the native rule (`side`); what comes of it (`outcome`) is compared seed by seed (`compare`), and
//! told (`report`).

mod args;
mod compare;
mod outcome;
mod play;
mod report;
mod side;

use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

use anyhow::{Context, bail, ensure};
use pointwork_policy::{Engine, SlotName};
use pointwork_simulation::scenario::{FILE_MAX_BYTES, SHIPPED, Scenario, Worlds};

pub use args::{SEEDS_MAX, SimulateArgs};

use report::Report;
use side::Side;

/// Plays what the arguments say, and gives the report. The same arguments and files give the same text, however many
/// threads there are.
///
/// # Errors
/// When the scenario or a policy cannot be read or is refused, when they are not for the slot, or when an invariant of the
/// machines does not hold.
pub fn simulate(args: &SimulateArgs) -> anyhow::Result<String> {
    if args.list_scenarios {
        return list();
    }
    let (Some(slot), Some(policy), Some(scenario)) = (args.slot, &args.policy, &args.scenario) else {
        bail!("--slot, --policy and --scenario are needed");
    };
    let named = scenario.display().to_string();
    let Scenario { summary, worlds } = read_scenario(scenario)?;
    let is_for_settle = matches!(worlds, Worlds::Settle(_));
    ensure!(is_for_settle == (slot == SlotName::Settle), "{named}: these worlds do not ask {slot}");
    let engine = Engine::new()?;
    let policy = Side::load(&engine, slot, policy, args.config.as_deref())?;
    let against = Side::load(&engine, slot, &args.against, args.against_config.as_deref())?;
    let sides = [&policy, &against];
    let jobs = args.jobs.or_else(|| available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let pairs = play::play(&worlds, args.seeds.clone(), sides, jobs).context(named.clone())?;
    let outcomes = if is_for_settle { outcome::SETTLE } else { outcome::RPC };
    let report = Report::new((named, summary), slot, &args.seeds, sides, outcomes, &pairs);
    if args.json { Ok(report.to_json()?) } else { Ok(report.to_text()) }
}

/// One that ships, or a file.
fn read_scenario(named: &Path) -> anyhow::Result<Scenario> {
    let context = || named.display().to_string();
    if let Some(scenario) = named.to_str().and_then(Scenario::shipped) {
        return scenario.with_context(context);
    }
    if !named.exists() {
        let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
        bail!("{}: neither a file nor one of {}", named.display(), names.join(", "));
    }
    let length = fs::metadata(named).with_context(context)?.len();
    ensure!(length <= FILE_MAX_BYTES as u64, "{}: is longer than {FILE_MAX_BYTES} bytes", named.display());
    Scenario::parse(&fs::read_to_string(named).with_context(context)?).with_context(context)
}

fn list() -> anyhow::Result<String> {
    let mut text = String::new();
    for (name, file) in SHIPPED {
        let Scenario { summary, worlds } = Scenario::parse(file).with_context(|| (*name).to_owned())?;
        let slots = if matches!(worlds, Worlds::Settle(_)) { "settle" } else { "target, grace, presence" };
        text.push_str(&format!("{name:<20} {slots:<24} {summary}\n"));
    }
    Ok(text)
}
