//! The server that Pointwork is compared with: `tests/peers/node/seed-server.mjs`, as it is run in production.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::common::SECRET;

/// A running replica; ended by SIGKILL when it is dropped.
pub(crate) struct Node {
    child: Child,
    /// URL of the Socket.IO endpoint, with its path.
    pub(crate) socketio: String,
    /// URL of the admin listener.
    pub(crate) admin: String,
    _stdout: BufReader<ChildStdout>,
}

impl Node {
    /// Starts it at such a Redis, and waits until it listens.
    pub(crate) fn start(redis: &str) -> Result<Self> {
        let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("peers/node/seed-server.mjs");
        let mut child = Command::new("node")
            .arg(&program)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs([("NODE_ENV", "production"), ("REDIS_URL", redis), ("AUTH_HS256_SECRET", SECRET)])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("node does not start: is it installed?")?;
        let mut stdout = BufReader::new(child.stdout.take().context("the output is piped")?);
        let mut line = String::new();
        let read = stdout.read_line(&mut line);
        let mut node = Self { child, socketio: String::new(), admin: String::new(), _stdout: stdout };
        read?;
        let ready: Value = serde_json::from_str(&line)
            .context("the Node server ended before it was ready: npm ci in tests/peers/node")?;
        let listening = |name: &str| ready["listening"][name].as_str().map(str::to_owned).context("no address");
        node.socketio = listening("socketio")?;
        node.admin = listening("admin")?;
        Ok(node)
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
