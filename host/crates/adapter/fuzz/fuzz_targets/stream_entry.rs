//! A stream entry with any fields.

#![no_main]

use socketioxide_redis_streams_fuzz::{Entry, check};

libfuzzer_sys::fuzz_target!(|input: &[u8]| check(&Entry::from_input(input)));
