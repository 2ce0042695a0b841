//! The process of `pointwork serve`: starts the log, the runtime and the server.

use std::{
    io::{self, Write},
    time::Duration,
};

use serde_json::json;

use super::{listeners::Listening, memory, run::run};
use crate::{
    config::Config,
    telemetry::{self, Metrics},
};

/// How long the end of the process waits for work that blocks a thread. None of it has to be completed.
const BLOCKING_MAX: Duration = Duration::from_secs(1);

/// Serves until a signal ends the process.
///
/// # Errors
/// When the log, the runtime or the server cannot start.
pub fn serve(config: Config) -> anyhow::Result<()> {
    memory::keep_large_blocks_apart();
    telemetry::start_log(&config.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let metrics = Metrics::start()?;
        run(config, metrics, announce).await
    });
    // If the runtime were dropped, it would wait without a limit for blocking work, such as a name lookup or a compilation.
    runtime.shutdown_timeout(BLOCKING_MAX);
    served
}

/// Prints one line of JSON, for a program that started the host and waits for it.
fn announce(listening: &Listening) {
    let _ = writeln!(io::stdout(), "{}", json!({ "listening": listening }));
}
