//! Replicas of one kind on one Redis, and what they have used of the machine.

use std::time::Duration;

use anyhow::{Context, Result};
use pointwork_tests::measure::process::Threads;
use tokio::time::{sleep, timeout};

use super::{http, node::Node};
use crate::{common::Host, redis::Redis};

const READY_WITHIN: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_millis(20);
/// What was begun while something was measured has ended by then, and what is measured next does not pay for what was before.
const CALM: Duration = Duration::from_millis(500);

/// Whose server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Kind {
    /// The field's own, on socket.io.
    Node,
    /// This project's.
    Pointwork,
}

impl Kind {
    /// In the order in which they take turns.
    pub(crate) const ALL: [Self; 2] = [Self::Node, Self::Pointwork];

    /// As a table names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Pointwork => "Pointwork",
        }
    }
}

/// One server.
pub(crate) enum Replica {
    Node(Node),
    Pointwork(Box<Host>),
}

impl Replica {
    /// Starts it at such a Redis and waits until it says that it is ready.
    pub(crate) async fn start(kind: Kind, redis: &Redis) -> Result<Self> {
        let replica = match kind {
            Kind::Node => Self::Node(Node::start(&redis.url())?),
            Kind::Pointwork => Self::Pointwork(Box::new(Host::start(&[format!("redis.url={}", redis.url())])?)),
        };
        let url = format!("{}/health/ready", replica.admin());
        let ready = async {
            while http::get(&url).await.is_err() {
                sleep(ASK_EVERY).await;
            }
        };
        timeout(READY_WITHIN, ready).await.with_context(|| format!("a {} replica is not ready", kind.name()))?;
        Ok(replica)
    }

    /// URL of the Socket.IO endpoint, with its path.
    pub(crate) fn socketio(&self) -> &str {
        match self {
            Self::Node(node) => &node.socketio,
            Self::Pointwork(host) => host.socketio(),
        }
    }

    /// URL of the admin listener.
    pub(crate) fn admin(&self) -> &str {
        match self {
            Self::Node(node) => &node.admin,
            Self::Pointwork(host) => host.admin(),
        }
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Node(node) => node.pid(),
            Self::Pointwork(host) => host.pid(),
        }
    }
}

/// Two replicas and the Redis between them.
pub(crate) struct Pair<'a> {
    pub(crate) kind: Kind,
    pub(crate) a: Replica,
    pub(crate) b: Replica,
    redis: &'a Redis,
}

/// CPU time since the start of each: the servers, the Redis, and this program itself.
pub(crate) struct Used {
    servers: [Threads; 2],
    redis: Threads,
    load: Threads,
}

impl Used {
    /// What was used after `earlier`, in microseconds for each of `count`.
    pub(crate) fn each_us(&self, earlier: &Self, count: usize) -> Each {
        let each = |used: Duration| used.as_secs_f64() * 1e6 / count.max(1) as f64;
        let servers = self.servers.iter().zip(&earlier.servers).map(|(now, then)| now.since(then)).sum();
        Each {
            servers_us: each(servers),
            redis_us: each(self.redis.since(&earlier.redis)),
            load_us: each(self.load.since(&earlier.load)),
        }
    }
}

/// CPU time for each of what was counted, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Each {
    pub(crate) servers_us: f64,
    pub(crate) redis_us: f64,
    pub(crate) load_us: f64,
}

impl<'a> Pair<'a> {
    /// Starts both at an emptied Redis.
    pub(crate) async fn start(kind: Kind, redis: &'a Redis) -> Result<Self> {
        redis.flush().await?;
        let (a, b) = (Replica::start(kind, redis).await?, Replica::start(kind, redis).await?);
        let pair = Self { kind, a, b, redis };
        pair.calm().await;
        Ok(pair)
    }

    /// As of now.
    pub(crate) fn used(&self) -> Result<Used> {
        Ok(Used {
            servers: [Threads::of(self.a.pid())?, Threads::of(self.b.pid())?],
            redis: Threads::of(self.redis.pid())?,
            load: Threads::of(std::process::id())?,
        })
    }

    /// Waits until what was begun has ended.
    pub(crate) async fn calm(&self) {
        sleep(CALM).await;
    }
}
