//! For tests: a real `redis-server` on a socket of its own, so nobody else can be given its address.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// By when it answers, on a machine that is busy.
const AT_LAST: Duration = Duration::from_secs(10);

pub(crate) struct RedisServer {
    directory: tempfile::TempDir,
    child: Child,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let child = spawn(&directory);
        let server = Self { directory, child };
        server.until_it_answers();
        server
    }

    /// Starts it again; it is empty.
    pub(crate) fn resurrect(&mut self) {
        self.child = spawn(&self.directory);
        self.until_it_answers();
    }

    /// Ends the process, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Has it answer nothing, with its connections as they are.
    pub(crate) fn hang(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn resume(&self) {
        self.signal("-CONT");
    }

    /// One command; the start of the answer as it comes over the wire.
    pub(crate) fn command(&self, command: &str) -> String {
        self.ask(command).unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    fn until_it_answers(&self) {
        let began = Instant::now();
        while !self.ask("PING").is_some_and(|answer| answer.starts_with("+PONG")) {
            assert!(began.elapsed() < AT_LAST, "redis-server does not start: is it installed?");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn ask(&self, command: &str) -> Option<String> {
        let mut socket = UnixStream::connect(self.socket()).ok()?;
        socket.set_read_timeout(Some(AT_LAST)).unwrap();
        socket.write_all(format!("{command}\r\n").as_bytes()).ok()?;
        let mut answer = vec![0; 4096];
        let length = socket.read(&mut answer).ok().filter(|length| *length > 0)?;
        Some(String::from_utf8_lossy(&answer[..length]).into_owned())
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // SIGKILL ends a stopped process too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(directory: &tempfile::TempDir) -> Child {
    Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket", "s", "--dir"])
        .arg(directory.path())
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is installed")
}
