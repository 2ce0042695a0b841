//! The one timer of a machine, which is left alone by every step that does not need it to ring earlier.
//!
//! A call's deadline is nearly always taken back by its answer: a timer that were set anew for each would cost more than the call.
//! So it goes on sleeping for a deadline that is no more, finds nothing to do then, and sleeps for the next.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use pointwork_core::Time;
use tokio::{sync::Notify, time::sleep};

/// Whoever is not asleep must be told of every deadline.
const AWAKE: u64 = u64::MAX;

/// A machine's timer. One task waits for it.
pub(crate) struct Alarm {
    earlier: Notify,
    /// What the task sleeps for, in microseconds of the machine's clock; [`AWAKE`] too while the machine has no deadline.
    sleeps_until: AtomicU64,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self { earlier: Notify::new(), sleeps_until: AtomicU64::new(AWAKE) }
    }

    /// A step of the machine left it with this deadline as its next. Called after the step's lock was let go, or under it.
    pub(crate) fn set(&self, next: Option<Time>) {
        if next.is_some_and(|next| next.as_micros() < self.sleeps_until.load(Ordering::SeqCst)) {
            self.earlier.notify_one();
        }
    }

    /// Waits until the machine's next deadline has come.
    pub(crate) async fn due(&self, next: impl Fn() -> Option<Time>, now: impl Fn() -> Time) {
        loop {
            // Before the machine is looked at: a step that the look does not see yet finds this, or what follows from the look.
            self.sleeps_until.store(AWAKE, Ordering::SeqCst);
            let Some(next) = next() else {
                self.earlier.notified().await;
                continue;
            };
            let left = next.saturating_since(now());
            if left == Duration::ZERO {
                return;
            }
            self.sleeps_until.store(next.as_micros(), Ordering::SeqCst);
            tokio::select! { () = sleep(left) => {}, () = self.earlier.notified() => {} }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::{
        task::{JoinHandle, yield_now},
        time::Instant,
    };

    use super::*;
    use crate::lock::lock;

    /// A machine that has nothing but a deadline, and when its alarm rang.
    struct Rig {
        alarm: Arc<Alarm>,
        next: Arc<Mutex<Option<Time>>>,
        began: Instant,
        looks: Arc<Mutex<Vec<u64>>>,
    }

    impl Rig {
        fn new() -> Self {
            let (alarm, next, looks) = (Arc::new(Alarm::new()), Arc::default(), Arc::default());
            Self { alarm, next, began: Instant::now(), looks }
        }

        async fn set(&self, ms: Option<u64>) {
            let next = ms.map(Time::from_millis);
            *lock(&self.next) = next;
            self.alarm.set(next);
            yield_now().await;
        }

        /// Runs until the deadline; gives the millisecond at which it rang.
        fn wait(&self) -> JoinHandle<u64> {
            let (alarm, next, began, looks) = (self.alarm.clone(), self.next.clone(), self.began, self.looks.clone());
            tokio::spawn(async move {
                let ms = || u64::try_from(began.elapsed().as_millis()).unwrap();
                let look = || {
                    lock(&looks).push(ms());
                    *lock(&next)
                };
                alarm.due(look, || Time::from_millis(ms())).await;
                ms()
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_rings_at_the_earliest_deadline() {
        let rig = Rig::new();
        let rung = rig.wait();
        yield_now().await;
        rig.set(Some(500)).await;
        rig.set(Some(200)).await;
        assert_eq!(rung.await.unwrap(), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_that_come_and_go_leave_it_asleep() {
        let rig = Rig::new();
        let rung = rig.wait();
        yield_now().await;
        for later in 0..1_000 {
            rig.set(Some(300 + later)).await;
            rig.set(None).await;
        }
        rig.set(Some(2_000)).await;
        assert_eq!(rung.await.unwrap(), 2_000);
        assert_eq!(
            *lock(&rig.looks),
            [0, 0, 300, 2_000],
            "at the start, for the first deadline, for that in vain, at the last"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_before_anybody_waits_is_not_missed() {
        let rig = Rig::new();
        rig.set(Some(5)).await;
        assert_eq!(rig.wait().await.unwrap(), 5);
    }
}
