//! Runs a development host, and rebuilds and swaps its policies when their sources change.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use fs_err as fs;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::NamedTempFile;

use crate::build::policies;
use crate::command;
use crate::run::host::{self, Environment, Host};
use crate::run::watch;
use crate::workspace::Workspace;

/// Each slot and the policy that serves it first: the host's native rules, as wasm.
const DEFAULTS: [(&str, &str); 4] =
    [("target", "target-first"), ("grace", "grace-fixed"), ("presence", "presence-seed"), ("settle", "settle-hold")];

/// An editor writes a file in several steps, and a checkout writes many files. A build starts when nothing has changed for this long.
const QUIET: Duration = Duration::from_millis(150);

#[derive(Args)]
pub(crate) struct Options {
    /// Where applications connect.
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "HOST:PORT")]
    listen: String,
    /// Where the admin listener is.
    #[arg(long, default_value = "127.0.0.1:9090", value_name = "HOST:PORT")]
    admin: String,
}

enum Event {
    Interrupted,
    HostEnded,
    Changed(PathBuf),
}

/// Serves until it is interrupted. Errors when something cannot be built or started, or the host ends by itself.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let _lock = lock(workspace)?;
    host::require_free(&options.listen, "--listen")?;
    host::require_free(&options.admin, "--admin")?;
    policies::build_all(workspace)?;
    policies::build_host(workspace)?;

    let slots = workspace.up().join("policies");
    fill(workspace, &slots)?;
    let secret = secret()?;
    let environment: Environment = vec![
        ("POINTWORK_AUTH_HS256_SECRET", secret.clone()),
        ("POINTWORK_POLICY_DIR", slots.to_string_lossy().into_owned()),
        ("POINTWORK_LISTEN_ADDRESS", options.listen.clone()),
        ("POINTWORK_ADMIN_ADDRESS", options.admin.clone()),
    ];

    let (sender, events) = mpsc::channel();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let interrupted = sender.clone();
    // A send fails only when this task is at its end already.
    std::thread::spawn(move || signals.forever().for_each(|_| drop(interrupted.send(Event::Interrupted))));
    let ended = sender.clone();
    let mut host = Host::start(workspace, &environment, move || drop(ended.send(Event::HostEnded)))?;
    let file = workspace.up().join("env");
    write_private(&file, &demo_environment(&secret, &host))?;
    let token = command::output(
        Command::new(workspace.host())
            .args(["token", "--sub", "dev"])
            .envs(environment.iter().map(|(name, value)| (name, value))),
    )?;
    introduce(workspace, &host, &token, &slots);

    let _watcher = watch::start(workspace, move |path| drop(sender.send(Event::Changed(path))))?;
    let served = serve(&events, &slots);
    let status = host.stop()?;
    // Without a host behind them, secret and address are of no use to a demo.
    fs::remove_file(&file)?;
    served?;
    if !status.success() {
        bail!("the host ended with {status}");
    }
    Ok(())
}

/// Swaps changed policies until it is interrupted. When a policy does not build, the previous one keeps serving.
fn serve(events: &Receiver<Event>, slots: &Path) -> Result<()> {
    let mut changed = BTreeSet::new();
    loop {
        // All senders live in threads of this task; the channel outlasts them.
        let event = if changed.is_empty() { Some(events.recv()?) } else { events.recv_timeout(QUIET).ok() };
        match event {
            Some(Event::Interrupted) => return Ok(()),
            Some(Event::HostEnded) => bail!("the host ended by itself"),
            Some(Event::Changed(path)) => drop(changed.insert(path)),
            None => {
                if let Err(error) = follow(&std::mem::take(&mut changed), slots) {
                    println!("{error:#}; what served before goes on serving");
                }
            }
        }
    }
}

/// Rebuilds and swaps the policies that these changes concern. Asks cargo again, because a policy may be new.
fn follow(changed: &BTreeSet<PathBuf>, slots: &Path) -> Result<()> {
    let workspace = Workspace::load()?;
    let policies = watch::concerned(&workspace, changed);
    if policies.is_empty() { Ok(()) } else { watch::rebuild(&workspace, &policies, slots) }
}

/// Prevents a second `up` in this folder until the lock is dropped.
fn lock(workspace: &Workspace) -> Result<fs::File> {
    let path = workspace.target.join("up.lock");
    let file = fs::File::create(&path)?;
    if file.try_lock().is_err() {
        bail!("another `cargo xtask up` runs in this checkout: end it first");
    }
    Ok(file)
}

/// Fills the slots with the default policies.
fn fill(workspace: &Workspace, slots: &Path) -> Result<()> {
    if slots.exists() {
        fs::remove_dir_all(slots)?;
    }
    for (slot, policy) in DEFAULTS {
        let file = workspace.policy(policy);
        let bytes = fs::read(&file)?;
        policies::replace(&slots.join(format!("{slot}.wasm")), &bytes)?;
    }
    Ok(())
}

/// 32 random bytes in hexadecimal.
fn secret() -> Result<String> {
    let mut bytes = [0; 32];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn demo_environment(secret: &str, host: &Host) -> String {
    format!(
        "POINTWORK_AUTH_HS256_SECRET={secret}\nPOINTWORK_SOCKETIO={}\nPOINTWORK_ADMIN={}\n",
        host.socketio, host.admin
    )
}

/// Only the user who started it may read it: the secret mints tokens for any user.
fn write_private(path: &Path, text: &str) -> Result<()> {
    // A temporary file has the mode 0600.
    let mut file = NamedTempFile::new_in(path.parent().context("a file lies in a folder")?)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

fn introduce(workspace: &Workspace, host: &Host, token: &str, slots: &Path) {
    let here = |path: &Path| {
        let shown = path.strip_prefix(&workspace.root).unwrap_or(path);
        shown.display().to_string()
    };
    let least_loaded = here(&workspace.policy("target-least-loaded"));
    let slot = here(&slots.join("target.wasm"));
    println!(
        "
Pointwork serves
  Socket.IO  {socketio}
  admin      {admin}
  policies   {slots}

a token for the user `dev`
  {token}

next, in other terminals
  1. two daemons and a caller; see which daemon answers
     cargo xtask demo
  2. what serves each slot
     curl -s {admin}/v1/policies
  3. swap the rule that picks the daemon, and watch the demo change
     cp {least_loaded} {slot}.new && mv {slot}.new {slot}

A policy whose source under policies/ changes is rebuilt and swapped. Ctrl-C ends the host.
",
        socketio = host.socketio,
        admin = host.admin,
        slots = here(slots),
    );
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_new_each_time() {
        let (one, two) = (secret().unwrap(), secret().unwrap());
        assert_eq!(one.len(), 64);
        assert!(one.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(one, two);
    }

    #[test]
    fn a_private_file_is_readable_by_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("pointwork-private-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("env");
        for text in ["A=1\n", "A=2\n"] {
            write_private(&file, text).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
