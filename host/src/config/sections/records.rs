//! `[policy.records]`: what is kept of the policies' decisions, and where.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::values::bounded::Bounded;
use crate::config::values::section::section;
use crate::config::values::text;

section! {
    /// Decision records: in memory, in files, in a Redis stream.
    pub struct RecordsConfig {
        /// How many decisions of each slot are kept in memory; 0 for none.
        pub ring: Bounded<0, 1_000_000> = Bounded::literal::<1_000>(),
        /// The file that decisions are written to, one JSON object a line; without it, to none.
        #[serde(default, deserialize_with = "text::non_empty")]
        pub file: Option<PathBuf> = None,
        /// How large a file grows before the next one is begun, in MiB.
        pub file_mib: Bounded<1, 65_536> = Bounded::literal::<64>(),
        /// How many files there are: the one that is written and, with `.1` and so on after its name, those before it.
        pub files: Bounded<1, 1_000> = Bounded::literal::<4>(),
        /// Whether decisions are written to a Redis stream.
        pub stream: bool = false,
        /// About how many decisions the stream keeps.
        pub stream_max: Bounded<1, 1_000_000_000> = Bounded::literal::<100_000>(),
        /// The share of decisions that are written to the file and the stream.
        pub sample: Share = Share::ALL,
    }
}

/// A share, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64")]
pub struct Share(f64);

impl Share {
    /// All of it.
    pub(in crate::config) const ALL: Self = Self(1.0);

    /// `None` when `value` is not from 0 to 1.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// Whether a point of 64 evenly spread bits lies within the share.
    pub(crate) fn holds(self, point: u64) -> bool {
        // The upper 53 bits are exact as a fraction, and always below 1.
        ((point >> 11) as f64) < self.0 * (1_u64 << 53) as f64
    }
}

impl TryFrom<f64> for Share {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        Self::new(value).ok_or_else(|| format!("must be a share from 0 to 1, not {value}"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_share_holds_its_fraction_of_points() {
        let held = |share: f64| {
            let share = Share::new(share).unwrap();
            (0..1_000_u64).filter(|step| share.holds(step * (u64::MAX / 1_000))).count()
        };
        assert_eq!((held(0.0), held(1.0)), (0, 1_000));
        assert!((249..=251).contains(&held(0.25)));
        assert!(Share::new(1.0).unwrap().holds(u64::MAX));
        assert!(!Share::new(0.0).unwrap().holds(0));
        for wrong in [-0.1, 1.1, f64::NAN] {
            assert_eq!(Share::new(wrong), None);
        }
    }
}
