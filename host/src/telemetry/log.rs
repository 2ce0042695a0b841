//! The log, on standard error.
//!
//! It never contains a token, the parameters of a call or the content of a broadcast. Some libraries print whole packets at the level
//! `debug`. So below `info` only this project's own code is logged, whatever the filter says.

use std::io::IsTerminal;

use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{ParseError, filter_fn};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use super::error::TelemetryError;
use crate::config::{LogConfig, LogFormat};

/// Starts the log of this process, on standard error.
///
/// # Errors
/// When the process has a log already.
pub fn start_log(config: &LogConfig) -> Result<(), TelemetryError> {
    let colour = std::io::stderr().is_terminal();
    Ok(subscriber(config, std::io::stderr, colour)?.try_init()?)
}

fn subscriber<W>(config: &LogConfig, writer: W, colour: bool) -> Result<impl Subscriber + Send + Sync, ParseError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(writer).with_ansi(colour);
    let lines = match config.format {
        LogFormat::Human => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let filter = EnvFilter::builder().parse(config.filter.as_str())?;
    Ok(Registry::default().with(lines).with(filter).with(filter_fn(is_safe)))
}

/// Whether the source of a log line never logs the content of clients.
fn is_safe(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    if target.starts_with("pointwork") {
        return true;
    }
    // It quotes packets that it cannot read, at the level `error`.
    if target.starts_with("socketioxide::handler") {
        return false;
    }
    *metadata.level() <= Level::INFO
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn log(config: Value, tell: impl FnOnce()) -> String {
        let config: LogConfig = serde_json::from_value(config).unwrap();
        let written = Written::default();
        let writer = written.clone();
        let subscriber = subscriber(&config, move || writer.clone(), false).unwrap();
        tracing::subscriber::with_default(subscriber, tell);
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn writes_human_and_json_lines() {
        let tell = || tracing::warn!(slot = "target", "a policy failed");
        let human = log(json!({"format": "human", "filter": "info"}), tell);
        assert!(human.contains(" WARN ") && human.contains("a policy failed slot=\"target\""), "{human}");
        let machine = log(json!({"format": "json", "filter": "info"}), tell);
        let event: Value = serde_json::from_str(&machine).unwrap();
        assert_eq!(event["level"], "WARN");
        assert_eq!(event["message"], "a policy failed");
        assert_eq!(event["slot"], "target");
    }

    #[test]
    fn drops_lines_of_libraries_that_print_packets() {
        let everything = log(json!({"format": "human", "filter": "trace"}), || {
            tracing::debug!(target: "socketioxide::client", "sesame");
            tracing::trace!(target: "engineioxide::socket", "sesame");
            tracing::debug!(target: "tungstenite::protocol", "sesame");
            tracing::error!(target: "socketioxide::handler::message", "sesame");
            tracing::info!(target: "socketioxide::client", "an event of a library");
            tracing::trace!(target: "pointwork_policy::slot", "a detail");
        });
        assert!(!everything.contains("sesame"), "{everything}");
        assert!(everything.contains("an event of a library") && everything.contains("a detail"), "{everything}");
    }

    #[test]
    fn applies_the_filter() {
        let filtered = log(json!({"format": "human", "filter": "warn,pointwork::rpc=debug"}), || {
            tracing::info!(target: "pointwork::server", "unheard");
            tracing::debug!(target: "pointwork::rpc", "heard");
        });
        assert!(!filtered.contains("unheard") && filtered.contains("heard"), "{filtered}");
    }
}
