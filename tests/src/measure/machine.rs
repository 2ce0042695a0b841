//! The machine that is measured on, as a table names it.

use std::{fs, process::Command};

use anyhow::{Context, Result, bail};

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

/// What the machine has done since it was started, in ticks of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    all: u64,
    idle: u64,
    /// Of this process and those it started that have ended.
    own: u64,
}

impl Ticks {
    /// As of now.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn now() -> Result<Self> {
        let machine = fs::read_to_string("/proc/stat").context("/proc/stat")?;
        let own = fs::read_to_string("/proc/self/stat").context("/proc/self/stat")?;
        Self::parse(&machine, &own).context("/proc/stat and /proc/self/stat")
    }

    /// The share of the machine, 0 to 1, that other programs took after `earlier`; other machines on the same hardware are among them.
    #[expect(clippy::cast_precision_loss, reason = "ticks of some minutes are exact")]
    pub fn others_since(self, earlier: Self) -> f64 {
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let (all, idle) = (since(self.all, earlier.all), since(self.idle, earlier.idle));
        let others = all.saturating_sub(idle + since(self.own, earlier.own));
        others as f64 / all.max(1) as f64
    }

    fn parse(machine: &str, own: &str) -> Result<Self> {
        // user nice system idle iowait irq softirq steal; what guests had is in the first two already.
        let cpu = machine.lines().next().and_then(|line| line.strip_prefix("cpu ")).context("no line of all cores")?;
        let ticks = numbers(cpu)?;
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else { bail!("too few numbers") };
        // The name before may have spaces and brackets; the times are the 14th to the 17th field, and state the third.
        let (_, fields) = own.rsplit_once(") ").context("no name")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let times = fields.get(11..15).context("too few fields")?.join(" ");
        Ok(Self {
            all: user + nice + system + idle + iowait + irq + softirq + steal,
            idle: idle + iowait,
            own: numbers(&times)?.iter().sum(),
        })
    }
}

fn numbers(text: &str) -> Result<Vec<u64>> {
    Ok(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
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
    fn what_others_took_is_neither_idle_nor_own() {
        let own = |times: &str| {
            format!("7 (a (strange) name) S 1 7 7 0 -1 4194560 100 200 0 0 {times} 20 0 4 0 5000 1000 10\n")
        };
        let before = Ticks::parse("cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 1 2 3\n", &own("1 2 3 4")).unwrap();
        let after = Ticks::parse("cpu  40 5 30 100 10 5 5 5 30 0\n", &own("11 12 3 14")).unwrap();
        assert_eq!(before, Ticks { all: 100, idle: 80, own: 10 });
        // Of 100 ticks 30 were idle, 30 its own.
        assert!((after.others_since(before) - 0.4).abs() < 1e-9);
        assert!(Ticks::parse("cpu0 1 2 3 4 5 6 7 8\n", &own("1 2 3 4")).is_err());
        assert!(Ticks::now().unwrap().all > 0);
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
