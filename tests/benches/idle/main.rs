//! What an idle socket costs: ten thousand clients on one replica, each with its own token, each answering its pings.
//!
//! The host is the real program in a process of its own. Resident memory is read before the first client connects, when
//! every client has answered so many pings, and when the last one is gone. A socket grows once, with the 33rd packet that it
//! is sent, when its queue in the engine gets its second block; so there are two runs, one on either side of that.
#![allow(missing_docs, clippy::print_stdout)]

#[path = "../common/mod.rs"]
mod common;
mod credentials;

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::{Instant, timeout},
};

use common::{Client, Host, PING, ratio};
use credentials::Credentials;

/// What is measured.
struct Run {
    /// A filter on the command line is compared with it, as criterion does with the names of its benches.
    name: &'static str,
    ping_interval: Duration,
    /// How many pings each client answers; the engine sends the first one at once.
    pings: usize,
}

const RUNS: [Run; 2] = [
    Run { name: "idle/young", ping_interval: Duration::from_secs(15), pings: 2 },
    Run { name: "idle/old", ping_interval: Duration::from_secs(1), pings: 40 },
];
const SOCKETS: usize = 10_000;
/// Files that a process has open beside its sockets, with much to spare.
const OTHER_FILES: u64 = 512;
/// Handshakes under way at once.
const CONNECTING_MAX: usize = 256;
const CONNECT_WITHIN: Duration = Duration::from_secs(120);
/// The pings of either run, and then some: the machine is busy with ten thousand of them.
const PING_WITHIN: Duration = Duration::from_secs(120);
const LEAVE_WITHIN: Duration = Duration::from_secs(60);
/// So many failures are shown; all are counted.
const FAILURES_SHOWN_MAX: usize = 5;

fn main() -> Result<ExitCode> {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let files = SOCKETS as u64 + OTHER_FILES;
    let limit = rlimit::increase_nofile_limit(files)?;
    ensure!(
        limit >= files,
        "{SOCKETS} sockets need {files} open files, and the hard limit is {limit}: ulimit -Hn {files}"
    );
    let mut failures = 0;
    for run in RUNS.iter().filter(|run| run.name.contains(&filter)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        failures += runtime.block_on(measure(run))?;
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the figures; gives the number of sockets that failed.
async fn measure(run: &Run) -> Result<usize> {
    let name = run.name;
    let host = Host::start(&[format!("listen.ping_interval_ms={}", run.ping_interval.as_millis())])?;
    let before_kib = host.resident_kib()?;
    let (leave, stay) = watch::channel(false);
    let (reports, mut reported) = mpsc::channel(SOCKETS);
    let connecting = Arc::new(Semaphore::new(CONNECTING_MAX));
    let started = Instant::now();
    for index in 0..SOCKETS {
        let client = Life {
            credentials: Credentials::of(index, host.auth())?,
            pings: run.pings,
            connecting: connecting.clone(),
            stay: stay.clone(),
            reports: reports.clone(),
        };
        tokio::spawn(client.live(host.socketio().to_owned()));
    }
    drop(reports);

    let mut tally = Tally::default();
    tally.await_all(&mut reported, Stage::Connected, CONNECT_WITHIN).await;
    let connected_in = started.elapsed();
    tally.await_all(&mut reported, Stage::Pinged, PING_WITHIN).await;
    let idle_kib = host.settled_kib().await?;
    leave.send_replace(true);
    tally.await_all(&mut reported, Stage::Left, LEAVE_WITHIN).await;
    let after_kib = host.settled_kib().await?;
    host.stop()?;

    let grown_kib = idle_kib.saturating_sub(before_kib);
    let freed_kib = idle_kib.saturating_sub(after_kib);
    println!("{name}/sockets          {SOCKETS} in {:.1} s", connected_in.as_secs_f64());
    println!("{name}/errors           {}", tally.failures());
    println!("{name}/resident before  {before_kib} KiB");
    println!("{name}/resident idle    {idle_kib} KiB");
    println!("{name}/resident after   {after_kib} KiB");
    println!("{name}/a socket         {:.1} KiB", ratio(grown_kib, SOCKETS as u64));
    println!("{name}/given back       {freed_kib} KiB ({:.0} %)", 100.0 * ratio(freed_kib, grown_kib));
    for failure in &tally.shown {
        println!("{name}: {failure}");
    }
    Ok(tally.failures())
}

/// How far a client has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has its CONNECT.
    Connected,
    /// It has answered its pings.
    Pinged,
    /// It left when it was told to, and the host closed the connection.
    Left,
}

/// One client, from its first byte to its last.
struct Life {
    credentials: Credentials,
    pings: usize,
    connecting: Arc<Semaphore>,
    stay: watch::Receiver<bool>,
    reports: mpsc::Sender<Result<Stage>>,
}

impl Life {
    async fn live(mut self, url: String) {
        // Nobody listens any more once a time limit is over.
        if let Err(error) = self.stages(&url).await {
            let _ = self.reports.send(Err(error)).await;
        }
    }

    async fn stages(&mut self, url: &str) -> Result<()> {
        let permit = self.connecting.acquire().await?;
        let mut client = Client::connect(url, "", &self.credentials.to_string()).await?;
        drop(permit);
        self.reports.send(Ok(Stage::Connected)).await?;
        while client.pings < self.pings {
            idle(&mut client).await?;
        }
        self.reports.send(Ok(Stage::Pinged)).await?;
        loop {
            tokio::select! {
                idle = idle(&mut client) => idle?,
                _ = self.stay.wait_for(|leave| *leave) => break,
            }
        }
        client.leave().await?;
        self.reports.send(Ok(Stage::Left)).await?;
        Ok(())
    }
}

/// Reads one packet, which is a ping or an event. May be dropped while it waits.
async fn idle(client: &mut Client) -> Result<()> {
    let packet = client.receive().await?;
    ensure!(packet == PING || packet.starts_with("42"), "an idle socket was sent {packet}");
    Ok(())
}

/// What the clients reported.
#[derive(Default)]
struct Tally {
    connected: usize,
    pinged: usize,
    left: usize,
    failed: usize,
    late: usize,
    shown: Vec<String>,
}

impl Tally {
    /// Waits until every client that has not failed is as far as `stage`. One that is not in time has failed.
    async fn await_all(&mut self, reported: &mut mpsc::Receiver<Result<Stage>>, stage: Stage, within: Duration) {
        let end = Instant::now() + within;
        while self.at(stage) + self.failed < SOCKETS {
            match timeout(end.saturating_duration_since(Instant::now()), reported.recv()).await {
                Ok(Some(report)) => self.note(report),
                Ok(None) => break,
                Err(_) => {
                    self.late = SOCKETS - self.at(stage) - self.failed;
                    self.show(format!("{} sockets were not in time", self.late));
                    break;
                }
            }
        }
    }

    fn failures(&self) -> usize {
        self.failed + self.late
    }

    fn at(&self, stage: Stage) -> usize {
        match stage {
            Stage::Connected => self.connected,
            Stage::Pinged => self.pinged,
            Stage::Left => self.left,
        }
    }

    fn note(&mut self, report: Result<Stage>) {
        match report {
            Ok(Stage::Connected) => self.connected += 1,
            Ok(Stage::Pinged) => self.pinged += 1,
            Ok(Stage::Left) => self.left += 1,
            Err(error) => {
                self.failed += 1;
                self.show(format!("{error:#}"));
            }
        }
    }

    fn show(&mut self, failure: String) {
        if self.shown.len() < FAILURES_SHOWN_MAX {
            self.shown.push(failure);
        }
    }
}
