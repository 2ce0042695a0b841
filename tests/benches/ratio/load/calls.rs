//! Calls: so many users, each with an app that calls and a machine whose daemon answers.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use tokio::task::{JoinHandle, JoinSet};

use super::{users::User, wire::Wire};
use crate::servers::cluster::Replica;

/// As large as the encrypted parameters of a usual call.
const PARAMS_BYTES: usize = 256;
/// What every daemon does.
pub(crate) const METHOD: &str = "machine-1:bash";

/// Users' connections, each pair of an app and a daemon.
pub(crate) struct Callers {
    apps: Vec<App>,
    daemons: Vec<Daemon>,
}

/// What a number of calls took.
pub(crate) struct Calls {
    pub(crate) count: usize,
    pub(crate) elapsed_s: f64,
    /// From sending to the answer, in milliseconds, sorted.
    pub(crate) latencies_ms: Vec<f64>,
}

struct App {
    wire: Wire,
    /// Number of the next acknowledgement.
    next: u64,
    /// What follows the number.
    call: String,
}

impl Callers {
    /// One app of each user at `callers`, and its daemon at `daemons`, which has registered its method.
    pub(crate) async fn connect(callers: &Replica, daemons: &Replica, users: &[User]) -> Result<Self> {
        let call = format!(
            r#"["rpc-call",{{"method":"{METHOD}","params":"{}"}}]"#,
            "cGFyYW1ldGVycyBh".repeat(PARAMS_BYTES / 16)
        );
        let mut all = Self { apps: Vec::new(), daemons: Vec::new() };
        for user in users {
            all.daemons.push(Daemon::connect(daemons.socketio(), user).await?);
            let wire = Wire::connect(callers.socketio(), &user.app()).await?;
            all.apps.push(App { wire, next: 0, call: call.clone() });
        }
        Ok(all)
    }

    /// Makes `count` calls, by the first `in_flight` apps at once. Errors when one is not answered by its daemon.
    pub(crate) async fn call(&mut self, count: usize, in_flight: usize) -> Result<Calls> {
        ensure!(in_flight <= self.apps.len(), "there are {} callers", self.apps.len());
        let each = count / in_flight;
        let started = Instant::now();
        let mut calling = JoinSet::new();
        for mut app in self.apps.drain(..in_flight) {
            calling.spawn(async move {
                let latencies = app.call(each).await?;
                anyhow::Ok((app, latencies))
            });
        }
        let mut latencies_ms = Vec::with_capacity(count);
        while let Some(done) = calling.join_next().await {
            let (app, latencies) = done??;
            self.apps.push(app);
            latencies_ms.extend(latencies);
        }
        let elapsed_s = started.elapsed().as_secs_f64();
        latencies_ms.sort_by(f64::total_cmp);
        Ok(Calls { count: each * in_flight, elapsed_s, latencies_ms })
    }

    /// Closes all connections; errors when a daemon's had ended before.
    pub(crate) async fn leave(self) -> Result<()> {
        drop(self.apps);
        for daemon in self.daemons {
            daemon.leave().await?;
        }
        Ok(())
    }
}

impl App {
    /// One call after the other; how long each took, in milliseconds.
    async fn call(&mut self, count: usize) -> Result<Vec<f64>> {
        let mut latencies_ms = Vec::with_capacity(count);
        for _ in 0..count {
            let sent = Instant::now();
            self.wire.send(format!("42{}{}", self.next, self.call).as_bytes()).await?;
            self.answered().await?;
            latencies_ms.push(sent.elapsed().as_secs_f64() * 1e3);
            self.next += 1;
        }
        Ok(latencies_ms)
    }

    async fn answered(&mut self) -> Result<()> {
        let wanted = format!(r#"43{}[{{"ok":true,"#, self.next);
        loop {
            let packet = self.wire.next().await?;
            match packet {
                _ if packet.starts_with(wanted.as_bytes()) => return Ok(()),
                // What becomes of its machine is told to an app.
                _ if packet.starts_with(b"42") => {}
                _ => bail!("a caller was sent {}", String::from_utf8_lossy(packet)),
            }
        }
    }
}

/// A daemon that answers.
pub(crate) struct Daemon(JoinHandle<Result<()>>);

impl Daemon {
    /// That of a user's machine; it has registered [`METHOD`].
    pub(crate) async fn connect(url: &str, user: &User) -> Result<Self> {
        let mut wire = Wire::connect(url, &user.machine()).await?;
        register(&mut wire, METHOD).await?;
        Ok(Self(tokio::spawn(serve(wire))))
    }

    /// Closes its connection; errors when that had ended before.
    pub(crate) async fn leave(self) -> Result<()> {
        if self.0.is_finished() {
            return self.0.await?.context("a daemon");
        }
        self.0.abort();
        Ok(())
    }
}

/// Registers a method, and waits until that is confirmed.
pub(crate) async fn register(wire: &mut Wire, method: &str) -> Result<()> {
    wire.send(format!(r#"42["rpc-register",{{"method":"{method}"}}]"#).as_bytes()).await?;
    while !wire.next().await?.starts_with(br#"42["rpc-registered""#) {}
    Ok(())
}

/// The answer to the call with such a number, as text. Events before it are skipped.
pub(crate) async fn answer(wire: &mut Wire, id: u64) -> Result<String> {
    let wanted = format!("43{id}[");
    loop {
        let packet = wire.next().await?;
        if let Some(answer) = packet.strip_prefix(wanted.as_bytes()) {
            return Ok(String::from_utf8_lossy(answer).into_owned());
        }
    }
}

/// Answers every request, until the connection ends.
async fn serve(mut wire: Wire) -> Result<()> {
    let result = format!(r#"["{}"]"#, "cmVzdWx0IG9mIGNh".repeat(PARAMS_BYTES / 16));
    let mut answer = Vec::new();
    loop {
        let packet = wire.next().await?;
        let Some(id) = request(packet) else { continue };
        answer.clear();
        answer.extend(b"43");
        answer.extend(id);
        answer.extend(result.as_bytes());
        wire.send(&answer).await?;
    }
}

/// The digits of the acknowledgement that an `rpc-request` asks for.
pub(crate) fn request(packet: &[u8]) -> Option<&[u8]> {
    let rest = packet.strip_prefix(b"42")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (id, event) = rest.split_at_checked(digits)?;
    (digits > 0 && event.starts_with(br#"["rpc-request","#)).then_some(id)
}
