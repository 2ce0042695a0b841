//! The `pointwork` binary: command line -> settings -> server.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::Context;
use pointwork::{
    cli::{
        Cli, Command, FileCommand, HostCommand, PolicyCommand, admin_client::AdminClient, experiments, record, rollout,
    },
    config::{self, Config},
    edge::auth::token,
    server::{self, Listening, memory},
    telemetry::{self, Metrics},
};
use pointwork_tools::{check, replay, simulate, test};

fn main() -> ExitCode {
    let cli = Cli::of(std::env::args_os()).unwrap_or_else(|error| error.exit());
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            // Not the log: it may not be set up, and this is for whoever typed the command.
            let _ = writeln!(io::stderr(), "pointwork: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let Cli { settings, admin_url, command } = cli;
    // What is done with a file alone needs no settings, and is not held up by wrong ones.
    let config = || anyhow::Ok(config::load(settings.sources(std::env::vars_os())?)?);
    match command.unwrap_or_default() {
        Command::Serve => serve(config()?)?,
        Command::Config => print(&config()?.to_toml()?)?,
        Command::Token(args) => {
            let now_s = SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?.as_secs();
            print(&format!("{}\n", token::mint(&config()?.auth, &args.into(), now_s)?))?;
        }
        Command::Policy(PolicyCommand::File(command)) => return look_at(command),
        Command::Policy(PolicyCommand::Host(command)) => {
            let client = AdminClient::new(&config()?.admin, admin_url.as_deref())?;
            print(&operate(&client, command)?)?;
        }
        Command::Exp(command) => {
            let client = AdminClient::new(&config()?.admin, admin_url.as_deref())?;
            print(&experiments::run(command.into(), &client)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is done with a policy's file alone: without settings, and without a host.
fn look_at(command: FileCommand) -> anyhow::Result<ExitCode> {
    let (report, is_good) = match command {
        FileCommand::Check { files, slot } => check::check(&files, slot)?,
        FileCommand::Test(args) => {
            let tested = test::test(&args.into())?;
            (tested.to_string(), tested.is_good())
        }
        FileCommand::Replay(args) => {
            let is_json = args.json;
            let replayed = replay::replay(&args.into())?;
            let report = if is_json { serde_json::to_string(&replayed)? + "\n" } else { replayed.to_string() };
            (report, true)
        }
        FileCommand::Simulate(args) => (simulate::simulate(&args)?, true),
    };
    print(&report)?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What an operator asks of a host that runs.
fn operate(client: &AdminClient, command: HostCommand) -> anyhow::Result<String> {
    match command {
        HostCommand::Record(args) => record::record(client, &args.into()),
        HostCommand::Push(args) => rollout::push(client, &args.into()),
        HostCommand::List => rollout::list(client),
        HostCommand::Status { slot, json } => rollout::status(client, slot, json),
        HostCommand::Undo { slot, wait_ms } => rollout::undo(client, slot, Duration::from_millis(wait_ms)),
        HostCommand::Retry { slot, digest, force, wait_ms } => {
            rollout::retry(client, slot, &digest, force, Duration::from_millis(wait_ms))
        }
        HostCommand::Pull { slot, digest, out } => rollout::pull(client, slot, digest.as_deref(), &out),
    }
}

fn serve(config: Config) -> anyhow::Result<()> {
    memory::keep_large_blocks_apart();
    telemetry::start_log(&config.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let metrics = Metrics::start()?;
        server::run(config, metrics, announce).await
    });
    // Dropped, it would wait for as long as it takes for what a thread is doing: a name that is looked up, a policy that is compiled.
    runtime.shutdown_timeout(BLOCKING_MAX);
    served
}

/// How long work that blocks a thread is waited for at the end. Nothing that has to be kept is among it.
const BLOCKING_MAX: Duration = Duration::from_secs(1);

/// One line of JSON on standard output, for whoever started the host and waits for it.
fn announce(listening: &Listening) {
    let _ = print(&format!("{}\n", serde_json::json!({ "listening": listening })));
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
