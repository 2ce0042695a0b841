//! The metrics of the process.

use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::{catalog, error::TelemetryError, page::Page, process};

/// Between two upkeeps: what was recorded and not yet folded in takes memory.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

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
        let handle = PrometheusBuilder::new().install_recorder()?;
        tokio::spawn(keep_up(handle.clone()));
        catalog::describe();
        process::begin();
        Ok(Self(handle))
    }

    /// Everything recorded so far, in the text format of Prometheus; `more` writes what is known elsewhere.
    pub fn render(&self, more: impl FnOnce(&mut Page)) -> String {
        let mut page = Page::default();
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
