//! Runs other programs. An error names the command that failed.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs the command with the terminal's output. Errors when it cannot be started or exits with anything but 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", shown(command));
    }
    Ok(())
}

/// Runs the command and gives its trimmed stdout; its stderr goes to the terminal. Errors as [`run`].
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        bail!("{} failed ({})", shown(command), output.status);
    }
    let text = String::from_utf8(output.stdout).with_context(|| format!("{} did not print text", shown(command)))?;
    Ok(text.trim().to_owned())
}

/// Whether a program is installed and answers `--version`.
pub(crate) fn present(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Whether this runs as root, which may install packages.
pub(crate) fn is_root() -> Result<bool> {
    Ok(output(Command::new("id").arg("-u"))? == "0")
}

/// Installs a Debian package. Errors with the command to run where that cannot be done from here.
pub(crate) fn apt_install(package: &str) -> Result<()> {
    if !is_root()? || !present("apt-get") {
        bail!("{package} is missing; install it: apt-get update && apt-get install -y {package}");
    }
    println!("{package} is missing: apt-get install {package}");
    // Without the recommended packages and without starting the service: tests start their own, on free ports.
    run(Command::new("apt-get").args(["-qq", "update"]))?;
    run(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1").args([
        "-qq",
        "install",
        "-y",
        "--no-install-recommends",
        package,
    ]))
}

fn shown(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|part| part.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
