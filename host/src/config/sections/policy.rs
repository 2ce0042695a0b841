//! `[policy]`: where the policies are and what they are given.

use std::path::{Path, PathBuf};

use pointwork_policy::{BREAKER_FAILURES, BREAKER_WINDOW_MS, PolicyJson};
use serde::{Deserialize, Serialize};

use super::records::RecordsConfig;
use crate::config::values::bounded::Bounded;
use crate::config::values::section::section;
use crate::config::values::text;

/// The slots, by the names of their tables.
pub(in crate::config) const SLOTS: [&str; 4] = ["target", "grace", "presence", "settle"];

section! {
    /// The policy directory and the four slots.
    pub struct PolicyConfig {
        /// The directory that policy files are in; without it the native rules answer everything.
        #[serde(default, deserialize_with = "text::non_empty")]
        pub dir: Option<PathBuf> = None,
        /// Whether changed files are loaded while the host serves.
        pub watch: bool = true,
        /// How long a file must have been unchanged before it is loaded, in milliseconds.
        pub quiet_ms: Bounded<1, 60_000> = Bounded::literal::<40>(),
        /// With so many failures of one generation within `breaker_window_ms` the last good one is back.
        pub breaker_failures: Bounded<1, 10_000> = Bounded::literal::<BREAKER_FAILURES>(),
        /// By the moments of the questions, in milliseconds.
        pub breaker_window_ms: Bounded<1, 86_400_000> = Bounded::literal::<BREAKER_WINDOW_MS>(),
        /// Where the last good policies and the quarantine are kept over a restart; without it nowhere.
        #[serde(default, deserialize_with = "text::non_empty")]
        pub state_dir: Option<PathBuf> = None,
        /// What is kept of decisions.
        pub records: RecordsConfig = RecordsConfig::default(),
        /// Who says what serves.
        pub source: PolicySource = PolicySource::Directory,
        /// After how long a push that not every replica has answered fails, in milliseconds.
        pub rollout_timeout_ms: Bounded<1_000, 600_000> = Bounded::literal::<30_000>(),
        /// Which daemon gets a call.
        pub target: SlotConfig = SlotConfig::named("target"),
        /// How long a call waits for a daemon.
        pub grace: SlotConfig = SlotConfig::named("grace"),
        /// When a call in flight is given up.
        pub presence: SlotConfig = SlotConfig::named("presence"),
        /// Which of two sockets holds a device's session.
        pub settle: SlotConfig = SlotConfig::named("settle"),
    }
}

/// Who says what serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicySource {
    /// What lies in `policy.dir`.
    Directory,
    /// The pointers in Redis, which `pointwork policy push` moves; `policy.dir` is not read.
    Cluster,
}

impl PolicySource {
    /// As in the settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Cluster => "cluster",
        }
    }
}

impl PolicyConfig {
    /// Whether a slot's file is another one than its own.
    pub fn names_files(&self) -> bool {
        let slots = [&self.target, &self.grace, &self.presence, &self.settle];
        SLOTS.iter().zip(slots).any(|(slot, settings)| settings.file != SlotConfig::named(slot).file)
    }
}

/// One slot's policy and its limits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotConfig {
    /// The policy's file, relative to `policy.dir`.
    pub file: PolicyFile,
    /// What the policy's `configure` is given.
    pub config: PolicyJson,
    /// How long one decision may take, in milliseconds.
    pub deadline_ms: Bounded<1, 1_000>,
    /// How much memory one instance may use, in MiB.
    pub memory_mib: Bounded<1, 1_024>,
}

impl SlotConfig {
    /// Where the policy's file is.
    pub fn path(&self, dir: &Path) -> PathBuf {
        dir.join(&self.file.0)
    }

    fn named(slot: &str) -> Self {
        Self {
            file: PolicyFile(PathBuf::from(format!("{slot}.wasm"))),
            config: PolicyJson::default(),
            deadline_ms: Bounded::literal::<4>(),
            memory_mib: Bounded::literal::<16>(),
        }
    }
}

/// The path of a policy's file, relative to `policy.dir` or absolute; it ends in a file name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct PolicyFile(PathBuf);

impl TryFrom<String> for PolicyFile {
    type Error = String;

    fn try_from(path: String) -> Result<Self, String> {
        let path = PathBuf::from(path);
        match path.file_name() {
            Some(_) => Ok(Self(path)),
            None => Err(format!("must name a file, not `{}`", path.display())),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn default_files_are_named_after_their_slots() {
        let PolicyConfig { target, grace, presence, settle, .. } = PolicyConfig::default();
        let paths = [target, grace, presence, settle].map(|slot| slot.path(Path::new("p")));
        let expected = ["p/target.wasm", "p/grace.wasm", "p/presence.wasm", "p/settle.wasm"];
        assert_eq!(paths, expected.map(PathBuf::from));
    }

    #[test]
    fn a_file_has_a_name() {
        for wrong in ["", "/", "..", "a/.."] {
            assert!(serde_json::from_value::<PolicyFile>(wrong.into()).is_err(), "{wrong}");
        }
    }
}
