//! Starts and stops a host as a child process.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command;
use crate::workspace::Workspace;

/// Far longer than a cold start that compiles four policies takes, even on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The settings of one run, as environment variables of the host.
pub(crate) type Environment = Vec<(&'static str, String)>;

/// A running host. Dropped without [`Host::stop`], it is killed.
pub(crate) struct Host {
    child: Child,
    /// Where applications connect, with the Socket.IO path.
    pub(crate) socketio: String,
    /// Where the admin listener is.
    pub(crate) admin: String,
}

impl Host {
    /// Starts the host and waits for the line that says where it listens. Calls `ended` when the host closes its output, which it does
    /// only when it ends. Errors when the host ends or prints nothing in time; the terminal then shows the reason.
    pub(crate) fn start(
        workspace: &Workspace,
        environment: &Environment,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<Self> {
        let mut child = Command::new(workspace.host())
            .arg("serve")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            // Alone on its in-memory adapter, whatever the shell is set up for.
            .env_remove("REDIS_URL")
            .env_remove("POINTWORK_REDIS_URL")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // Its own group: Ctrl-C reaches this task alone, which then tells the host once.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", workspace.host().display()))?;
        let stdout = child.stdout.take().context("the host's output is piped")?;
        let mut host = Self { child, socketio: String::new(), admin: String::new() };
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // After the ready line nobody listens any more, and what the host prints is for the reader of the terminal.
                if let Err(mpsc::SendError(line)) = sender.send(line) {
                    println!("{line}");
                }
            }
            drop(sender);
            ended();
        });
        let line = match lines.recv_timeout(READY_WITHIN) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                bail!("the host ended before it was ready ({})", host.child.wait()?)
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                bail!("the host was not ready within {READY_WITHIN:?}")
            }
        };
        (host.socketio, host.admin) =
            listening(&line).with_context(|| format!("the host's first line is not its ready line: {line}"))?;
        Ok(host)
    }

    /// Closes it in order and waits for its end.
    pub(crate) fn stop(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        command::run(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        Ok(self.child.wait()?)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Errors when an address cannot be listened on, before the host is started.
pub(crate) fn require_free(address: &str, flag: &str) -> Result<()> {
    TcpListener::bind(address).map(drop).with_context(|| {
        format!("{address} cannot be listened on: end what uses it, or choose another with {flag} HOST:PORT")
    })
}

fn listening(line: &str) -> Option<(String, String)> {
    let ready: Value = serde_json::from_str(line).ok()?;
    let at = |name| ready["listening"][name].as_str().map(str::to_owned);
    Some((at("socketio")?, at("admin")?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_names_both_listeners() {
        let line = r#"{"listening":{"socketio":"http://127.0.0.1:1/socket.io","admin":"http://127.0.0.1:2"}}"#;
        let (socketio, admin) = listening(line).unwrap();
        assert_eq!(socketio, "http://127.0.0.1:1/socket.io");
        assert_eq!(admin, "http://127.0.0.1:2");
        assert!(listening("starting").is_none());
        assert!(listening(r#"{"listening":{"admin":"x"}}"#).is_none());
    }

    #[test]
    fn a_taken_address_is_named_with_the_flag_that_changes_it() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let error = require_free(&address, "--listen").unwrap_err().to_string();
        assert!(error.contains(&address) && error.contains("--listen"), "{error}");
        drop(taken);
        require_free(&address, "--listen").unwrap();
    }
}
