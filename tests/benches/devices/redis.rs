//! A `redis-server` of the bench's own, on a free port, that keeps nothing on disk.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

const READY_WITHIN: Duration = Duration::from_secs(10);
const ASK_EVERY: Duration = Duration::from_millis(20);
const PONG: &[u8] = b"+PONG\r\n";
#[allow(dead_code, reason = "not every bench uses it twice")]
const OK: &[u8] = b"+OK\r\n";

/// A running Redis; ended when it is dropped.
pub(crate) struct Redis {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Redis {
    /// Starts it, and waits until it answers.
    pub(crate) async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string(), "--dir"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("redis-server does not start: is it installed?")?;
        let mut redis = Self { child, port, _folder: folder };
        timeout(READY_WITHIN, redis.answer()).await.context("redis-server does not answer")??;
        Ok(redis)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The process.
    #[allow(dead_code, reason = "not every bench looks at it from outside")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Empties it.
    #[allow(dead_code, reason = "not every bench uses it twice")]
    pub(crate) async fn flush(&self) -> Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.write_all(b"FLUSHALL\r\n").await?;
        let mut answer = [0; OK.len()];
        stream.read_exact(&mut answer).await?;
        ensure!(answer == OK, "the Redis is not emptied");
        Ok(())
    }

    async fn answer(&mut self) -> Result<()> {
        while ping(self.port).await.is_err() {
            // Another program may have been given the port.
            ensure!(self.child.try_wait()?.is_none(), "redis-server ended at once");
            sleep(ASK_EVERY).await;
        }
        Ok(())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn ping(port: u16) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(b"PING\r\n").await?;
    let mut answer = [0; PONG.len()];
    stream.read_exact(&mut answer).await?;
    ensure!(answer == PONG, "not a Redis that is ready");
    Ok(())
}
