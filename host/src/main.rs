//! The `pointwork` binary: command line -> settings -> server.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::SystemTime,
};

use anyhow::Context;
use clap::Parser;
use pointwork::{
    cli::{Cli, Command, PolicyCommand},
    config::{self, Config},
    policy_check, policy_simulate,
    server::{self, Listening},
    telemetry::{self, Metrics},
    token,
};

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            // Not the log: it may not be set up, and this is for whoever typed the command.
            let _ = writeln!(io::stderr(), "pointwork: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let command = cli.command.unwrap_or_default();
    if let Command::Policy(PolicyCommand::Check { files, slot }) = command {
        let (report, are_good) = policy_check::check(&files, slot)?;
        print(&report)?;
        return Ok(if are_good { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if let Command::Policy(PolicyCommand::Simulate(args)) = command {
        print(&policy_simulate::simulate(&args)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let config = config::load(cli.settings.sources(std::env::vars_os())?)?;
    match command {
        Command::Serve => serve(config)?,
        Command::Config => print(&config.to_toml()?)?,
        Command::Token(args) => {
            let now_s = SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?.as_secs();
            print(&format!("{}\n", token::mint(&config.auth, &args.into(), now_s)?))?;
        }
        Command::Policy(_) => unreachable!("policies are checked and simulated without settings"),
    }
    Ok(ExitCode::SUCCESS)
}

fn serve(config: Config) -> anyhow::Result<()> {
    telemetry::start_log(&config.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let metrics = Metrics::start()?;
        server::run(config, metrics, announce).await
    })
}

/// One line of JSON on standard output, for whoever started the host and waits for it.
fn announce(listening: &Listening) {
    let _ = print(&format!("{}\n", serde_json::json!({ "listening": listening })));
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
