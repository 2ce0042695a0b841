//! What a fleet of devices costs, and how it comes back: 20,000 devices on one replica with a Redis, whose process is killed and
//! started again; 5,000 of them reconnect within five seconds, then the others.
//!
//! The host and the Redis are the real programs in processes of their own, the devices raw WebSockets that register with their own
//! tokens and send a heartbeat with each ping. The program fails when a bound does not hold.
#![allow(missing_docs, clippy::print_stdout)]

#[path = "../common/mod.rs"]
mod common;
mod counts;
mod device;
mod fleet;
mod redis;
mod verdict;

use std::{process::ExitCode, time::Duration};

use anyhow::{Result, ensure};
use tokio::time::Instant;

use common::Host;
use counts::Counts;
use device::Device;
use fleet::{Fleet, Pace};
use redis::Redis;
use verdict::{NAME, Verdict};

const DEVICES: usize = 20_000;
/// They come back first, evenly over [`RECONNECT_SPAN`].
const RECONNECTING: usize = 5_000;
const RECONNECT_SPAN: Duration = Duration::from_secs(5);
/// Handshakes under way at once, where the pace is not what is measured.
const CONNECTING_MAX: usize = 256;
/// Files that a process has open beside its sockets: some thirty, and those of sockets that it has not quite closed.
const OTHER_FILES: usize = 128;
/// So many of the devices at least are connected at once, however few files may be open.
const AT_ONCE_MIN: usize = DEVICES / 100 * 95;

fn main() -> Result<ExitCode> {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    if !NAME.contains(&filter) {
        return Ok(ExitCode::SUCCESS);
    }
    let files = DEVICES + OTHER_FILES;
    let limit = usize::try_from(rlimit::increase_nofile_limit(files as u64)?)?;
    let at_once = limit.saturating_sub(OTHER_FILES).min(DEVICES);
    ensure!(
        at_once >= AT_ONCE_MIN,
        "{DEVICES} devices need {files} open files, and the hard limit is {limit}: ulimit -Hn {files}"
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(if runtime.block_on(measure(at_once))? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the figures; whether all bounds hold.
async fn measure(at_once: usize) -> Result<bool> {
    let mut verdict = Verdict::default();
    let redis = Redis::start().await?;
    let settings = [format!("redis.url={}", redis.url())];
    let host = Host::start(&settings)?;
    let before_kib = host.resident_kib()?;
    let devices: Vec<Device> = (0..DEVICES).map(|index| Device::new(index, host.auth())).collect::<Result<_>>()?;
    // Where fewer files may be open, so many register and leave before the others come. Those that stay are the fleet.
    let (short, lasting) = devices.split_at(DEVICES - at_once);

    let (visitors, arrivals) = Fleet::bring(host.socketio(), short, Pace::AtMost(CONNECTING_MAX)).await;
    verdict.all_registered("visiting", &arrivals, short.len());
    verdict.none_lost("visiting", visitors.leave().await);
    let (mut fleet, arrivals) = Fleet::bring(host.socketio(), lasting, Pace::AtMost(CONNECTING_MAX)).await;
    verdict.all_registered("arriving", &arrivals, lasting.len());
    let idle_kib = host.settled_kib().await?;
    verdict.resident("resident", before_kib, idle_kib, at_once);
    verdict.counts("arriving", Counts::read(host.admin()).await?, DEVICES);
    verdict.none_lost("staying", fleet.lost());

    let killed = Instant::now();
    drop(host);
    let host = Host::start(&settings)?;
    verdict.note("ready again", format_args!("{:.2} s after SIGKILL", killed.elapsed().as_secs_f64()));
    drop(fleet);
    // Each of them was the holder of its session when the replica that the records name was killed.
    let (first, others) = lasting.split_at(RECONNECTING);
    let (mut back, arrivals) = Fleet::bring(host.socketio(), first, Pace::Over(RECONNECT_SPAN)).await;
    verdict.all_registered("reconnecting", &arrivals, first.len());
    verdict.counts("reconnecting", Counts::read(host.admin()).await?, first.len());
    verdict.note("resident with those", format_args!("{} KiB", host.resident_kib()?));
    let (mut rest, arrivals) = Fleet::bring(host.socketio(), others, Pace::AtMost(CONNECTING_MAX)).await;
    verdict.all_registered("the others", &arrivals, others.len());
    verdict.resident("resident with all", before_kib, host.settled_kib().await?, at_once);
    verdict.counts("all", Counts::read(host.admin()).await?, lasting.len());

    verdict.none_lost("back", back.lost());
    verdict.none_lost("the others", rest.lost());
    verdict.none_lost("leaving", back.leave().await);
    verdict.none_lost("leaving", rest.leave().await);
    verdict.note("resident after", format_args!("{} KiB", host.settled_kib().await?));
    host.stop()?;
    Ok(verdict.holds())
}
