//! Limits the connections to what the limit of open files allows.

/// Files that the rest of the host may need: Redis, policies, records, the connections of the admin listener.
const OTHER_FILES: u64 = 512;

/// The setting, or less if the process may not open as many files: beyond that limit every accept fails. 0 means as many as possible.
pub(super) fn connections_max(set: usize) -> usize {
    let Ok(files) = rlimit::Resource::NOFILE.get_soft() else {
        return if set == 0 { usize::MAX } else { set };
    };
    let left = usize::try_from(files.saturating_sub(OTHER_FILES).max(files / 2)).unwrap_or(usize::MAX);
    if set > left {
        tracing::warn!(
            set,
            files,
            max = left,
            "listen.connections_max is above what the limit of open files leaves (ulimit -n), which counts in its place"
        );
    }
    if set == 0 { left } else { set.min(left) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn never_exceeds_the_limit_of_open_files() {
        let files = usize::try_from(rlimit::Resource::NOFILE.get_soft().unwrap()).unwrap();
        assert!(connections_max(0) < files && connections_max(usize::MAX) == connections_max(0));
        assert_eq!(connections_max(7), 7);
    }
}
