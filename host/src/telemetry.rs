//! What the host tells about itself: a log on standard error, and metrics.
//!
//! Neither ever holds a token, a call's parameters or what is broadcast. The libraries below print whole packets at the
//! level `debug`, so whatever the filter says, only this project's own code is heard below `info`.

use std::io::IsTerminal;
use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{ParseError, filter_fn};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::config::{LogConfig, LogFormat};

/// Between two upkeeps: what was recorded and not yet folded in takes memory.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Upper bounds of the buckets of every histogram whose name ends in `_seconds`: from a decision of a policy
/// (microseconds) to a call that runs into its deadline.
const SECONDS: [f64; 16] =
    [1e-6, 2e-6, 5e-6, 1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Why the host cannot tell about itself.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The log filter cannot be parsed; a loaded configuration has none such.
    #[error("setting `log.filter` cannot be parsed")]
    Filter(#[from] ParseError),
    /// The process has a log already.
    #[error("the log is set up already")]
    Log(#[from] TryInitError),
    /// The process has metrics already.
    #[error("the metrics cannot be set up")]
    Metrics(#[from] BuildError),
}

/// Starts the log of this process, on standard error.
///
/// # Errors
/// When the process has a log already.
pub fn start_log(config: &LogConfig) -> Result<(), TelemetryError> {
    let colour = std::io::stderr().is_terminal();
    Ok(subscriber(config, std::io::stderr, colour)?.try_init()?)
}

/// The metrics of this process.
#[derive(Clone, Debug)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Starts them: from here on, what is recorded anywhere in the process is kept. Call it within a Tokio runtime: a
    /// task of it keeps the memory of what was recorded bounded while nobody scrapes.
    ///
    /// # Errors
    /// When the process has metrics already.
    pub fn start() -> Result<Self, TelemetryError> {
        let handle = builder()?.install_recorder()?;
        tokio::spawn(keep_up(handle.clone()));
        Ok(Self(handle))
    }

    /// Everything recorded so far, in the text format of Prometheus.
    pub fn render(&self) -> String {
        self.0.render()
    }
}

async fn keep_up(handle: PrometheusHandle) {
    let mut ticks = tokio::time::interval(UPKEEP_EVERY);
    loop {
        ticks.tick().await;
        handle.run_upkeep();
    }
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
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
    Ok(Registry::default().with(lines).with(filter).with(filter_fn(may_be_told)))
}

/// Whether what is told there can be trusted to hold no content of clients.
fn may_be_told(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    if target.starts_with("pointwork") {
        return true;
    }
    // It quotes what it could not read, at the level `error`.
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
    fn a_line_is_for_people_or_for_machines() {
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
    fn libraries_that_print_packets_are_not_heard() {
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
    fn the_filter_holds() {
        let filtered = log(json!({"format": "human", "filter": "warn,pointwork::rpc=debug"}), || {
            tracing::info!(target: "pointwork::server", "unheard");
            tracing::debug!(target: "pointwork::rpc", "heard");
        });
        assert!(!filtered.contains("unheard") && filtered.contains("heard"), "{filtered}");
    }

    #[test]
    fn times_are_kept_in_buckets() {
        let recorder = builder().unwrap().build_recorder();
        let metrics = Metrics(recorder.handle());
        metrics::with_local_recorder(&recorder, || {
            metrics::histogram!("decision_seconds").record(3e-6);
            metrics::counter!("calls_total").increment(2);
        });
        let text = metrics.render();
        for line in [
            r#"decision_seconds_bucket{le="0.000002"} 0"#,
            r#"decision_seconds_bucket{le="0.000005"} 1"#,
            r#"decision_seconds_bucket{le="+Inf"} 1"#,
            "calls_total 2",
        ] {
            assert!(text.lines().any(|given| given == line), "{line} in\n{text}");
        }
    }
}
