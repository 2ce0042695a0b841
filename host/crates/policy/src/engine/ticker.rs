//! Runs the clock of deadlines: one epoch is one millisecond.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(1);

/// A thread that advances the engine's epoch every millisecond until it is dropped.
pub(super) struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(super) fn start(engine: &wasmtime::Engine) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let engine = engine.clone();
        let thread = Builder::new().name("policy-ticker".into()).spawn(move || tick(&engine, &stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It fails only if the thread panicked, and then there is nothing left to do.
            let _ = thread.join();
        }
    }
}

fn tick(engine: &wasmtime::Engine, stopped: &Receiver<()>) {
    let mut next = Instant::now() + TICK;
    while stopped.recv_timeout(next.saturating_duration_since(Instant::now())) == Err(RecvTimeoutError::Timeout) {
        engine.increment_epoch();
        // Late wake-ups do not add up, and ticks that were missed in a pause are not made up for.
        next = (next + TICK).max(Instant::now());
    }
}
