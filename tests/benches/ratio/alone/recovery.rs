//! Returns: from a daemon's `rpc-register` until it has the request of a call that waits at the other replica.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::time::sleep;

use super::line::Line;
use crate::load::{calls, users::User, wire::Wire};
use crate::servers::cluster::{Kind, Pair};
use crate::{options::Amounts, redis::Redis};

const REQUEST_MAX_MS: f64 = 20.0;
/// A call has begun to wait by then, and waits for much longer.
const WAITING: Duration = Duration::from_millis(50);

pub(super) async fn measure(amounts: &Amounts, redis: &Redis) -> Result<Line> {
    let pair = Pair::start(Kind::Pointwork, redis).await?;
    let mut requested_ms = Vec::with_capacity(amounts.trials);
    for user in User::some(amounts.trials)? {
        let mut caller = Wire::connect(pair.a.socketio(), &user.app()).await?;
        let mut daemon = Wire::connect(pair.b.socketio(), &user.machine()).await?;
        caller.send(br#"420["rpc-call",{"method":"machine-1:bash","params":""}]"#).await?;
        sleep(WAITING).await;
        let begun = Instant::now();
        daemon.send(br#"42["rpc-register",{"method":"machine-1:bash"}]"#).await?;
        let id = loop {
            if let Some(id) = calls::request(daemon.next().await?) {
                break String::from_utf8_lossy(id).into_owned();
            }
        };
        requested_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        daemon.send(format!(r#"43{id}["done"]"#).as_bytes()).await?;
        let answer = calls::answer(&mut caller, 0).await?;
        ensure!(answer.contains(r#""ok":true"#), "a call that waited was told {answer}");
    }
    Ok(Line::new("recovery: rpc-register to the waiting call's request", "ms", requested_ms, Some(REQUEST_MAX_MS)))
}
