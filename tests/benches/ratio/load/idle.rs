//! Idle sockets: what the memory of one server grows by, with so many apps that do nothing but answer pings.

use std::time::Duration;

use anyhow::{Context, Result};
use pointwork_tests::measure::process::Memory;
use tokio::{task::JoinSet, time::sleep};

use super::{connects, users::User};
use crate::redis::Redis;
use crate::servers::cluster::{Kind, Replica};

/// Both kinds have sent a ping of their fifteen seconds by then, and given back what they give back.
const REST: Duration = Duration::from_secs(18);
/// Connected before the memory is first read: what a server allocates once belongs to no socket.
const FIRST: usize = 50;

/// Growth a socket, in KiB.
pub(crate) struct Growth {
    pub(crate) rss_kib: f64,
    pub(crate) anonymous_kib: f64,
}

/// Of a new server alone on the Redis.
pub(crate) async fn grow(kind: Kind, redis: &Redis, users: &[User], rest: bool) -> Result<Growth> {
    redis.flush().await?;
    let replica = Replica::start(kind, redis).await?;
    let (first, others) = users.split_at(FIRST.min(users.len() / 2));
    let mut idle = JoinSet::new();
    stay(&mut idle, connects::connect(&[&replica], first).await?);
    sleep(Duration::from_secs(2)).await;
    let before = Memory::of(replica.pid())?;
    stay(&mut idle, connects::connect(&[&replica], others).await?);
    if rest {
        sleep(REST).await;
    }
    let after = Memory::of(replica.pid())?;
    if let Some(ended) = idle.try_join_next() {
        ended?.context("an idle socket")?;
    }
    let each = |after: u64, before: u64| (after as f64 - before as f64) / others.len() as f64;
    Ok(Growth {
        rss_kib: each(after.rss_kib, before.rss_kib),
        anonymous_kib: each(after.anonymous_kib, before.anonymous_kib),
    })
}

fn stay(idle: &mut JoinSet<Result<()>>, wires: Vec<super::wire::Wire>) {
    for mut wire in wires {
        idle.spawn(async move {
            loop {
                wire.next().await?;
            }
        });
    }
}
