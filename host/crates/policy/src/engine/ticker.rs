//! Runs the clock of deadlines: one epoch is one millisecond.

use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};
use wasmtime::EngineWeak;

const TICK: Duration = Duration::from_millis(1);

/// Starts a thread that advances the engine's epoch every millisecond until the engine is dropped.
pub(super) fn start(engine: &wasmtime::Engine) -> std::io::Result<()> {
    let engine = engine.weak();
    Builder::new().name("policy-ticker".into()).spawn(move || tick(&engine))?;
    Ok(())
}

fn tick(engine: &EngineWeak) {
    let mut next = Instant::now() + TICK;
    while let Some(engine) = engine.upgrade() {
        engine.increment_epoch();
        drop(engine);
        sleep(next.saturating_duration_since(Instant::now()));
        // Late wake-ups do not add up, and ticks that were missed in a pause are not made up for.
        next = (next + TICK).max(Instant::now());
    }
}
