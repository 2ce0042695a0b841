//! Swaps: from the rename of a policy's file until the first caller has an answer that the new policy routed.
//!
//! The caller has registered its own method before a daemon did. `target-first` gives it its own call, which is refused;
//! `target-least-loaded` gives it to the daemon: so each answer tells which of them decided.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use pointwork_tests::built;
use tokio::time::sleep;

use super::line::Line;
use crate::load::{
    calls::{self, METHOD},
    users::User,
    wire::Wire,
};
use crate::servers::cluster::{Kind, Replica};
use crate::{common::Host, options::Amounts, redis::Redis};

const EFFECT_MAX_MS: f64 = 250.0;
const EFFECT_WITHIN: Duration = Duration::from_secs(10);
/// Between two swaps: instances of the last one are made in the background.
const REST: Duration = Duration::from_millis(300);

pub(super) async fn measure(amounts: &Amounts, redis: &Redis) -> Result<Line> {
    redis.flush().await?;
    let Replica::Pointwork(host) = Replica::start(Kind::Pointwork, redis).await? else {
        unreachable!("it was asked for")
    };
    let user = User::new(0)?;
    let mut caller = Wire::connect(host.socketio(), &user.app()).await?;
    calls::register(&mut caller, METHOD).await?;
    let daemon = calls::Daemon::connect(host.socketio(), &user).await?;

    let policies = [built::policy("target-first")?, built::policy("target-least-loaded")?];
    let mut effects_ms = Vec::with_capacity(amounts.swaps);
    let mut call = 0;
    ensure!(!is_answered(&mut caller, &mut call).await?, "the oldest registration is the caller's own");
    for swap in 1..=amounts.swaps {
        sleep(REST).await;
        let is_to_daemon = swap % 2 == 1;
        let module = unlike_any(&policies[usize::from(is_to_daemon)], swap);
        let renamed = rename(&host, &module)?;
        while is_answered(&mut caller, &mut call).await? != is_to_daemon {
            ensure!(renamed.elapsed() < EFFECT_WITHIN, "a swap is not in effect after {EFFECT_WITHIN:?}");
        }
        effects_ms.push(renamed.elapsed().as_secs_f64() * 1e3);
    }
    daemon.leave().await?;
    Ok(Line::new("swap: rename to the first call it routed", "ms", effects_ms, Some(EFFECT_MAX_MS)))
}

/// When the file was renamed.
fn rename(host: &Host, module: &[u8]) -> Result<Instant> {
    let served: &Path = &host.policies().join("target.wasm");
    let staged = served.with_extension("new");
    fs::write(&staged, module)?;
    let now = Instant::now();
    fs::rename(&staged, served)?;
    Ok(now)
}

/// The same component with a custom section of its own: one that was loaded before would not be compiled.
fn unlike_any(component: &[u8], swap: usize) -> Vec<u8> {
    const NAME: &[u8] = b"swap";
    let number = u64::to_le_bytes(swap as u64);
    let mut bytes = component.to_vec();
    // Section 0; its size and that of its name are each below 128, so one byte long.
    bytes.push(0);
    bytes.push(u8::try_from(1 + NAME.len() + number.len()).unwrap_or_default());
    bytes.push(u8::try_from(NAME.len()).unwrap_or_default());
    bytes.extend(NAME);
    bytes.extend(number);
    bytes
}

/// Makes a call; whether a daemon answered it.
async fn is_answered(caller: &mut Wire, call: &mut u64) -> Result<bool> {
    caller.send(format!(r#"42{call}["rpc-call",{{"method":"{METHOD}","params":""}}]"#).as_bytes()).await?;
    let answer = calls::answer(caller, *call).await?;
    *call += 1;
    Ok(answer.contains(r#""ok":true"#))
}
