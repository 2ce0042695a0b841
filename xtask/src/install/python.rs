//! Installs Python packages into a virtual environment.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use fs_err as fs;

use crate::command;

/// Gives the environment's `bin`. Creates the environment again when `requirements` has changed since pip last succeeded. Errors when
/// Python cannot create environments, or when pip cannot get a package.
pub(crate) fn environment(folder: &Path, requirements: &Path, options: &[&str]) -> Result<PathBuf> {
    let (bin, installed) = (folder.join("bin"), folder.join("installed.txt"));
    let wanted = fs::read(requirements)?;
    if fs::read(&installed).is_ok_and(|bytes| bytes == wanted) {
        return Ok(bin);
    }
    let make = || command::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder));
    if make().is_err() {
        command::apt_install("python3-venv")?;
        make()?;
    }
    let mut pip = Command::new(bin.join("pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(options);
    command::run(pip.arg("-r").arg(requirements))?;
    fs::write(installed, wanted)?;
    Ok(bin)
}
