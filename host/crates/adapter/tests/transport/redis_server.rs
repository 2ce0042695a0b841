//! Runs a real `redis-server` on a free port.

use std::{path::PathBuf, process::Stdio, sync::atomic::AtomicU32, sync::atomic::Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::rig::until;

/// Two tests of one process may be given one port.
const PORTS_TRIED_MAX: usize = 10;

pub(crate) struct RedisServer {
    pub(crate) port: u16,
    directory: PathBuf,
    more: Vec<String>,
    child: Option<Child>,
}

impl RedisServer {
    pub(crate) async fn start(more: &[&str]) -> RedisServer {
        let mut server = RedisServer::stopped(more);
        for _ in 0..PORTS_TRIED_MAX {
            server.port = free_port();
            if server.resurrect().await {
                return server;
            }
        }
        panic!("redis-server does not start: is it installed?");
    }

    /// One that does not run yet.
    pub(crate) fn stopped(more: &[&str]) -> RedisServer {
        static SERVERS: AtomicU32 = AtomicU32::new(0);
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("adapter-redis-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let more = more.iter().map(ToString::to_string).collect();
        RedisServer { port: free_port(), directory, more, child: None }
    }

    /// Starts it on its port; it is empty. Whether it did start.
    pub(crate) async fn resurrect(&mut self) -> bool {
        let mut child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &self.port.to_string()])
            .args(["--unixsocket", &self.socket(), "--dir"])
            .arg(&self.directory)
            .args(&self.more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("redis-server is installed");
        let port = self.port;
        let runs = until(|| {
            let has_ended = child.try_wait().unwrap().is_some();
            async move {
                if has_ended {
                    return Some(false);
                }
                let answer = ask(port, "PING").await?;
                (answer.starts_with("+PONG") || answer.starts_with("-NOAUTH")).then_some(true)
            }
        })
        .await;
        self.child = Some(child);
        runs
    }

    /// Ends the process, and waits until it is gone.
    pub(crate) async fn kill(&mut self) {
        self.child.take().unwrap().kill().await.unwrap();
    }

    /// Has it answer nothing, with its connections as they are.
    pub(crate) async fn hang(&self) {
        self.signal("-STOP").await;
    }

    pub(crate) async fn resume(&self) {
        self.signal("-CONT").await;
    }

    pub(crate) async fn command(&self, command: &str) -> String {
        ask(self.port, command).await.unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn socket(&self) -> String {
        self.directory.join("s").display().to_string()
    }

    async fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().and_then(Child::id).unwrap().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().await.unwrap().success());
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // SIGKILL ends a stopped process too.
        if let Some(child) = &mut self.child {
            let _ = child.start_kill();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// One command on a connection of its own; the start of the answer.
async fn ask(port: u16, command: &str) -> Option<String> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    socket.write_all(format!("{command}\r\n").as_bytes()).await.ok()?;
    let mut answer = vec![0; 4096];
    let length = socket.read(&mut answer).await.ok().filter(|length| *length > 0)?;
    Some(String::from_utf8_lossy(&answer[..length]).into_owned())
}
