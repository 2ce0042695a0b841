//! How many calls may be open at once on this replica, and how much memory their requests may take.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests are weighed in these, so that a semaphore's permits suffice.
const WEIGHT_BYTES: usize = 1_024;

/// The places for calls.
pub(in crate::calls) struct CallBudget {
    calls: Arc<Semaphore>,
    weights: Arc<Semaphore>,
    calls_max: usize,
    weights_max: usize,
}

/// A call's place, given back when it is dropped.
pub(in crate::calls) struct Reservation {
    _call: OwnedSemaphorePermit,
    _weight: OwnedSemaphorePermit,
}

impl CallBudget {
    pub(in crate::calls) fn new(calls_max: usize, request_memory_max: usize) -> Self {
        let calls_max = calls_max.min(Semaphore::MAX_PERMITS);
        let weights_max = (request_memory_max / WEIGHT_BYTES).min(Semaphore::MAX_PERMITS);
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits));
        Self { calls: semaphore(calls_max), weights: semaphore(weights_max), calls_max, weights_max }
    }

    /// Brings what is taken to the metrics.
    pub(in crate::calls) fn publish(&self) {
        let calls = self.calls_max.saturating_sub(self.calls.available_permits());
        let weights = self.weights_max.saturating_sub(self.weights.available_permits());
        metrics::gauge!("rpc_calls_open").set(calls as f64);
        metrics::gauge!("rpc_calls_open_max").set(self.calls_max as f64);
        metrics::gauge!("rpc_request_memory_bytes").set((weights * WEIGHT_BYTES) as f64);
        metrics::gauge!("rpc_request_memory_max_bytes").set((self.weights_max * WEIGHT_BYTES) as f64);
    }

    /// A place for a call whose request takes so much memory; `None` when there is none.
    pub(in crate::calls) fn take(&self, memory_bytes: usize) -> Option<Reservation> {
        let weight = u32::try_from(memory_bytes / WEIGHT_BYTES + 1).ok()?;
        Some(Reservation {
            _call: self.calls.clone().try_acquire_owned().ok()?,
            _weight: self.weights.clone().try_acquire_many_owned(weight).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_by_number_and_by_weight() {
        let places = CallBudget::new(2, 10 * WEIGHT_BYTES);
        let (first, second) = (places.take(0), places.take(0));
        assert!(first.is_some() && second.is_some() && places.take(0).is_none());
        drop(first);
        assert!(places.take(9 * WEIGHT_BYTES).is_none(), "one of ten is taken, and this weighs ten");
        assert!(places.take(8 * WEIGHT_BYTES).is_some());
    }
}
