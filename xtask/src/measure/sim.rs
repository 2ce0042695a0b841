//! Runs the simulated clusters, for one seed or for many.

use anyhow::Result;
use clap::Args;

use crate::command;
use crate::workspace::Workspace;

#[derive(Args, Default)]
pub(crate) struct Options {
    /// Plays this seed and tells its story: the same one each time.
    #[arg(long, value_name = "SEED", required_unless_present = "seeds", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Plays all seeds from A up to B, without B, and tells only of what fails.
    #[arg(long, value_name = "A..B")]
    seeds: Option<String>,
    /// Steps of each schedule; 300 unless said.
    #[arg(long, value_name = "N")]
    steps: Option<u32>,
}

/// Builds and plays the simulation. Errors when an invariant does not hold.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let build = ["run", "--quiet", "--package=pointwork-simulation", "--"];
    command::run(workspace.cargo(build).args(arguments(options)))
}

/// Gives the options as the program in `host/crates/simulation` takes them.
fn arguments(options: &Options) -> Vec<String> {
    let values = [
        ("--seed", options.seed.map(|seed| seed.to_string())),
        ("--seeds", options.seeds.clone()),
        ("--steps", options.steps.map(|steps| steps.to_string())),
    ];
    values.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_passed_on() {
        assert_eq!(arguments(&Options::default()), Vec::<String>::new());
        let options = Options { seed: Some(7), seeds: Some("0..9".into()), steps: Some(250) };
        assert_eq!(arguments(&options), ["--seed=7", "--seeds=0..9", "--steps=250"]);
    }
}
