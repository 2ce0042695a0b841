//! Counts by key, with one limit for every key.

use parking_lot::Mutex;
use std::{borrow::Borrow, collections::HashMap, hash::Hash, sync::Arc};

/// Counts by key. Only keys with a count above zero take memory.
pub(crate) struct KeyedCounts<K> {
    max: usize,
    by_key: Mutex<HashMap<K, usize>>,
}

impl<K: Clone + Eq + Hash> KeyedCounts<K> {
    /// `max` is the limit of each key; 0 means that there is no limit and nothing is counted.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, by_key: Mutex::default() }
    }

    /// Whether there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.max > 0
    }

    /// Counts one more for `key`. `None` if the key is at its limit.
    pub(crate) fn take(self: &Arc<Self>, key: K) -> Option<CountGuard<K>> {
        let mut counts = self.by_key.lock();
        let count = counts.get(&key).copied().unwrap_or_default();
        if count >= self.max {
            return None;
        }
        counts.insert(key.clone(), count + 1);
        drop(counts);
        Some(CountGuard { counts: self.clone(), key })
    }

    /// Whether the count of `key` is above zero.
    pub(crate) fn has<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.by_key.lock().contains_key(key)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.by_key.lock().len()
    }
}

/// One that is counted until the guard is dropped.
pub(crate) struct CountGuard<K: Clone + Eq + Hash> {
    counts: Arc<KeyedCounts<K>>,
    key: K,
}

impl<K: Clone + Eq + Hash> Drop for CountGuard<K> {
    fn drop(&mut self) {
        let mut counts = self.counts.by_key.lock();
        match counts.get_mut(&self.key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                counts.remove(&self.key);
            }
        }
    }
}

/// A limit has been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitReached;

pub(super) fn refused_counter(reason: &'static str) -> metrics::Counter {
    metrics::counter!("pointwork_connections_refused_total", "reason" => reason)
}
