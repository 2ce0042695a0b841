//! What another process of this machine has used: CPU time and memory.

use std::{collections::BTreeMap, fs, io::ErrorKind, path::Path, time::Duration};

use anyhow::{Context, Result, bail};

/// CPU time of each thread of a process, user and system, to the nanosecond: `/proc/PID/stat` counts in hundredths of a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads(BTreeMap<String, Duration>);

impl Threads {
    /// Since their start, as of now.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn of(pid: u32) -> Result<Self> {
        let folder = format!("/proc/{pid}/task");
        let mut threads = BTreeMap::new();
        for thread in fs::read_dir(&folder).with_context(|| folder.clone())? {
            let thread = thread.with_context(|| folder.clone())?;
            if let Some(used) = on_cpu(&thread.path().join("schedstat"))? {
                threads.insert(thread.file_name().to_string_lossy().into_owned(), used);
            }
        }
        Ok(Self(threads))
    }

    /// What they used after `earlier`. What a thread used that has ended in between is not in it: those are threads that had
    /// nothing to do.
    pub fn since(&self, earlier: &Self) -> Duration {
        let used = |(thread, now): (&String, &Duration)| {
            now.saturating_sub(earlier.0.get(thread).copied().unwrap_or_default())
        };
        self.0.iter().map(used).sum()
    }
}

/// `None` when the thread has ended.
fn on_cpu(path: &Path) -> Result<Option<Duration>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(nanoseconds(&text).with_context(|| path.display().to_string())?)),
        // ESRCH: it ended after the file was opened.
        Err(error) if error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(3) => Ok(None),
        Err(error) => bail!("{}: {error}", path.display()),
    }
}

/// The first of three numbers.
fn nanoseconds(schedstat: &str) -> Result<Duration> {
    let first = schedstat.split_whitespace().next().context("an empty schedstat")?;
    Ok(Duration::from_nanos(first.parse()?))
}

/// Memory of a process, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Resident.
    pub rss_kib: u64,
    /// Of that, what belongs to no file: heap and stacks. What is resident of programs and libraries comes and goes with others
    /// that run them.
    pub anonymous_kib: u64,
}

impl Memory {
    /// As it is now.
    ///
    /// # Errors
    /// When there is no such process, or it is somebody else's.
    pub fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = fs::read_to_string(&path).with_context(|| path.clone())?;
        Self::parse(&text).with_context(|| path)
    }

    fn parse(rollup: &str) -> Result<Self> {
        Ok(Self { rss_kib: kib(rollup, "Rss:")?, anonymous_kib: kib(rollup, "Anonymous:")? })
    }
}

fn kib(rollup: &str, name: &str) -> Result<u64> {
    let value = rollup.lines().find_map(|line| line.strip_prefix(name)?.strip_suffix("kB"));
    value.with_context(|| format!("no {name} in kB"))?.trim().parse().with_context(|| format!("{name} is no number"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const ROLLUP: &str = "\
55f1c1a00000-7ffd3b9fe000 ---p 00000000 00:00 0                          [rollup]
Rss:               27532 kB
Pss:               25113 kB
Pss_Dirty:         19000 kB
Pss_Anon:          18000 kB
Shared_Clean:       3000 kB
Anonymous:         18004 kB
AnonHugePages:      2048 kB
";

    #[test]
    fn memory_is_the_whole_of_the_rollup_and_not_a_part() {
        assert_eq!(Memory::parse(ROLLUP).unwrap(), Memory { rss_kib: 27_532, anonymous_kib: 18_004 });
        assert!(Memory::parse("Rss: 1 kB\nAnonHugePages: 1 kB\n").is_err());
        assert!(Memory::parse("Rss: 1 MB\nAnonymous: 1 kB\n").is_err());
    }

    #[test]
    fn the_time_on_the_cpu_is_the_first_number() {
        assert_eq!(nanoseconds("811000123 4000 17\n").unwrap(), Duration::from_nanos(811_000_123));
        assert!(nanoseconds("").is_err());
    }

    #[test]
    fn a_thread_that_ended_takes_nothing_from_the_others_and_a_new_one_counts_whole() {
        let threads = |used: &[(&str, u64)]| {
            Threads(used.iter().map(|(name, ms)| ((*name).to_owned(), Duration::from_millis(*ms))).collect())
        };
        let (before, after) = (threads(&[("1", 10), ("2", 500)]), threads(&[("1", 40), ("3", 5)]));
        assert_eq!(after.since(&before), Duration::from_millis(35));
    }

    #[test]
    fn this_process_has_memory_and_threads_whose_work_is_seen() {
        let pid = std::process::id();
        assert!(Memory::of(pid).unwrap().rss_kib > 0);
        let before = Threads::of(pid).unwrap();
        // Works for as long as it takes to be seen.
        while Threads::of(pid).unwrap().since(&before) < Duration::from_millis(20) {}
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        assert!(Threads::of(u32::MAX).is_err());
        assert!(Memory::of(u32::MAX).is_err());
    }
}
