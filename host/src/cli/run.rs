//! Runs the command that the command line names.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use super::{
    admin_client::AdminClient,
    arguments::{Cli, Command},
};
use crate::config::{self, Config};

/// Runs a command, prints its output, and returns the exit code. `serve` runs the server.
///
/// # Errors
/// When the settings are wrong, or the command fails.
pub fn run(cli: Cli, serve: impl FnOnce(Config) -> anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    let Cli { settings, admin_url, command } = cli;
    // Commands that only read files load no settings, so that wrong settings do not stop them.
    let config = || anyhow::Ok(config::load(settings.sources(std::env::vars_os())?)?);
    let client = |config: Config| AdminClient::new(&config.admin, admin_url.as_deref());
    let (output, is_good) = match command.unwrap_or_default() {
        Command::Serve => return serve(config()?).map(|()| ExitCode::SUCCESS),
        Command::Config => (config()?.to_toml()?, true),
        Command::Token(args) => (args.run(&config()?.auth)?, true),
        Command::Policy(command) => command.run(|| client(config()?))?,
        Command::Exp(command) => (command.run(&client(config()?)?)?, true),
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(output.as_bytes())?;
    stdout.flush()?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
