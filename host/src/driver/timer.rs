//! The one timer of a machine. A step sets it only if it must ring earlier.
//!
//! The answer to a call nearly always removes the call's deadline, and a timer that is set for each call costs more than the call.
//! So the timer may ring for a deadline that is gone. It then finds nothing to do and sleeps until the next one.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use pointwork_core::Time;
use tokio::{sync::Notify, time::sleep};

/// The task is awake, so it must be told of every deadline.
const AWAKE: u64 = u64::MAX;

/// A machine's timer. One task waits for it.
pub(crate) struct Timer {
    earlier: Notify,
    /// What the task sleeps for, in microseconds of the machine's clock; [`AWAKE`] too while the machine has no deadline.
    sleeps_until: AtomicU64,
}

impl Timer {
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
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tokio::{
        task::{JoinHandle, yield_now},
        time::Instant,
    };

    use super::*;

    /// A machine that has nothing but a deadline, and when its timer rang.
    struct Rig {
        timer: Arc<Timer>,
        next: Arc<Mutex<Option<Time>>>,
        began: Instant,
        looks: Arc<Mutex<Vec<u64>>>,
    }

    impl Rig {
        fn new() -> Self {
            let (timer, next, looks) = (Arc::new(Timer::new()), Arc::default(), Arc::default());
            Self { timer, next, began: Instant::now(), looks }
        }

        async fn set(&self, ms: Option<u64>) {
            let next = ms.map(Time::from_millis);
            *self.next.lock() = next;
            self.timer.set(next);
            yield_now().await;
        }

        /// Runs until the deadline; gives the millisecond at which it rang.
        fn wait(&self) -> JoinHandle<u64> {
            let (timer, next, began, looks) = (self.timer.clone(), self.next.clone(), self.began, self.looks.clone());
            tokio::spawn(async move {
                let ms = || u64::try_from(began.elapsed().as_millis()).unwrap();
                let look = || {
                    looks.lock().push(ms());
                    *next.lock()
                };
                timer.due(look, || Time::from_millis(ms())).await;
                ms()
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rings_at_the_earliest_deadline() {
        let rig = Rig::new();
        let rung = rig.wait();
        yield_now().await;
        rig.set(Some(500)).await;
        rig.set(Some(200)).await;
        assert_eq!(rung.await.unwrap(), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn sleeps_on_when_deadlines_come_and_go() {
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
            *rig.looks.lock(),
            [0, 0, 300, 2_000],
            "at the start, for the first deadline, for that in vain, at the last"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn rings_for_a_deadline_set_before_the_wait() {
        let rig = Rig::new();
        rig.set(Some(5)).await;
        assert_eq!(rig.wait().await.unwrap(), 5);
    }
}
