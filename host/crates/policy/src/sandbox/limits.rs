//! Limits the time and the memory of a guest.

use wasmtime::ResourceLimiter;

/// Limits of one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotLimits {
    /// A guest that still runs after so many milliseconds, and at most one more, is stopped. If the system hardly gave
    /// it a processor in that time, it may run first.
    pub deadline_ms: u64,
    /// Linear memory of one instance, in MiB.
    pub memory_mib: u32,
    /// How many idle instances are kept warm. More are made when more decisions run at once, and dropped after.
    pub instances_max: usize,
}

impl Default for SlotLimits {
    fn default() -> Self {
        Self { deadline_ms: 4, memory_mib: 16, instances_max: 16 }
    }
}

/// Elements of all tables of an instance: function pointers; a JavaScript engine has a few thousand.
const TABLE_ELEMENTS_MAX: usize = 64 * 1024;
/// Core instances, memories and tables of a component each; a Rust guest has about five.
const PARTS_MAX: usize = 64;

/// Limits the memory of one store, and remembers whether it refused a growth.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_left_bytes: usize,
    table_elements_left: usize,
    /// A growth was refused since the last [`Limiter::begin`]: a trap after it counts as want of memory.
    pub(crate) denied: bool,
}

impl Limiter {
    pub(super) fn new(limits: &SlotLimits) -> Self {
        Self {
            memory_left_bytes: limits.memory_mib as usize * 1024 * 1024,
            table_elements_left: TABLE_ELEMENTS_MAX,
            denied: false,
        }
    }

    /// Begins a new call.
    pub(super) fn begin(&mut self) {
        self.denied = false;
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let granted = take(&mut self.memory_left_bytes, current, desired, maximum);
        self.denied |= !granted;
        Ok(granted)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let granted = take(&mut self.table_elements_left, current, desired, maximum);
        self.denied |= !granted;
        Ok(granted)
    }

    fn instances(&self) -> usize {
        PARTS_MAX
    }

    fn tables(&self) -> usize {
        PARTS_MAX
    }

    fn memories(&self) -> usize {
        PARTS_MAX
    }
}

/// Takes a growth out of what is left, if it fits.
fn take(left: &mut usize, current: usize, desired: usize, maximum: Option<usize>) -> bool {
    let wanted = desired.saturating_sub(current);
    let fits = wanted <= *left;
    // wasmtime itself refuses a growth beyond the memory's own maximum, so that takes nothing.
    if fits && maximum.is_none_or(|maximum| desired <= maximum) {
        *left -= wanted;
    }
    fits
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_share_one_budget() {
        let mut limiter = Limiter::new(&SlotLimits { memory_mib: 1, ..SlotLimits::default() });
        assert!(limiter.memory_growing(0, 512 << 10, None).unwrap());
        assert!(limiter.memory_growing(0, 1 << 20, Some(0)).is_ok(), "over its own maximum");
        assert!(limiter.memory_growing(0, 512 << 10, None).unwrap());
        assert!(!limiter.memory_growing(0, 64 << 10, None).unwrap());
        assert!(limiter.denied);
        limiter.begin();
        assert!(!limiter.denied);
    }
}
