//! How many each has of something that is bounded.

use parking_lot::Mutex;
use std::{borrow::Borrow, collections::HashMap, hash::Hash, sync::Arc};

/// Counts by key. It holds those that have at least one.
pub(crate) struct Tally<K> {
    max: usize,
    counts: Mutex<HashMap<K, usize>>,
}

impl<K: Clone + Eq + Hash> Tally<K> {
    /// `max`: for each; 0 for any number, and then nothing is counted.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, counts: Mutex::default() }
    }

    /// Whether there is anything to count.
    pub(crate) fn is_limited(&self) -> bool {
        self.max > 0
    }

    /// One more; `None` when there are as many as there may be.
    pub(crate) fn take(self: &Arc<Self>, key: K) -> Option<Place<K>> {
        let mut counts = self.counts.lock();
        let count = counts.get(&key).copied().unwrap_or_default();
        if count >= self.max {
            return None;
        }
        counts.insert(key.clone(), count + 1);
        drop(counts);
        Some(Place { tally: self.clone(), key })
    }

    /// Whether there is one.
    pub(crate) fn has<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.counts.lock().contains_key(key)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.counts.lock().len()
    }
}

/// One that was counted; dropped, it is not any more.
pub(crate) struct Place<K: Clone + Eq + Hash> {
    tally: Arc<Tally<K>>,
    key: K,
}

impl<K: Clone + Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut counts = self.tally.counts.lock();
        match counts.get_mut(&self.key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                counts.remove(&self.key);
            }
        }
    }
}
