//! The payload of a PUB/SUB message.

#![no_main]

use socketioxide_redis_streams_fuzz::{Payload, check};

libfuzzer_sys::fuzz_target!(|input: &[u8]| check(&Payload(input.to_vec())));
