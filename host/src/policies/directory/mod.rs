//! The policy directory: what lies in it is what serves.
//!
//! Each slot has a module file and, beside it, an optional `<stem>.json` with its configuration. Rename, rewrite in place,
//! delete, and the symlink flip of a Kubernetes ConfigMap all end in the same question, asked of the files and not of
//! the event: are they other ones than those that were loaded, and have they stopped changing?

pub(crate) mod file;
mod slot_files;
mod writers;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use pointwork_policy::{Digest, SlotName};

use self::{slot_files::SlotFiles, writers::Writers};
use crate::{
    config::{PolicyConfig, PolicySource},
    policies::slots::Policies,
};

/// How often the files are looked at even if no event came: some file systems tell none, and a queue can overflow.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

enum Signal {
    Event(notify::Result<notify::Event>),
    Reload(SlotName, Digest, mpsc::SyncSender<()>),
    Close,
}

/// Has files loaded again that were not taken.
#[derive(Clone)]
pub struct Reloads(mpsc::Sender<Signal>);

impl Reloads {
    /// Loads a slot's files again if they are still this generation, and waits for it: not for an async worker. Without a
    /// directory there is nothing to do.
    pub fn reload(&self, slot: SlotName, digest: Digest) {
        let (done, waiting) = mpsc::sync_channel(1);
        if self.0.send(Signal::Reload(slot, digest, done)).is_ok() {
            // An error is an end of the directory's thread.
            let _ = waiting.recv();
        }
    }
}

/// A directory being watched; loads happen on its own thread, beside the serving ones.
pub struct PolicyDir {
    signals: mpsc::Sender<Signal>,
    _watcher: Option<RecommendedWatcher>,
}

impl PolicyDir {
    /// Loads what is there and watches from then on. A policy that cannot be loaded is no reason not to start: the
    /// native rule serves, and the slot's status says why. Without `policy.dir` there is nothing to do.
    ///
    /// # Errors
    /// When the directory cannot be watched.
    pub fn open(settings: &PolicyConfig, policies: Arc<Policies>) -> anyhow::Result<Self> {
        let (signals, received) = mpsc::channel();
        if settings.source == PolicySource::Cluster {
            return Ok(Self { signals, _watcher: None });
        }
        if settings.dir.is_none() && settings.names_files() {
            anyhow::bail!("a policy's file is set, but policy.dir is not: nothing would be loaded");
        }
        let Some(dir) = &settings.dir else { return Ok(Self { signals, _watcher: None }) };
        let mut watch = Watch {
            quiet: settings.quiet_ms.as_millis(),
            slots: SlotFiles::of(settings, dir),
            policies,
            writers: Writers::default(),
            is_watching: settings.watch,
        };
        // The watcher first: what changes while the first load runs is seen after it.
        let watcher = if settings.watch { Some(watcher(dir, &watch.slots, signals.clone())?) } else { None };
        watch.load_at_start();
        thread::Builder::new().name("policy-dir".into()).spawn(move || watch.run(&received))?;
        Ok(Self { signals, _watcher: watcher })
    }

    /// For the operator who wants a file loaded again.
    pub fn reloads(&self) -> Reloads {
        Reloads(self.signals.clone())
    }

    /// Stops watching. A load under way is not waited for: it may hang on a file system that does.
    pub fn close(self) {
        let _ = self.signals.send(Signal::Close);
    }
}

fn watcher(dir: &Path, slots: &[SlotFiles], signals: mpsc::Sender<Signal>) -> anyhow::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event| {
        let _ = signals.send(Signal::Event(event));
    })?;
    let mut dirs: Vec<PathBuf> =
        slots.iter().filter_map(|slot| slot.module().parent().map(Path::to_path_buf)).collect();
    dirs.push(dir.to_path_buf());
    dirs.sort();
    dirs.dedup();
    for dir in dirs {
        watcher
            .watch(&dir, RecursiveMode::NonRecursive)
            .with_context(|| format!("policy.dir: cannot watch {}", dir.display()))?;
    }
    Ok(watcher)
}

/// The state of the watching thread.
struct Watch {
    slots: Vec<SlotFiles>,
    policies: Arc<Policies>,
    writers: Writers,
    quiet: Duration,
    /// Whether files are looked at without being asked to.
    is_watching: bool,
}

impl Watch {
    fn load_at_start(&mut self) {
        for slot in &mut self.slots {
            slot.load_at_start(&self.policies);
        }
    }

    fn reload(&mut self, slot: SlotName, digest: &Digest) {
        for files in self.slots.iter_mut().filter(|files| files.slot() == slot) {
            files.reload(&self.policies, digest);
        }
    }

    fn run(mut self, received: &mpsc::Receiver<Signal>) {
        let mut wait = LOOK_INTERVAL;
        loop {
            match received.recv_timeout(wait) {
                Ok(Signal::Event(Ok(event))) => self.writers.note(&event, Instant::now()),
                Ok(Signal::Reload(slot, digest, done)) => {
                    self.reload(slot, &digest);
                    // Whoever asked may not wait any more.
                    let _ = done.send(());
                }
                Ok(Signal::Event(Err(error))) => tracing::warn!(%error, "watching the policy directory"),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Ok(Signal::Close) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            wait = if self.is_watching { self.look(Instant::now()) } else { LOOK_INTERVAL };
        }
    }

    /// Looks at every slot's files and loads those that have changed and settled; gives when to look again.
    fn look(&mut self, now: Instant) -> Duration {
        let Self { slots, policies, writers, quiet, .. } = self;
        let waits = slots.iter_mut().filter_map(|slot| slot.look(policies, writers, *quiet, now));
        waits.min().unwrap_or(LOOK_INTERVAL)
    }
}
