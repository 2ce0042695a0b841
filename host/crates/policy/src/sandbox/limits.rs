//! What a guest may take: time and memory.

use wasmtime::ResourceLimiter;

/// Limits of one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotLimits {
    /// A guest that still runs after so many milliseconds, and at most one more, is stopped. One that the system hardly let
    /// run in that time gets to run first.
    pub deadline_ms: u64,
    /// Linear memory of one instance, in MiB.
    pub memory_mib: u32,
    /// How many idle instances are kept warm; more are made when more decide at once, and dropped after.
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

/// Counts the memory of one store and remembers that it once said no.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_left_bytes: usize,
    table_elements_left: usize,
    /// A growth was refused since the last [`Limiter::begin`]: a trap after it is for want of memory.
    pub(crate) denied: bool,
}

impl Limiter {
    pub(crate) fn new(limits: &SlotLimits) -> Self {
        Self {
            memory_left_bytes: limits.memory_mib as usize * 1024 * 1024,
            table_elements_left: TABLE_ELEMENTS_MAX,
            denied: false,
        }
    }

    /// A new call begins.
    pub(crate) fn begin(&mut self) {
        self.denied = false;
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let wanted = desired.saturating_sub(current);
        if wanted > self.memory_left_bytes {
            self.denied = true;
            return Ok(false);
        }
        // Beyond the memory's own maximum wasmtime refuses by itself, whatever is answered here.
        if maximum.is_none_or(|maximum| desired <= maximum) {
            self.memory_left_bytes -= wanted;
        }
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let wanted = desired.saturating_sub(current);
        if wanted > self.table_elements_left {
            self.denied = true;
            return Ok(false);
        }
        if maximum.is_none_or(|maximum| desired <= maximum) {
            self.table_elements_left -= wanted;
        }
        Ok(true)
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
