//! Watches the policy directory on a thread of its own, and loads the files that have changed.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use pointwork_policy::{Digest, SlotName};

use super::{
    slot_files::{CHECK_INTERVAL, SlotFiles},
    writers::Writers,
};
use crate::{
    config::{PolicyConfig, PolicySource},
    policies::slots::Policies,
};

enum WatchSignal {
    Event(notify::Result<notify::Event>),
    Reload(SlotName, Digest, mpsc::SyncSender<()>),
    Close,
}

/// Asks the directory's thread to load files again that were refused before.
#[derive(Clone)]
pub struct Reloads(mpsc::Sender<WatchSignal>);

impl Reloads {
    /// Loads a slot's files again if they are still this generation, and waits until that is done: do not call it on an async
    /// worker. Does nothing without a directory.
    pub fn reload(&self, slot: SlotName, digest: Digest) {
        let (done, waiting) = mpsc::sync_channel(1);
        if self.0.send(WatchSignal::Reload(slot, digest, done)).is_ok() {
            // An error means that the directory's thread has ended.
            let _ = waiting.recv();
        }
    }
}

/// A watched policy directory. Loads happen on a thread of its own.
pub struct PolicyDir {
    signals: mpsc::Sender<WatchSignal>,
    _watcher: Option<RecommendedWatcher>,
}

impl PolicyDir {
    /// Loads the files that are there and then watches the directory. A policy that cannot be loaded does not prevent the start:
    /// the native rule serves, and the slot's status says why. Does nothing without `policy.dir`.
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
        let mut watch = DirectoryWatch {
            quiet: settings.quiet_ms.as_millis(),
            slots: SlotFiles::of(settings, dir),
            policies,
            writers: Writers::default(),
            is_watching: settings.watch,
        };
        // The watcher starts first, so that a change during the first load is not missed.
        let watcher = if settings.watch { Some(watcher(dir, &watch.slots, signals.clone())?) } else { None };
        watch.load_at_start();
        thread::Builder::new().name("policy-dir".into()).spawn(move || watch.run(&received))?;
        Ok(Self { signals, _watcher: watcher })
    }

    /// Lets an operator load a file again.
    pub fn reloads(&self) -> Reloads {
        Reloads(self.signals.clone())
    }

    /// Stops watching. Does not wait for a load under way, because the file system may hang.
    pub fn close(self) {
        let _ = self.signals.send(WatchSignal::Close);
    }
}

fn watcher(dir: &Path, slots: &[SlotFiles], signals: mpsc::Sender<WatchSignal>) -> anyhow::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event| {
        let _ = signals.send(WatchSignal::Event(event));
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

/// The state of the directory's thread.
struct DirectoryWatch {
    slots: Vec<SlotFiles>,
    policies: Arc<Policies>,
    writers: Writers,
    quiet: Duration,
    /// Whether files are checked without a request of an operator.
    is_watching: bool,
}

impl DirectoryWatch {
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

    fn run(mut self, received: &mpsc::Receiver<WatchSignal>) {
        let mut wait = CHECK_INTERVAL;
        loop {
            match received.recv_timeout(wait) {
                Ok(WatchSignal::Event(Ok(event))) => self.writers.note(&event, Instant::now()),
                Ok(WatchSignal::Reload(slot, digest, done)) => {
                    self.reload(slot, &digest);
                    // The operator's request may have ended.
                    let _ = done.send(());
                }
                Ok(WatchSignal::Event(Err(error))) => tracing::warn!(%error, "watching the policy directory"),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Ok(WatchSignal::Close) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            wait = if self.is_watching { self.check(Instant::now()) } else { CHECK_INTERVAL };
        }
    }

    /// Checks every slot's files and loads those that have changed and settled. Returns when to check again.
    fn check(&mut self, now: Instant) -> Duration {
        let Self { slots, policies, writers, quiet, .. } = self;
        let waits = slots.iter_mut().filter_map(|slot| slot.check(policies, writers, *quiet, now));
        waits.min().unwrap_or(CHECK_INTERVAL)
    }
}
