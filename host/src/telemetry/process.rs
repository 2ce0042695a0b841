//! The resources of the process, with the usual metric names. They are read from `/proc` at each scrape. Without `/proc` they are 0.

use std::{
    fs,
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use super::metrics_page::MetricsPage;

/// Linux reports processor time in hundredths of a second, independent of its internal ticks.
const TICKS_PER_SECOND: f64 = 100.0;

static STARTED_SECONDS: OnceLock<f64> = OnceLock::new();

/// Notes the start time of the process.
pub(super) fn begin() {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let _ = STARTED_SECONDS.set(since.as_secs_f64());
}

pub(super) fn expose(page: &mut MetricsPage) {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let status = read("/proc/self/status");
    // One of them is this directory itself.
    let files = fs::read_dir("/proc/self/fd").map_or(0, |open| open.count().saturating_sub(1));
    page.single("process_cpu_seconds_total", cpu_seconds(&read("/proc/self/stat")).unwrap_or_default());
    page.single("process_resident_memory_bytes", kib(&status, "VmRSS:").unwrap_or_default() * 1_024.0);
    page.single("process_virtual_memory_bytes", kib(&status, "VmSize:").unwrap_or_default() * 1_024.0);
    page.single("process_threads", kib(&status, "Threads:").unwrap_or_default());
    page.single("process_open_fds", files as f64);
    page.single("process_max_fds", files_max(&read("/proc/self/limits")).unwrap_or_default());
    page.single("process_start_time_seconds", STARTED_SECONDS.get().copied().unwrap_or_default());
}

/// From `/proc/self/stat`.
fn cpu_seconds(stat: &str) -> Option<f64> {
    // The second field is the program's name in brackets, and may hold anything; 14 and 15 are the time in user and kernel mode.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

/// A number of `/proc/self/status`; memory is in KiB there.
fn kib(status: &str, name: &str) -> Option<f64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// From `/proc/self/limits`.
fn files_max(limits: &str) -> Option<f64> {
    let rest = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match rest.split_ascii_whitespace().next()? {
        "unlimited" => Some(f64::INFINITY),
        soft => soft.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_time_after_any_program_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 7 0 100";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds("42 (cut"), None);
        assert_eq!(cpu_seconds("42 (short) S 1"), None);
    }

    #[test]
    fn reads_the_status_and_the_limits() {
        let status = "Name:\tVmRSS: 1\nVmRSS:\t    1234 kB\nThreads:\t7\n";
        assert_eq!(
            (kib(status, "VmRSS:"), kib(status, "Threads:"), kib(status, "VmSize:")),
            (Some(1_234.0), Some(7.0), None)
        );
        assert_eq!(files_max("Limit  Soft Limit\nMax open files            1024      4096   files\n"), Some(1_024.0));
        assert_eq!(files_max("Max open files            unlimited unlimited files"), Some(f64::INFINITY));
        assert_eq!(files_max("nothing of the kind"), None);
    }
}
