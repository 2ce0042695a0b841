//! Implements the host functions of the sandbox: the part of WASI 0.2 that the Rust standard library always imports.
//!
//! Nothing here waits, because a guest is called on an async worker thread: blocking there, as wasmtime-wasi's
//! synchronous streams do, would panic the host's task. Output goes to memory, input is closed, and time stands still.

mod cli;
mod clocks;
mod io;
mod random;

use crate::sandbox::{Sandbox, bindings};
use wasmtime::component::{HasSelf, Linker};

/// The interfaces that a policy may import, without versions; `types` has no functions. `wit/sandbox.wit` has the rest.
const ALLOWED: [&str; 19] = [
    "pointwork:policy/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
];

/// Whether a policy may import an interface of this name, as in `wasi:io/poll@0.2.6`.
pub(crate) fn is_allowed(import: &str) -> bool {
    let Some((interface, version)) = import.split_once('@') else {
        return false;
    };
    let is_wasi = interface.starts_with("wasi:");
    ALLOWED.contains(&interface) && (!is_wasi || version.starts_with("0.2."))
}

/// Adds the host functions to a linker.
pub(crate) fn link(linker: &mut Linker<Sandbox>) -> wasmtime::Result<()> {
    bindings::Sandbox::add_to_linker::<_, HasSelf<Sandbox>>(linker, |sandbox| sandbox)
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn allows_only_the_imports_of_the_standard_library() {
        assert!(is_allowed("wasi:io/streams@0.2.6"));
        assert!(is_allowed("pointwork:policy/types@0.1.0"));
        for forbidden in [
            "wasi:sockets/tcp@0.2.6",
            "wasi:filesystem/types@0.2.6",
            "wasi:http/outgoing-handler@0.2.0",
            "wasi:io/streams@0.3.0",
            "wasi:io/streams",
            "env",
        ] {
            assert!(!is_allowed(forbidden), "{forbidden}");
        }
    }
}
