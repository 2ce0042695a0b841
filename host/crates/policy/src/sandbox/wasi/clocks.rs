//! Implements wasi:clocks: both clocks stand at the moment of the decision, and a sleep ends at once.

use crate::sandbox::Sandbox;
use crate::sandbox::bindings::wasi::clocks::{monotonic_clock, wall_clock};
use crate::sandbox::bindings::wasi::io::poll::Pollable;
use wall_clock::Datetime;
use wasmtime::Result;
use wasmtime::component::Resource;

const NANOSECONDS_PER_MS: u64 = 1_000_000;

impl wall_clock::Host for Sandbox {
    fn now(&mut self) -> Result<Datetime> {
        let now_ms = self.now_ms();
        Ok(Datetime { seconds: now_ms / 1000, nanoseconds: (now_ms % 1000) as u32 * NANOSECONDS_PER_MS as u32 })
    }

    fn resolution(&mut self) -> Result<Datetime> {
        Ok(Datetime { seconds: 0, nanoseconds: NANOSECONDS_PER_MS as u32 })
    }
}

impl monotonic_clock::Host for Sandbox {
    fn now(&mut self) -> Result<u64> {
        Ok(self.now_ms().saturating_mul(NANOSECONDS_PER_MS))
    }

    fn resolution(&mut self) -> Result<u64> {
        Ok(NANOSECONDS_PER_MS)
    }

    fn subscribe_instant(&mut self, _: u64) -> Result<Resource<Pollable>> {
        self.ready()
    }

    fn subscribe_duration(&mut self, _: u64) -> Result<Resource<Pollable>> {
        self.ready()
    }
}
