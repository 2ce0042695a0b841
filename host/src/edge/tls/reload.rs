//! A certificate that is renewed while the host serves.
//!
//! The files are read at each look, which costs nothing beside what it saves to know of: links that move (a Kubernetes secret),
//! renames, clocks that stand still. What is new is taken once two looks saw the same: certificate and key are written one after
//! the other.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::sleep;
use tokio_rustls::rustls::ServerConfig;

use super::{error::TlsError, files::Files, server_config::server_config};

/// What a look saw: the digest of the files, or why there is none.
type Seen = Result<[u8; 32], String>;

/// Looks for as long as the runtime lives.
pub(super) async fn follow(
    current: Arc<Mutex<Arc<ServerConfig>>>,
    listener: &'static str,
    files: Files,
    loaded: [u8; 32],
    every: Duration,
) {
    // What was dealt with last, taken or refused, and what was seen since.
    let (mut settled, mut last): (Seen, Option<Seen>) = (Ok(loaded), None);
    loop {
        sleep(every).await;
        let looking = files.clone();
        let Ok(read) = tokio::task::spawn_blocking(move || looking.read()).await else { continue };
        let seen = read.as_ref().map(|read| read.digest).map_err(ToString::to_string);
        if seen == settled {
            last = None;
        } else if last.as_ref() != Some(&seen) {
            last = Some(seen);
        } else {
            replace(&current, listener, read.and_then(|read| server_config(&files, &read)));
            (settled, last) = (seen, None);
        }
    }
}

fn replace(current: &Mutex<Arc<ServerConfig>>, listener: &'static str, loaded: Result<Arc<ServerConfig>, TlsError>) {
    let result = match loaded {
        Ok(config) => {
            *current.lock() = config;
            tracing::info!(listener, "the certificate was loaded again");
            "loaded"
        }
        Err(error) => {
            tracing::warn!(listener, %error, "the certificate was not loaded again, the one before goes on serving");
            "refused"
        }
    };
    metrics::counter!("pointwork_tls_reloads_total", "listener" => listener, "result" => result).increment(1);
}
