//! The host that is measured: the built program, on free ports, with the default policies.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use pointwork::config::{AuthConfig, Secret};
use pointwork_tests::built;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::sleep;

/// Its tokens are signed with it.
pub(crate) const SECRET: &str = "the secret of a host that serves nobody else";
/// Slot and policy: the rules that the host has compiled in, as wasm.
const POLICIES: [(&str, &str); 4] =
    [("target", "target-first"), ("grace", "grace-fixed"), ("presence", "presence-seed"), ("settle", "settle-hold")];
/// Resident memory has settled when it changed by less than this much, in KiB, over [`SETTLE_INTERVAL`].
const SETTLED_KIB: u64 = 64;
const SETTLE_INTERVAL: Duration = Duration::from_secs(1);
/// The host gives memory back when the number of its sockets has been at rest for some seconds.
const REST: Duration = Duration::from_secs(12);
/// Pings never quite stop, so it is not waited for longer than this.
const SETTLE_ROUNDS_MAX: usize = 10;

/// A running host; ended by SIGKILL when it is dropped without [`Host::stop`].
pub(crate) struct Host {
    child: Child,
    auth: AuthConfig,
    socketio: String,
    admin: String,
    /// Kept: a host that cannot write to its output would fail.
    _stdout: BufReader<ChildStdout>,
    /// Where its policies lie.
    folder: TempDir,
}

impl Host {
    /// Starts it with such settings, each `section.key=value`, and waits until it listens.
    pub(crate) fn start(settings: &[String]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for (slot, policy) in POLICIES {
            fs::write(folder.path().join(slot).with_extension("wasm"), built::policy(policy)?)?;
        }
        let mut child = serve(folder.path(), settings)?;
        let mut stdout = BufReader::new(child.stdout.take().context("the output is piped")?);
        let auth = AuthConfig { hs256_secret: Secret::new(SECRET), ..AuthConfig::default() };
        let mut line = String::new();
        let read = stdout.read_line(&mut line);
        let mut host = Self { child, auth, socketio: String::new(), admin: String::new(), _stdout: stdout, folder };
        read?;
        let ready: Value = serde_json::from_str(&line).context("the host ended before it was ready")?;
        let listening =
            |name: &str| ready["listening"][name].as_str().map(str::to_owned).context("no address in the ready line");
        host.socketio = listening("socketio")?;
        host.admin = listening("admin")?;
        Ok(host)
    }

    /// The settings whose tokens it takes.
    pub(crate) fn auth(&self) -> &AuthConfig {
        &self.auth
    }

    /// URL of the Socket.IO endpoint, with its path.
    pub(crate) fn socketio(&self) -> &str {
        &self.socketio
    }

    /// URL of the admin listener.
    #[allow(dead_code, reason = "not every bench asks it something")]
    pub(crate) fn admin(&self) -> &str {
        &self.admin
    }

    /// The process.
    #[allow(dead_code, reason = "not every bench looks at it from outside")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its policies lie, each as `SLOT.wasm`.
    #[allow(dead_code, reason = "not every bench swaps them")]
    pub(crate) fn policies(&self) -> &Path {
        self.folder.path()
    }

    /// Resident memory in KiB.
    pub(crate) fn resident_kib(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path).with_context(|| path.clone())?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"));
        Ok(resident.with_context(|| format!("{path} has no VmRSS"))?.trim().parse()?)
    }

    /// Resident memory in KiB, once it hardly changes any more.
    pub(crate) async fn settled_kib(&self) -> Result<u64> {
        sleep(REST).await;
        let mut resident_kib = self.resident_kib()?;
        for _ in 0..SETTLE_ROUNDS_MAX {
            sleep(SETTLE_INTERVAL).await;
            let before_kib = std::mem::replace(&mut resident_kib, self.resident_kib()?);
            if resident_kib.abs_diff(before_kib) < SETTLED_KIB {
                break;
            }
        }
        Ok(resident_kib)
    }

    /// Closes it in order. Errors when it does not end well.
    pub(crate) fn stop(mut self) -> Result<()> {
        let kill = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        ensure!(kill.success(), "the host cannot be told to end");
        let status = self.child.wait()?;
        ensure!(status.success(), "the host ended with {status}");
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(policies: &Path, more: &[String]) -> Result<Child> {
    let built = || built::target().join("debug/pointwork");
    let program = std::env::var_os("POINTWORK_BIN").map_or_else(built, PathBuf::from);
    let settings = [
        "listen.address=127.0.0.1:0".to_owned(),
        "admin.address=127.0.0.1:0".to_owned(),
        "log.filter=warn".to_owned(),
        format!("policy.dir={}", policies.display()),
    ];
    Command::new(&program)
        .arg("serve")
        .args(settings.iter().chain(more).flat_map(|setting| ["--set", setting]))
        // The shell's own settings stay out of it.
        .env_clear()
        .env("POINTWORK_AUTH_HS256_SECRET", SECRET)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}: cargo build -p pointwork", program.display()))
}
