//! Checks the systemd unit with systemd.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use crate::command;
use crate::workspace::Workspace;

/// systemd's exposure level times ten, from 0 (safe) to 100. The unit's level is 13.
const EXPOSURE_MAX: u32 = 20;

/// Errors when systemd does not understand the unit, when the unit runs something else than the host, or when it is too open.
/// Prints that it is skipped where systemd is missing and cannot be installed.
pub(super) fn check(workspace: &Workspace) -> Result<()> {
    if !command::present("systemd-analyze") {
        if !command::is_root()? {
            println!("skipped, the unit: systemd-analyze is missing (Debian: apt-get install systemd)");
            return Ok(());
        }
        command::apt_install("systemd")?;
    }
    let unit = fs::read_to_string(workspace.root.join("deploy/systemd/pointwork.service"))?;
    judge(workspace, &unit).context("deploy/systemd/pointwork.service")?;
    // Each with something in it that systemd, or its measure, must not let pass.
    for (from, to) in [
        ("Restart=always", "Restart=sometimes"),
        ("Type=exec", "Typ=exec"),
        ("pointwork serve", "pointwork-that-is-not-there serve"),
        (
            "ProtectSystem=strict\n",
            "ProtectSystem=no\nUser=root\nDynamicUser=no\nPrivateUsers=no\nCapabilityBoundingSet=~\n",
        ),
    ] {
        ensure!(unit.contains(from), "the unit has no {from} to break");
        ensure!(judge(workspace, &unit.replacen(from, to, 1)).is_err(), "a unit with {to} passed");
    }
    Ok(())
}

/// Checks the unit with the path of this build's program, because systemd looks for the program.
fn judge(workspace: &Workspace, unit: &str) -> Result<()> {
    let file = workspace.deploy_scratch()?.join("pointwork.service");
    fs::write(&file, unit.replace("/usr/local/bin/pointwork", &workspace.host().display().to_string()))?;
    let said = Command::new("systemd-analyze").arg("verify").arg(&file).output().context("systemd-analyze")?;
    // Of an unknown name it only warns.
    let warnings = String::from_utf8_lossy(&said.stderr);
    let warnings: Vec<_> = warnings.lines().filter(|line| line.contains("pointwork")).collect();
    if !said.status.success() || !warnings.is_empty() {
        bail!("systemd-analyze verify: {}\n{}", said.status, warnings.join("\n"));
    }
    let mut security = Command::new("systemd-analyze");
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let said = security.args(["security", "--no-pager", "--offline=true", &threshold]).arg(&file).output()?;
    if !said.status.success() {
        let text = String::from_utf8_lossy(&said.stdout);
        bail!("systemd-analyze security: {}", text.lines().last().unwrap_or_default());
    }
    Ok(())
}
