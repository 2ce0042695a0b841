//! Short critical sections.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic in one of this crate's short sections leaves nothing half-done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
