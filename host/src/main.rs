//! The `pointwork` binary: command line -> settings -> server.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::SystemTime,
};

use anyhow::Context;
use clap::Parser;
use pointwork::{
    cli::{Cli, Command, PolicyCommand},
    config::{self, Config},
    server::{self, Listening},
    telemetry::{self, Metrics},
    token,
};
use pointwork_policy::{Engine, Inspection, inspect};

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
    if let Command::Policy(PolicyCommand::Check { files }) = command {
        return check(&files);
    }
    let config = config::load(cli.settings.sources(std::env::vars_os())?)?;
    match command {
        Command::Serve => serve(config)?,
        Command::Config => print(&config.to_toml()?)?,
        Command::Token(args) => {
            let now_s = SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?.as_secs();
            print(&format!("{}\n", token::mint(&config.auth, &args.into(), now_s)?))?;
        }
        Command::Policy(_) => unreachable!("policies are checked without settings"),
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

/// Loads each file as the host would, and says what it is; fails when one of them would be refused.
fn check(files: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let engine = Engine::new()?;
    let mut code = ExitCode::SUCCESS;
    for file in files {
        match check_file(&engine, file) {
            Ok(inspection) => print(&describe(file, &inspection))?,
            Err(error) => {
                print(&format!("{}: refused: {error:#}\n", file.display()))?;
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

fn check_file(engine: &Engine, file: &Path) -> anyhow::Result<Inspection> {
    Ok(inspect(engine, &fs::read(file)?)?)
}

fn describe(file: &Path, inspection: &Inspection) -> String {
    let info = &inspection.info;
    format!(
        "{}: {} {} for slot {}, {} bytes, sha256 {}\n  {}\n  imports {}\n",
        file.display(),
        info.name,
        info.version,
        inspection.slot,
        inspection.size_bytes,
        inspection.digest,
        info.summary,
        by_package(&inspection.imports).join(", ")
    )
}

/// `wasi:io/poll@0.2.6` and `wasi:io/error@0.2.6` as `wasi:io@0.2.6 {error poll}`.
fn by_package(imports: &[String]) -> Vec<String> {
    let mut packages = BTreeMap::<String, BTreeSet<&str>>::new();
    for import in imports {
        let (path, version) = import.split_once('@').unwrap_or((import, "?"));
        let (package, interface) = path.split_once('/').unwrap_or((path, ""));
        packages.entry(format!("{package}@{version}")).or_default().insert(interface);
    }
    let list = |interfaces: BTreeSet<&str>| interfaces.into_iter().collect::<Vec<_>>().join(" ");
    packages.into_iter().map(|(package, interfaces)| format!("{package} {{{}}}", list(interfaces))).collect()
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
