//! Counts what is allocated, to see that reading takes memory in proportion to what is read.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A short text's buffer, before it is known that the text is not there, and an error's message.
const FLOOR_BYTES: usize = 80 << 10;
/// For each byte that is read. A byte `0x91` opens an array, whose first element makes room for four of 40 bytes.
const BYTES_PER_BYTE_MAX: usize = 170;

#[global_allocator]
static COUNTED: Counted = Counted;
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Runs `read`, which reads that many bytes, and asserts that it took no more memory than they may.
pub(crate) fn bounded<T>(bytes: usize, read: impl FnOnce() -> T) -> T {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    let done = read();
    let taken = PEAK.load(Relaxed).saturating_sub(before);
    let max = FLOOR_BYTES + bytes * BYTES_PER_BYTE_MAX;
    assert!(taken <= max, "{taken} bytes were allocated to read {bytes}");
    done
}

/// The system's allocator, counted. An input is read on one thread; no other allocates much meanwhile.
struct Counted;

// SAFETY: every call is passed on to the system's allocator as it is. What is not overridden goes through these two.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.dealloc(at, layout) }
    }
}
