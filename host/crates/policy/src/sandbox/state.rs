//! Holds the data of one guest's store: what the limits and the host functions in `wasi` read and write.

use super::limits::{Limiter, SlotLimits};
use super::output::Captured;
use std::time::{Duration, Instant};

/// How many streams, pollables and the like a guest may hold: each costs the host a table entry.
const HANDLES_MAX: u32 = 1024;

/// A guest that noticed fewer ticks has hardly run, however late it is, because the system gave its thread no
/// processor. On a busy machine that happens to any policy, so its decision is not given up.
const TICKS_MIN: u32 = 3;

/// Everything outside its own memory that a guest can see or change.
pub struct Sandbox {
    pub(crate) limiter: Limiter,
    pub(crate) output: Captured,
    now_ms: u64,
    random: u64,
    handles: u32,
    deadline: Duration,
    ticks: u32,
    first_tick: Instant,
}

impl Sandbox {
    pub(crate) fn new(limits: &SlotLimits) -> Self {
        Self {
            limiter: Limiter::new(limits),
            output: Captured::default(),
            now_ms: 0,
            random: 0,
            handles: 0,
            deadline: Duration::ZERO,
            ticks: 0,
            first_tick: Instant::now(),
        }
    }

    /// Begins a call: time stands still at its moment, and randomness starts from its seed.
    pub(crate) fn begin(&mut self, now_ms: u64, seed: u64, deadline_ms: u64) {
        self.deadline = Duration::from_millis(deadline_ms);
        self.ticks = 0;
        self.limiter.begin();
        self.now_ms = now_ms;
        self.random = seed;
    }

    /// Whether the guest may go on when it notices a new millisecond. The deadline counts from the first one.
    pub(crate) fn may_go_on(&mut self, now: Instant) -> bool {
        self.ticks += 1;
        if self.ticks == 1 {
            self.first_tick = now;
        }
        self.ticks < TICKS_MIN || now.duration_since(self.first_tick) < self.deadline
    }

    /// The moment of the call.
    pub(super) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The next number of the decision's own sequence (SplitMix64).
    pub(super) fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Gives the guest one more handle.
    ///
    /// # Errors
    /// A trap when it holds too many.
    pub(super) fn open_handle(&mut self) -> wasmtime::Result<()> {
        if self.handles >= HANDLES_MAX {
            return Err(wasmtime::Error::msg(format!("the guest holds more than {HANDLES_MAX} streams and pollables")));
        }
        self.handles += 1;
        Ok(())
    }

    /// Counts a handle that the guest dropped.
    pub(super) fn close_handle(&mut self) {
        self.handles = self.handles.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let mut sandbox = Sandbox::new(&SlotLimits::default());
        sandbox.begin(5, 7, 1);
        let first = [sandbox.next_random(), sandbox.next_random()];
        sandbox.begin(5, 7, 1);
        assert_eq!(first, [sandbox.next_random(), sandbox.next_random()]);
        assert_ne!(first[0], first[1]);
        assert_eq!(sandbox.now_ms(), 5);
    }

    #[test]
    fn the_deadline_stops_a_running_guest_but_not_one_without_a_processor() {
        let mut sandbox = Sandbox::new(&SlotLimits::default());
        let start = Instant::now();
        let after_ms = |ms| start + Duration::from_millis(ms);
        for _ in 0..2 {
            sandbox.begin(0, 0, 4);
            assert!((0..4).all(|ms| sandbox.may_go_on(after_ms(ms))), "running for 3 ms");
            assert!(!sandbox.may_go_on(after_ms(4)));
        }
        sandbox.begin(0, 0, 4);
        assert!(sandbox.may_go_on(after_ms(30)) && sandbox.may_go_on(after_ms(60)), "it ran twice in 60 ms");
        assert!(!sandbox.may_go_on(after_ms(60)));
    }

    #[test]
    fn bounds_the_handles_of_a_guest() {
        let mut sandbox = Sandbox::new(&SlotLimits::default());
        for _ in 0..HANDLES_MAX {
            assert!(sandbox.open_handle().is_ok());
        }
        assert!(sandbox.open_handle().is_err());
        sandbox.close_handle();
        assert!(sandbox.open_handle().is_ok());
    }
}
