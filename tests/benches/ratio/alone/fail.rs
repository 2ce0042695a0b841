//! Deaths: from the end of what a call waits for until its caller is told.

use std::time::Instant;

use anyhow::{Result, ensure};
use tokio::task::JoinSet;

use super::line::Line;
use crate::load::{
    calls::{self, METHOD},
    users::User,
    wire::Wire,
};
use crate::servers::cluster::{Kind, Pair, Replica};
use crate::{options::Amounts, redis::Redis};

const SOCKET_MAX_MS: f64 = 50.0;
const REPLICA_MAX_MS: f64 = 250.0;
/// Callers of a replica that is killed.
const CALLERS: usize = 16;

/// A caller that waits for a daemon at the other replica.
struct Waiting {
    caller: Wire,
    /// Which has the request, and does not answer.
    daemon: Wire,
}

impl Waiting {
    async fn start(callers: &Replica, daemons: &Replica, user: &User) -> Result<Self> {
        let mut daemon = Wire::connect(daemons.socketio(), &user.machine()).await?;
        calls::register(&mut daemon, METHOD).await?;
        let mut caller = Wire::connect(callers.socketio(), &user.app()).await?;
        caller.send(format!(r#"420["rpc-call",{{"method":"{METHOD}","params":""}}]"#).as_bytes()).await?;
        while calls::request(daemon.next().await?).is_none() {}
        Ok(Self { caller, daemon })
    }
}

/// Waits until the caller is told that its target is gone.
async fn told(caller: &mut Wire, since: Instant) -> Result<f64> {
    let answer = calls::answer(caller, 0).await?;
    let took_ms = since.elapsed().as_secs_f64() * 1e3;
    ensure!(answer.contains("RPC target disconnected"), "a caller was told {answer}");
    Ok(took_ms)
}

/// The daemon's connection ends.
pub(super) async fn sockets(amounts: &Amounts, redis: &Redis) -> Result<Line> {
    let pair = Pair::start(Kind::Pointwork, redis).await?;
    let mut told_ms = Vec::with_capacity(amounts.trials);
    for user in User::some(amounts.trials)? {
        let Waiting { mut caller, daemon } = Waiting::start(&pair.a, &pair.b, &user).await?;
        let killed = Instant::now();
        drop(daemon);
        told_ms.push(told(&mut caller, killed).await?);
    }
    Ok(Line::new("fast-fail: daemon's socket killed, at the other replica", "ms", told_ms, Some(SOCKET_MAX_MS)))
}

/// The daemon's replica is killed.
pub(super) async fn replicas(amounts: &Amounts, redis: &Redis) -> Result<Line> {
    let mut told_ms = Vec::with_capacity(amounts.kills * CALLERS);
    for _ in 0..amounts.kills {
        let Pair { a, b, .. } = Pair::start(Kind::Pointwork, redis).await?;
        let mut callers = Vec::with_capacity(CALLERS);
        // Kept: it is the replica's death that is told, not the socket's.
        let mut daemons = Vec::with_capacity(CALLERS);
        for user in User::some(CALLERS)? {
            let Waiting { caller, daemon } = Waiting::start(&a, &b, &user).await?;
            callers.push(caller);
            daemons.push(daemon);
        }
        let killed = Instant::now();
        drop(b);
        let mut answers = JoinSet::new();
        for mut caller in callers {
            answers.spawn(async move { told(&mut caller, killed).await });
        }
        while let Some(answer) = answers.join_next().await {
            told_ms.push(answer??);
        }
    }
    Ok(Line::new("fast-fail: daemon's replica killed (SIGKILL)", "ms", told_ms, Some(REPLICA_MAX_MS)))
}
