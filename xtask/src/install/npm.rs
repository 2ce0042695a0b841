//! Installs the npm packages of the Node tests, as their lock file says.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use fs_err as fs;

use crate::command;

/// Runs `npm ci` in the folder, unless the installed packages are those of the lock file. Errors when npm does.
pub(crate) fn ensure(folder: &Path) -> Result<()> {
    // A copy of the lock file as it was when `npm ci` last ended well.
    let installed = folder.join("node_modules/.pointwork-lock.json");
    let lock = fs::read(folder.join("package-lock.json"))?;
    if fs::read(&installed).is_ok_and(|bytes| bytes == lock) {
        return Ok(());
    }
    command::run(Command::new("npm").current_dir(folder).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    fs::write(installed, lock)?;
    Ok(())
}
