//! Finds open calls by something that they share, oldest call first.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use crate::ids::CallId;

/// The calls of each key. A key without calls is not kept.
#[derive(Debug)]
pub(super) struct CallIndex<K> {
    calls: HashMap<K, BTreeSet<CallId>>,
    total: usize,
}

impl<K: Eq + Hash + Clone> CallIndex<K> {
    pub(super) fn new() -> CallIndex<K> {
        CallIndex { calls: HashMap::new(), total: 0 }
    }

    pub(super) fn insert(&mut self, key: &K, call: CallId) {
        if let Some(calls) = self.calls.get_mut(key) {
            self.total += usize::from(calls.insert(call));
        } else {
            self.calls.insert(key.clone(), BTreeSet::from([call]));
            self.total += 1;
        }
    }

    pub(super) fn remove(&mut self, key: &K, call: CallId) {
        let Some(calls) = self.calls.get_mut(key) else { return };
        self.total -= usize::from(calls.remove(&call));
        if calls.is_empty() {
            self.calls.remove(key);
        }
    }

    /// Takes all calls of a key out.
    pub(super) fn take(&mut self, key: &K) -> BTreeSet<CallId> {
        let calls = self.calls.remove(key).unwrap_or_default();
        self.total -= calls.len();
        calls
    }

    /// The calls of a key, copied so that they can be changed while being walked over.
    pub(super) fn of(&self, key: &K) -> Vec<CallId> {
        self.calls.get(key).map(|calls| calls.iter().copied().collect()).unwrap_or_default()
    }

    pub(super) fn count(&self, key: &K) -> usize {
        self.calls.get(key).map_or(0, BTreeSet::len)
    }

    /// How many calls there are under all keys.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// How many keys have calls.
    pub(super) fn keys(&self) -> usize {
        self.calls.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_lives_as_long_as_it_has_calls() {
        let mut index = CallIndex::new();
        index.insert(&"a", CallId(2));
        index.insert(&"a", CallId(1));
        index.insert(&"a", CallId(1));
        index.insert(&"b", CallId(3));
        assert_eq!(index.of(&"a"), [CallId(1), CallId(2)]);
        assert_eq!((index.count(&"a"), index.count(&"c"), index.keys(), index.total()), (2, 0, 2, 3));
        index.remove(&"a", CallId(1));
        index.remove(&"a", CallId(2));
        index.remove(&"a", CallId(2));
        assert_eq!((index.count(&"a"), index.keys(), index.total()), (0, 1, 1));
        assert_eq!(index.take(&"b"), BTreeSet::from([CallId(3)]));
        assert_eq!(index.take(&"b"), BTreeSet::new());
        assert_eq!((index.keys(), index.total()), (0, 0));
    }
}
