//! Runs the host: settings, parts, listeners, signal, drain.

use tokio::time::Instant;

use super::{
    assemble::assemble,
    drain::Drained,
    listeners::{Listeners, Listening},
    settings,
    shutdown::shut_down,
    signals::Signals,
};
use crate::{config::Config, edge::socketio::connected, telemetry::Metrics};

/// Serves until SIGTERM, SIGINT or SIGHUP, then drains: calls end, and the sockets close one after the other. A second signal
/// ends the host at once.
///
/// Calls `ready` once, when both listeners accept connections.
///
/// # Errors
/// When a listener cannot be bound, a key cannot be read, or the policy engine cannot start.
pub(super) async fn run(config: Config, metrics: Metrics, ready: impl FnOnce(&Listening)) -> anyhow::Result<()> {
    settings::warn(&config);
    let mut signals = Signals::new()?;
    let parts = assemble(&config)?;
    let listeners = Listeners::open(&config).await?;
    let listening = listeners.addresses(&config)?;
    let serving = listeners.serve(&config, &parts, metrics);
    tracing::info!(socketio = listening.socketio, admin = listening.admin, "listening");
    ready(&listening);

    let signal = signals.next().await;
    let began = Instant::now();
    tracing::info!(signal, sockets = connected(&parts.io), "leaving");
    tokio::select! {
        left = shut_down(&parts, serving, config.drain) => {
            let Drained { sockets_closed, calls_finished, calls_broken_off } = left;
            let took_ms = began.elapsed().as_millis();
            tracing::info!(signal, sockets_closed, calls_finished, calls_broken_off, took_ms, "closed");
        }
        signal = signals.next() => tracing::warn!(signal, sockets = connected(&parts.io), "stopped at once"),
    }
    parts.policy_dir.close();
    Ok(())
}
