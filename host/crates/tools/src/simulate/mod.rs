//! `pointwork policy simulate`: plays two rules for a slot in the same simulated worlds, and compares the outcomes for devices or
//! callers.
//!
//! Each seed's world is played with both rules (`play`); each is a policy or the native rule (`rule`). The outcomes (`outcome`) are
//! compared seed by seed (`statistics`) and reported (`report`).

mod args;
mod outcome;
mod play;
mod report;
mod rule;
mod statistics;

use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

use anyhow::{Context, bail, ensure};
use pointwork_policy::{Engine, SlotName};
use pointwork_simulation::scenario::{FILE_MAX_BYTES, SHIPPED, Scenario, Worlds};

pub use args::{SEEDS_MAX, SimulateArgs};

use report::SimulationReport;
use rule::LoadedRule;

/// Plays the two rules and returns the report. The same arguments and files give the same text, however many threads there are.
///
/// # Errors
/// When the scenario or a policy cannot be read or is refused, when they are not for the slot, or when an invariant of the machines
/// does not hold.
pub fn simulate(args: &SimulateArgs) -> anyhow::Result<String> {
    if args.list_scenarios {
        return list_scenarios();
    }
    let (Some(slot), Some(policy), Some(scenario)) = (args.slot, &args.policy, &args.scenario) else {
        bail!("--slot, --policy and --scenario are needed");
    };
    let name = scenario.display().to_string();
    let Scenario { summary, worlds } = read_scenario(scenario)?;
    let is_for_settle = matches!(worlds, Worlds::Settle(_));
    ensure!(is_for_settle == (slot == SlotName::Settle), "{name}: these worlds do not ask {slot}");
    let engine = Engine::new()?;
    let policy = LoadedRule::load(&engine, slot, policy, args.config.as_deref())?;
    let against = LoadedRule::load(&engine, slot, &args.against, args.against_config.as_deref())?;
    let rules = [&policy, &against];
    let jobs = args.jobs.or_else(|| available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let pairs = play::play(&worlds, args.seeds.clone(), rules, jobs).context(name.clone())?;
    let outcomes = if is_for_settle { outcome::settle_specs() } else { outcome::rpc_specs() };
    let report = SimulationReport::new((name, summary), slot, &args.seeds, rules, &outcomes, &pairs);
    if args.json { Ok(serde_json::to_string(&report)? + "\n") } else { Ok(report.to_text()) }
}

/// Reads a scenario that ships, or a file.
fn read_scenario(named: &Path) -> anyhow::Result<Scenario> {
    let name = || named.display().to_string();
    if let Some(scenario) = named.to_str().and_then(Scenario::shipped) {
        return scenario.with_context(name);
    }
    if !named.exists() {
        let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
        bail!("{}: neither a file nor one of {}", name(), names.join(", "));
    }
    let length = fs::metadata(named).with_context(name)?.len();
    ensure!(length <= FILE_MAX_BYTES as u64, "{}: is longer than {FILE_MAX_BYTES} bytes", name());
    Scenario::parse(&fs::read_to_string(named).with_context(name)?).with_context(name)
}

fn list_scenarios() -> anyhow::Result<String> {
    let mut text = String::new();
    for (name, file) in SHIPPED {
        let Scenario { summary, worlds } = Scenario::parse(file).with_context(|| (*name).to_owned())?;
        let slots = if matches!(worlds, Worlds::Settle(_)) { "settle" } else { "target, grace, presence" };
        text.push_str(&format!("{name:<20} {slots:<24} {summary}\n"));
    }
    Ok(text)
}
