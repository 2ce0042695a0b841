//! Makes sure that the toolchain can compile for wasm32-wasip2.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::workspace::Workspace;

const TARGET: &str = "wasm32-wasip2";

/// Does nothing when the target is installed. Otherwise asks rustup, and where rustup cannot fetch the target, builds it from
/// Debian's sources (`xtask/wasi-std.sh`). Errors when neither works; the script has then printed what to do.
pub(crate) fn ensure(workspace: &Workspace) -> Result<()> {
    let sysroot = command::output(Command::new("rustc").current_dir(&workspace.root).args(["--print", "sysroot"]))?;
    if present(Path::new(&sysroot)) {
        return Ok(());
    }
    println!("the toolchain lacks {TARGET}: rustup target add {TARGET}");
    let mut rustup = Command::new("rustup");
    rustup.current_dir(&workspace.root).args(["target", "add", TARGET]);
    match command::run(&mut rustup) {
        // rustup trusts its own books: it says "up to date" even when the files are gone, so look again.
        Ok(()) if present(Path::new(&sysroot)) => return Ok(()),
        Ok(()) => println!("rustup believes that {TARGET} is there, but its files are not"),
        Err(error) => println!("{error:#}"),
    }
    command::run(Command::new("bash").arg(workspace.root.join("xtask/wasi-std.sh")).arg(&sysroot))
        .with_context(|| format!("the toolchain at {sysroot} has no {TARGET}"))
}

/// The standard library and the C start files are both needed; a half-copied target has only one of them.
fn present(sysroot: &Path) -> bool {
    let library = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    let standard = std::fs::read_dir(&library).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libstd-") && name.ends_with(".rlib")
        })
    });
    standard && library.join("self-contained").is_dir()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_half_installed_target_is_absent() {
        let sysroot = std::env::temp_dir().join(format!("pointwork-target-{}", std::process::id()));
        let library = sysroot.join("lib/rustlib").join(TARGET).join("lib");
        assert!(!present(&sysroot));
        std::fs::create_dir_all(library.join("self-contained")).unwrap();
        assert!(!present(&sysroot));
        std::fs::write(library.join("libstd-0123456789abcdef.rlib"), "").unwrap();
        assert!(present(&sysroot));
        std::fs::remove_dir_all(library.join("self-contained")).unwrap();
        assert!(!present(&sysroot));
        std::fs::remove_dir_all(&sysroot).unwrap();
    }
}
