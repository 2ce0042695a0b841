//! Sets up the wasm engine of the process: compiler settings, the clock of deadlines, and what guests may link to.

mod background;
mod ticker;

use crate::sandbox::{Sandbox, wasi};
use background::Background;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wasmtime::Config;
use wasmtime::component::Linker;

/// Native stack of a guest; a worker thread of an async runtime has 2 MiB in all.
const STACK_BYTES: usize = 512 * 1024;

/// The wasm engine: one per process. A clone is another handle to it; its threads end with the last one.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<EngineInner>,
}

struct EngineInner {
    linker: Linker<Sandbox>,
    background: Background,
    decisions: AtomicU64,
}

impl Engine {
    /// Starts the engine and its two threads.
    ///
    /// # Errors
    /// If wasmtime does not support this machine, or a thread cannot be started.
    pub fn new() -> Result<Self, EngineError> {
        let engine = wasmtime::Engine::new(&settings())?;
        let mut linker = Linker::new(&engine);
        wasi::link(&mut linker)?;
        ticker::start(&engine)?;
        let inner = EngineInner { linker, background: Background::start()?, decisions: AtomicU64::new(0) };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub(crate) fn wasmtime(&self) -> &wasmtime::Engine {
        self.inner.linker.engine()
    }

    pub(crate) fn linker(&self) -> &Linker<Sandbox> {
        &self.inner.linker
    }

    /// The id of one more decision, of any slot.
    pub(crate) fn next_decision(&self) -> u64 {
        self.inner.decisions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Runs work in the background that must not delay a decision, or drops it if too much of it waits already.
    pub(crate) fn run_later(&self, job: impl FnOnce() + Send + 'static) {
        self.inner.background.run(job);
    }
}

/// Why the engine does not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime refused the settings on this machine, or an interface could not be linked.
    #[error("the wasm engine cannot start: {0}")]
    Wasmtime(String),
    /// One of the engine's threads could not be started.
    #[error("a thread of the wasm engine cannot start: {0}")]
    Thread(#[from] std::io::Error),
}

impl From<wasmtime::Error> for EngineError {
    fn from(error: wasmtime::Error) -> Self {
        Self::Wasmtime(format!("{error:#}"))
    }
}

fn settings() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        .max_wasm_stack(STACK_BYTES)
        // The same input gives the same answer on every replica, whatever its processor.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        // A trap's backtrace names functions; offsets into the code would only cost memory.
        .generate_address_map(false);
    config
}
