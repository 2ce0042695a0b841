//! Runs work on one thread that must not delay a decision: freeing a lost instance, warming its successor.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

type Job = Box<dyn FnOnce() + Send>;

/// How many jobs may wait. More are dropped: no job is necessary.
const JOBS_MAX: usize = 64;

/// The thread ends once this is dropped and the waiting jobs are done. It is not joined, because a job itself may drop
/// the last engine handle.
pub(super) struct Background {
    jobs: SyncSender<Job>,
}

impl Background {
    pub(super) fn start() -> std::io::Result<Self> {
        let (jobs, waiting): (_, Receiver<Job>) = sync_channel(JOBS_MAX);
        Builder::new().name("policy-background".into()).spawn(move || waiting.iter().for_each(|job| job()))?;
        Ok(Self { jobs })
    }

    /// Queues a job, or drops it if too many wait.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        // An error gives the job back, and it is dropped here.
        let _ = self.jobs.try_send(Box::new(job));
    }
}
