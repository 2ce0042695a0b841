//! What is measured, and how much of it.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::servers::cluster::Kind;

/// Ratios of Pointwork and the field's Node server, each two replicas on one Redis, under the same load.
#[derive(Parser)]
#[command(name = "ratio")]
pub(crate) struct Options {
    /// Another bench's name: then this one has nothing to do.
    filter: Option<String>,
    /// Only these.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<What>,
    /// Only this kind of server, and no ratios.
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// How often each kind has its turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) rounds: u16,
    /// The servers stay under a steady load of the first of `--only` for so many seconds, after a warm-up, and their
    /// process ids are printed: for a profiler. Nothing is measured.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) hold: Option<u64>,
    /// A page whose table is written anew, when everything was measured.
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// How the host was built, as the table says it.
    #[arg(long, default_value = "as it was built last")]
    pub(crate) profile: String,
    /// Hardly anything of everything: whether it works.
    #[arg(long)]
    pub(crate) smoke: bool,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A part of what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Calls whose caller and daemon are at different replicas, 64 in flight.
    Cross,
    /// Calls at one replica, 64 in flight.
    Same,
    /// Calls between replicas, one at a time.
    One,
    /// Broadcasts to 1,000 sockets.
    Fanout,
    /// Connects.
    Connect,
    /// Memory of idle sockets.
    Memory,
    /// Pointwork: what a decision takes.
    Decision,
    /// Pointwork: from a policy's rename to its first decision.
    Swap,
    /// Pointwork: from a daemon's death to the caller's answer.
    Fail,
    /// Pointwork: from a daemon's return to the request of a call that waits.
    Recovery,
}

impl Options {
    /// Whether the command line is for another bench.
    pub(crate) fn is_for_another(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| !"ratio".contains(filter.as_str()))
    }

    pub(crate) fn has(&self, what: What) -> bool {
        self.only.is_empty() || self.only.contains(&what)
    }

    /// The first of `--only`.
    pub(crate) fn first(&self) -> Option<What> {
        self.only.first().copied()
    }

    /// In the order of their turns.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.kind.map_or_else(|| Kind::ALL.to_vec(), |kind| vec![kind])
    }

    /// Whether everything is measured, so that the table is whole.
    pub(crate) fn is_whole(&self) -> bool {
        self.only.is_empty() && self.kind.is_none()
    }

    pub(crate) fn amounts(&self) -> Amounts {
        if self.smoke { SMOKE } else { FULL }
    }
}

/// How much of each.
pub(crate) struct Amounts {
    /// Calls before those that are measured, at 64 in flight.
    pub(crate) warm_up: usize,
    pub(crate) calls: usize,
    /// One at a time.
    pub(crate) single_calls: usize,
    /// Sockets of the room.
    pub(crate) audience: usize,
    pub(crate) events: usize,
    pub(crate) connects: usize,
    pub(crate) idle: usize,
    /// Of each kind of decision.
    pub(crate) decisions: usize,
    pub(crate) swaps: usize,
    /// Daemons whose socket is killed, and calls that wait.
    pub(crate) trials: usize,
    /// Replicas that are killed.
    pub(crate) kills: usize,
}

/// Each measurement takes a second or more of the servers' time.
const FULL: Amounts = Amounts {
    warm_up: 4_096,
    calls: 12_800,
    single_calls: 2_000,
    audience: 1_000,
    events: 200,
    connects: 2_000,
    idle: 5_000,
    decisions: 100_000,
    swaps: 20,
    trials: 50,
    kills: 5,
};

const SMOKE: Amounts = Amounts {
    warm_up: 64,
    calls: 128,
    single_calls: 20,
    audience: 20,
    events: 5,
    connects: 40,
    idle: 40,
    decisions: 200,
    swaps: 2,
    trials: 3,
    kills: 1,
};
