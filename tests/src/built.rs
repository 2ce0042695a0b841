//! What was built: the policies and guests of `cargo xtask policies`, and where.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};

/// The bytes of a policy of `policies/`, such as `target-first`.
///
/// # Errors
/// When it was not built; the error says how to.
pub fn policy(name: &str) -> Result<Vec<u8>> {
    read("policies", name)
}

/// The bytes of a guest of `tests/guests/`, such as `hostile`.
///
/// # Errors
/// When it was not built; the error says how to.
pub fn guest(name: &str) -> Result<Vec<u8>> {
    read("guests", name)
}

/// The folder that cargo builds to.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from)
}

fn read(folder: &str, name: &str) -> Result<Vec<u8>> {
    let path = target().join(folder).join(name).with_extension("wasm");
    fs::read(&path).with_context(|| format!("{} is not built: cargo xtask policies", path.display()))
}
