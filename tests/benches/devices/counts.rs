//! What the host counted of its decisions about devices' sessions.

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Longer than the metrics are.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
const METRIC: &str = "pointwork_device_sessions_total{";
const NO_ROOM: &str = "pointwork_device_sockets_refused_total ";

/// Since the host was started.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) accepted: usize,
    /// Refused by the flap limiter or the reconnect throttle, or for want of room or time.
    pub(crate) throttled: usize,
    /// Refused because they are in quarantine.
    pub(crate) quarantined: usize,
    /// Seen to be offline for want of heartbeats while they were connected.
    pub(crate) silent: usize,
}

impl Counts {
    /// Asks the admin listener at `url`.
    pub(crate) async fn read(url: &str) -> Result<Self> {
        let address = url.strip_prefix("http://").context("the admin listener serves plain http")?;
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).await?;
        ensure!(answer.starts_with("HTTP/1.1 200 "), "the metrics are {answer}");
        Self::of(&answer)
    }

    fn of(metrics: &str) -> Result<Self> {
        let mut counts = Self::default();
        for line in metrics.lines().filter(|line| line.starts_with(METRIC) || line.starts_with(NO_ROOM)) {
            let (labels, count) = line.rsplit_once(' ').context("a metric has a value")?;
            let count: usize = count.parse().with_context(|| line.to_owned())?;
            let has = |label: &str| labels.contains(label);
            match () {
                () if has("outcome=\"accepted\"") => counts.accepted += count,
                () if has("reason=\"quarantined\"") => counts.quarantined += count,
                () if has("outcome=\"refused\"") || line.starts_with(NO_ROOM) => counts.throttled += count,
                () if has("reason=\"silent\"") => counts.silent += count,
                () => {}
            }
        }
        Ok(counts)
    }
}
