//! Counts what happened by name. A simulation that never reaches something proves nothing about it.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Counts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<Cow<'static, str>, u64>);

impl Counts {
    pub(crate) fn count(&mut self, what: impl Into<Cow<'static, str>>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    /// Adds what another one counted.
    pub fn add(&mut self, other: &Counts) {
        for (what, count) in &other.0 {
            *self.0.entry(what.clone()).or_default() += count;
        }
    }

    /// How often something happened.
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }

    /// Everything that happened, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(what, count)| (&**what, *count))
    }
}
