//! `pointwork exp`: what is done with the experiments of hosts that run.

use clap::Subcommand;
use pointwork_policy::SlotName;

use crate::cli::experiments::{Creation, Exp};

/// What can be done with experiments.
#[derive(Subcommand, Debug, Clone)]
pub enum ExpCommand {
    /// Create an experiment, which runs at once
    Create {
        /// Its name: a-z, 0-9 and -
        name: String,
        /// The slot
        #[arg(long, value_parser = str::parse::<SlotName>)]
        slot: SlotName,
        /// An arm, the control first: current (what serves), native, or a policy's file, with its configuration behind a comma
        #[arg(long = "arm", required = true, value_name = "NAME=FILE.wasm[,CONFIG.json]")]
        arms: Vec<String>,
        /// The arms' weights in percent, together 100; or in ten thousandths
        #[arg(long)]
        weights: String,
        /// What serves decides; the treatments are only asked too
        #[arg(long)]
        shadow_only: bool,
        /// How long after its first decision what becomes of a unit is counted, in milliseconds [default: 600000]
        #[arg(long, value_name = "MS")]
        horizon_ms: Option<u32>,
        /// Goes into each unit's bucket: experiments with one salt have the same units in their arms
        #[arg(long)]
        salt: Option<String>,
        /// A limit at which it ends by itself: stranded_ms_mean_max, failures_share_max, offline_ms_mean_max, units_min,
        /// decisions_min; `off` takes it away
        #[arg(long = "guardrail", value_name = "NAME=NUMBER")]
        guardrails: Vec<String>,
    },
    /// Give the arms other weights: `80,20`
    SetWeight {
        /// Its name
        name: String,
        /// In percent, or in ten thousandths
        weights: String,
    },
    /// Have what serves decide everything until it is resumed
    Pause {
        /// Its name
        name: String,
    },
    /// Have it run again
    Resume {
        /// Its name
        name: String,
    },
    /// Have a treatment serve the slot, on every replica; the experiment is over
    Promote {
        /// Its name
        name: String,
        /// The treatment, if there are several
        #[arg(long)]
        arm: Option<String>,
    },
    /// End it; what serves goes on serving
    Abort {
        /// Its name
        name: String,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// Say what it did so far
    Report {
        /// Its name
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List all experiments, newest first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl From<ExpCommand> for Exp {
    fn from(command: ExpCommand) -> Self {
        match command {
            ExpCommand::Create { name, slot, arms, weights, shadow_only, horizon_ms, salt, guardrails } => {
                let slot = slot.as_str().to_owned();
                Self::Create(Box::new(Creation {
                    name,
                    slot,
                    arms,
                    weights,
                    shadow_only,
                    horizon_ms,
                    salt,
                    guardrails,
                }))
            }
            ExpCommand::SetWeight { name, weights } => Self::SetWeight { name, weights },
            ExpCommand::Pause { name } => Self::Pause(name),
            ExpCommand::Resume { name } => Self::Resume(name),
            ExpCommand::Promote { name, arm } => Self::Promote { name, arm },
            ExpCommand::Abort { name, reason } => Self::Abort { name, reason },
            ExpCommand::Report { name, json } => Self::Report { name, is_json: json },
            ExpCommand::List { json } => Self::List { is_json: json },
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn cli(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn an_experiment_has_arms_and_weights() {
        let line = "pointwork exp create e --slot settle --arm a=current --arm b=x.wasm,x.json --weights 95,5 --guardrail units_min=3";
        let Some(Command::Exp(command)) = cli(line).unwrap().command else { panic!("{line}") };
        let Exp::Create(creation) = Exp::from(command) else { panic!("{line}") };
        assert_eq!((creation.slot.as_str(), creation.arms.len(), creation.weights.as_str()), ("settle", 2, "95,5"));
        let given = cli("pointwork exp list --admin-url http://h:1").unwrap();
        assert_eq!(given.admin_url.as_deref(), Some("http://h:1"));
        assert!(cli("pointwork exp create e --slot settle --weights 95,5").is_err());
        assert!(cli("pointwork exp create e --slot sale --arm a=current --weights 95,5").is_err());
    }
}
