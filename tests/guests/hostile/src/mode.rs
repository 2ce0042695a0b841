//! The ways to misbehave.

use serde::Deserialize;

/// The configuration: `{"mode": "..."}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How to misbehave.
    pub mode: Mode,
}

/// How the policy misbehaves; in `choose`, unless the name says `configure`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Not at all: picks 0.
    #[default]
    Ok,
    /// Computes for ever.
    Loop,
    /// Executes an `unreachable`.
    Trap,
    /// Executes an `unreachable` for one key in a thousand, those that 1,000 divides; picks 0 for the others.
    TrapRarely,
    /// Picks the index one past the last candidate.
    OutOfRange,
    /// Allocates until it is refused, then aborts.
    Allocate,
    /// Recurses until the call stack is exhausted.
    Recurse,
    /// Recurses with large frames until its own stack in linear memory is exhausted.
    RecurseShadow,
    /// Prints a line to stdout and one to stderr, then picks 0.
    Print,
    /// Prints 16 MiB to stdout, then picks 0.
    Flood,
    /// Panics with a message.
    Panic,
    /// Answers `policy-error.bad-input`.
    Error,
    /// Answers `policy-error.internal` with a text of 1 MiB.
    ErrorLong,
    /// Copies ever larger blocks of memory: the deadline can only strike between two copies.
    LongCopy,
    /// Answers by how often it was asked.
    Remember,
    /// Computes for ever in `configure`.
    ConfigureLoop,
    /// Executes an `unreachable` in `configure`.
    ConfigureTrap,
    /// Wants 4 MiB of memory in `configure`, and then picks 0.
    ConfigureAllocate,
    /// Refuses its configuration.
    ConfigureRefuse,
}
