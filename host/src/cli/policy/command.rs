//! Runs the commands for policies.

use clap::Subcommand;
use pointwork_tools::{
    check::{CheckArgs, check},
    replay::{ReplayArgs, replay},
    simulate::{SimulateArgs, simulate},
    test::{TestArgs, test},
};

use super::{
    list::list, pull::PullArgs, push::PushArgs, record::RecordArgs, retry::RetryArgs, status::StatusArgs,
    undo::UndoArgs,
};
use crate::cli::admin_client::AdminClient;

/// What can be done with policies.
#[derive(Subcommand, Debug, Clone)]
pub(in crate::cli) enum PolicyCommand {
    /// Load policy files as the host would, each with the JSON file beside it, and say what they are
    Check(CheckArgs),
    /// Try a policy on golden vectors and on generated inputs
    Test(TestArgs),
    /// Ask a policy what was asked in a recording, and say where it would have decided otherwise
    Replay(ReplayArgs),
    /// Play two rules for a slot in the same simulated worlds, and compare what that was like
    Simulate(Box<SimulateArgs>),
    /// Write the last decisions of a host into a file
    Record(RecordArgs),
    /// Push a module to every replica of a cluster: all prepare it, then all serve it, or none does
    Push(PushArgs),
    /// Which policy serves each slot
    List,
    /// Which policy each replica serves, and what went wrong
    Status(StatusArgs),
    /// Back to what served before, on every replica
    Undo(UndoArgs),
    /// Take a digest out of quarantine and push it again
    Retry(RetryArgs),
    /// Fetch a module and, beside it, its configuration
    Pull(PullArgs),
}

impl PolicyCommand {
    /// Runs the command. Returns its output, and whether the exit code is that of success. Only the commands from `record` on call
    /// `host`; the others need neither settings nor a host.
    ///
    /// # Errors
    /// When the host does not answer or refuses, a change fails or is not complete in time, or a file cannot be read or written.
    pub(in crate::cli) fn run(
        self,
        host: impl FnOnce() -> anyhow::Result<AdminClient>,
    ) -> anyhow::Result<(String, bool)> {
        let output = match self {
            Self::Check(args) => return check(&args),
            Self::Test(args) => {
                let report = test(&args)?;
                return Ok((report.to_string(), report.is_good()));
            }
            Self::Replay(args) => {
                let report = replay(&args)?;
                if args.json { serde_json::to_string(&report)? + "\n" } else { report.to_string() }
            }
            Self::Simulate(args) => simulate(&args)?,
            Self::Record(args) => args.run(&host()?)?,
            Self::Push(args) => args.run(&host()?)?,
            Self::List => list(&host()?)?,
            Self::Status(args) => args.run(&host()?)?,
            Self::Undo(args) => args.run(&host()?)?,
            Self::Retry(args) => args.run(&host()?)?,
            Self::Pull(args) => args.run(&host()?)?,
        };
        Ok((output, true))
    }
}
