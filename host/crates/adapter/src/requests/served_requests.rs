//! The requests of other servers that wait for acknowledgements of sockets of this replica.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The rooms of each served request, by its id.
type RoomsById = Arc<Mutex<HashMap<String, Vec<String>>>>;

/// The table of served requests.
#[derive(Debug, Default)]
pub(crate) struct ServedRequests {
    open: RoomsById,
    total: AtomicU64,
}

/// A request that is being served, until this is dropped.
#[derive(Debug)]
pub(crate) struct ServedRequest {
    id: String,
    open: RoomsById,
}

impl ServedRequests {
    pub(crate) fn begin(&self, id: &str, rooms: Vec<String>) -> ServedRequest {
        self.total.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(id.to_owned(), rooms);
        ServedRequest { id: id.to_owned(), open: self.open.clone() }
    }

    /// How many requests are being served.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// How many requests were ever served.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// The rooms of all requests that are being served.
    pub(crate) fn rooms(&self) -> HashSet<String> {
        self.open.lock().values().flatten().cloned().collect()
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.open.lock().contains_key(id)
    }
}

impl Drop for ServedRequest {
    fn drop(&mut self) {
        self.open.lock().remove(&self.id);
    }
}
