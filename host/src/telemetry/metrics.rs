//! Starts the metrics of the process, and renders them for Prometheus.

use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::{catalog, error::TelemetryError, metrics_page::MetricsPage, process};

/// The interval of the upkeep. Between two of them, recorded values take memory.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// The metrics of this process.
#[derive(Clone, Debug)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Starts them. From now on, metrics from anywhere in the process are kept. Call it within a Tokio runtime, in which a task bounds
    /// the memory of recorded values.
    ///
    /// # Errors
    /// When the process has metrics already.
    pub fn start() -> Result<Self, TelemetryError> {
        let handle = PrometheusBuilder::new().install_recorder()?;
        tokio::spawn(keep_up(handle.clone()));
        catalog::describe();
        process::begin();
        Ok(Self(handle))
    }

    /// All metrics in the text format of Prometheus. `more` writes those of other rooms.
    pub fn render(&self, more: impl FnOnce(&mut MetricsPage)) -> String {
        let mut page = MetricsPage::default();
        process::expose(&mut page);
        more(&mut page);
        self.0.render() + &page.into_text()
    }
}

async fn keep_up(handle: PrometheusHandle) {
    let mut ticks = tokio::time::interval(UPKEEP_EVERY);
    loop {
        ticks.tick().await;
        handle.run_upkeep();
    }
}
