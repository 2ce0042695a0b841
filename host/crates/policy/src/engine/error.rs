//! The reasons for which the engine does not start.

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
