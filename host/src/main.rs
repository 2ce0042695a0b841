//! Runs the `pointwork` binary: parses the command line, runs the command and reports its error.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use pointwork::{
    cli::{self, Cli},
    server,
};

fn main() -> ExitCode {
    let cli = Cli::parse_arguments(std::env::args_os()).unwrap_or_else(|error| error.exit());
    cli::run(cli, server::serve).unwrap_or_else(|error| {
        // Not in the log: it may not be set up, and the error is for the person who typed the command.
        let _ = writeln!(io::stderr(), "pointwork: {error:#}");
        ExitCode::FAILURE
    })
}
