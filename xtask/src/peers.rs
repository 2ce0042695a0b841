//! Node's own adapter against ours, on a Redis of their own.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command::{self, cargo};
use crate::workspace::Workspace;

/// How long a Redis may take until it accepts connections.
const READY: Duration = Duration::from_secs(10);

/// Has Node read what the Rust codec writes. Errors when it does not understand, or something cannot be started.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let folder = workspace.peers();
    let example = ["run", "--quiet", "--package=socketioxide-redis-streams", "--example=write_messages"];
    let messages = workspace.target.join("peers-messages.jsonl");
    fs::write(&messages, command::output(&mut cargo(workspace, example))?)?;
    let redis = Redis::start()?;
    command::run(
        Command::new("node")
            .args(["--test", "--test-reporter=spec", "read.test.mjs"])
            .current_dir(&folder)
            .env("REDIS_URL", format!("redis://{}:{}", Ipv4Addr::LOCALHOST, redis.port))
            .env("MESSAGES", &messages),
    )
}

/// A Redis on a free port that keeps nothing on disk; ends when it is dropped.
struct Redis {
    server: Child,
    port: u16,
}

impl Redis {
    fn start() -> Result<Self> {
        // Free now; nobody else on this machine asks for just this one in the next moment.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let server = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "no"])
            .stdout(Stdio::null())
            .spawn()
            .context("redis-server")?;
        let mut redis = Self { server, port };
        let deadline = Instant::now() + READY;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = redis.server.try_wait()? {
                bail!("redis-server ended with {status}");
            }
            if Instant::now() > deadline {
                bail!("redis-server does not listen on port {port} after {READY:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(redis)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It fails only when the server has ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
