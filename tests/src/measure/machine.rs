//! The machine that is measured on, as a table names it.

use std::{fs, process::Command};

use anyhow::{Context, Result};

/// What a figure depends on beside the programs.
#[derive(Clone, Debug)]
pub struct Machine {
    /// How many cores this process may use.
    pub cores: usize,
    /// Model of the first.
    pub cpu: String,
    /// The kernel's release.
    pub kernel: String,
}

impl Machine {
    /// This one.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn here() -> Result<Self> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").context("/proc/cpuinfo")?;
        Ok(Self {
            cores: std::thread::available_parallelism()?.get(),
            cpu: model(&cpuinfo).unwrap_or("unnamed CPU").to_owned(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").context("the kernel's release")?.trim().to_owned(),
        })
    }
}

fn model(cpuinfo: &str) -> Option<&str> {
    cpuinfo.lines().find_map(|line| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim()))
}

/// What a program says of its version, from the first digit to the next space.
///
/// # Errors
/// When it does not start, or says nothing.
pub fn version(program: &str) -> Result<String> {
    let output =
        Command::new(program).arg("--version").output().with_context(|| format!("{program} does not start"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(number(&said).with_context(|| format!("{program} --version says {said:?}"))?.to_owned())
}

/// The day, as `2026-11-30`, in UTC.
///
/// # Errors
/// When the system does not tell.
pub fn today() -> Result<String> {
    let output = Command::new("date").args(["-u", "+%F"]).output().context("date does not start")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn number(said: &str) -> Option<&str> {
    let from = said.find(|character: char| character.is_ascii_digit())?;
    said.get(from..)?.split_whitespace().next()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_read_from_its_line() {
        assert_eq!(
            model("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nmodel name\t: other\n"),
            Some("AMD EPYC")
        );
        assert_eq!(model("processor\t: 0\n"), None);
    }

    #[test]
    fn a_version_is_what_begins_with_a_digit() {
        assert_eq!(number("v20.20.2\n"), Some("20.20.2"));
        assert_eq!(number("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0"), Some("7.0.15"));
        assert_eq!(number("none"), None);
    }

    #[test]
    fn this_machine_has_cores_and_a_kernel() {
        let machine = Machine::here().unwrap();
        assert!(machine.cores > 0 && !machine.kernel.is_empty());
    }
}
