//! Tests our adapter against Node's, on a Redis server of its own.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use crate::command;
use crate::workspace::Workspace;

/// How long a Redis may take until it accepts connections.
const READY: Duration = Duration::from_secs(10);

/// The package of our adapter, whose examples the tests run.
const PACKAGE: &str = "--package=socketioxide-redis-streams";

/// Checks that Node reads what the Rust codec writes, and that Node and Rust replicas work as one server.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let messages = workspace.target.join("peers-messages.jsonl");
    fs::write(
        &messages,
        command::output(&mut workspace.cargo(["run", "--quiet", PACKAGE, "--example=write_messages"]))?,
    )?;
    let redis = Redis::start()?;
    let url = format!("redis://{}:{}", Ipv4Addr::LOCALHOST, redis.port);
    command::run(test(workspace, "read.test.mjs").env("REDIS_URL", url).env("MESSAGES", &messages))?;
    drop(redis);

    command::run(&mut workspace.cargo(["build", "--quiet", PACKAGE, "--example=replica"]))?;
    // It starts and stops Redis servers of its own.
    let replica = workspace.target.join("debug/examples/replica");
    command::run(test(workspace, "conformance.test.mjs").env("REPLICA", replica))
}

fn test(workspace: &Workspace, file: &str) -> Command {
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec", file]).current_dir(workspace.peers());
    node
}

/// A Redis server on a free port that keeps nothing on disk. It ends when it is dropped.
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
