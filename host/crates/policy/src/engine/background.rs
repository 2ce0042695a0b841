//! One thread for work that must not delay a decision: freeing a lost instance, warming its successor.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

type Job = Box<dyn FnOnce() + Send>;

/// Jobs that may wait; beyond these they are dropped, for each is only an improvement.
const JOBS_MAX: usize = 64;

/// The thread ends once this is dropped and the jobs at hand are done. It is not joined: the last engine handle may be
/// dropped by a job itself.
pub(crate) struct Background {
    jobs: SyncSender<Job>,
}

impl Background {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (jobs, waiting): (_, Receiver<Job>) = sync_channel(JOBS_MAX);
        Builder::new().name("policy-background".into()).spawn(move || waiting.iter().for_each(|job| job()))?;
        Ok(Self { jobs })
    }

    /// Hands a job over, or drops it at once when too many wait.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        // An error gives the job back; dropping it is what is promised.
        let _ = self.jobs.try_send(Box::new(job));
    }
}
