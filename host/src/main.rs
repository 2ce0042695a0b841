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
    policy_check, policy_record, policy_replay, policy_simulate, policy_test,
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
    let command = match cli.command.unwrap_or_default() {
        Command::Policy(command) if command.is_offline() => return look_at(command),
        command => command,
    };
    let config = config::load(cli.settings.sources(std::env::vars_os())?)?;
    match command {
        Command::Serve => serve(config)?,
        Command::Config => print(&config.to_toml()?)?,
        Command::Token(args) => {
            let now_s = SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?.as_secs();
            print(&format!("{}\n", token::mint(&config.auth, &args.into(), now_s)?))?;
        }
        Command::Policy(PolicyCommand::Record(args)) => print(&policy_record::record(&args.into(), &config.admin)?)?,
        Command::Policy(_) => unreachable!("looked at without settings"),
    }
    Ok(ExitCode::SUCCESS)
}

/// What is done with a policy's file alone: without settings, and without a host.
fn look_at(command: PolicyCommand) -> anyhow::Result<ExitCode> {
    let (report, is_good) = match command {
        PolicyCommand::Check { files, slot } => policy_check::check(&files, slot)?,
        PolicyCommand::Replay(args) => {
            let is_json = args.json;
            let replayed = policy_replay::replay(&args.into())?;
            let report = if is_json { serde_json::to_string(&replayed)? + "\n" } else { replayed.to_string() };
            (report, true)
        }
        PolicyCommand::Simulate(args) => (policy_simulate::simulate(&args)?, true),
        PolicyCommand::Test(args) => {
            let tested = policy_test::test(&args.into())?;
            (tested.to_string(), tested.is_good())
        }
        PolicyCommand::Record(_) => unreachable!("needs a host"),
    };
    print(&report)?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
