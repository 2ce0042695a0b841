//! Runs the commands for experiments that exist; `create` has a file of its own.

use clap::Subcommand;
use serde_json::{Value, json};

use super::{create::CreateArgs, summary::summary, weights::parse_weights};
use crate::cli::{
    admin_client::{AdminClient, percent_encoded},
    json_fields::{array, text},
};

/// What can be done with experiments.
#[derive(Subcommand, Debug, Clone)]
pub(in crate::cli) enum ExpCommand {
    /// Create an experiment, which runs at once
    Create(Box<CreateArgs>),
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

impl ExpCommand {
    /// Runs the command. Returns its output.
    ///
    /// # Errors
    /// When a file cannot be read, an argument is wrong, or the host does not answer or refuses.
    pub(in crate::cli) fn run(self, host: &AdminClient) -> anyhow::Result<String> {
        let change = |name: &str, action: &str, body: Value| -> anyhow::Result<String> {
            Ok(summary(&host.post(&path(name, action), &body)?))
        };
        match self {
            Self::Create(args) => args.run(host),
            Self::SetWeight { name, weights } => {
                change(&name, "weights", json!({ "weights": parse_weights(&weights)? }))
            }
            Self::Pause { name } => change(&name, "pause", json!({})),
            Self::Resume { name } => change(&name, "resume", json!({})),
            Self::Promote { name, arm } => change(&name, "promote", json!({ "arm": arm })),
            Self::Abort { name, reason } => change(&name, "abort", json!({ "reason": reason })),
            Self::Report { name, json } => {
                let answer = host.get(&path(&name, "report"))?;
                Ok(if json { format!("{}\n", answer["report"]) } else { text(&answer["text"]).to_owned() })
            }
            Self::List { json } => {
                let answer = host.get("/v1/experiments")?;
                let experiments = array(&answer["experiments"]);
                Ok(match experiments {
                    _ if json => format!("{answer}\n"),
                    [] => "no experiments\n".to_owned(),
                    _ => experiments.iter().map(summary).collect(),
                })
            }
        }
    }
}

fn path(name: &str, action: &str) -> String {
    format!("/v1/experiments/{}/{action}", percent_encoded(name))
}
