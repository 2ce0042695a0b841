//! Tests broken messages: every truncation and every flipped bit of the corpus, and random damage. Nothing may panic or take long.
//! Whatever is still decoded can be encoded, and decodes to the same message again.

use std::time::{Duration, Instant};

use fastrand::Rng;
use socketioxide_redis_streams::wire::stream::Entry;
use socketioxide_redis_streams::wire::{DecodeError, Limits, Message, pubsub};

use crate::corpus::{self, Recorded};

/// Far more than any of these short messages needs, even on a busy machine.
const DECODE_TIME_MAX: Duration = Duration::from_secs(1);

#[test]
fn survives_every_truncation() {
    for sample in samples() {
        for len in 0..sample.bytes().len() {
            sample.try_with(&sample.bytes()[..len]);
        }
    }
}

#[test]
fn survives_every_flipped_bit() {
    let mut understood = 0;
    for sample in samples() {
        let mut bytes = sample.bytes().to_vec();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            understood += u32::from(sample.try_with(&bytes));
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
    assert!(understood > 1000, "only {understood}: the second half of the check hardly ran");
}

#[test]
fn survives_random_damage() {
    let samples = samples();
    let mut rng = Rng::with_seed(7);
    for _ in 0..50_000 {
        let sample = &samples[rng.usize(..samples.len())];
        let mut bytes = sample.bytes().to_vec();
        for _ in 0..rng.usize(1..6) {
            let (at, len) = (rng.usize(..bytes.len()), rng.usize(..8));
            let end = bytes.len().min(at + len);
            let patch: Vec<u8> = (0..rng.usize(..8)).map(|_| rng.u8(..)).collect();
            bytes.splice(at..end, patch);
            bytes.push(rng.u8(..));
        }
        sample.try_with(&bytes);
    }
}

/// What is damaged: a payload, or the `data` of an entry.
enum Sample {
    Payload(Vec<u8>),
    Data { number: String, bytes: Vec<u8> },
}

fn samples() -> Vec<Sample> {
    let sample = |recorded| match recorded {
        Recorded::Payload(bytes) => Sample::Payload(bytes),
        Recorded::Entry(fields) => {
            Sample::Data { number: fields[2].1.clone(), bytes: fields[3].1.clone().into_bytes() }
        }
    };
    corpus::all().into_iter().map(|(_, recorded)| sample(recorded)).collect()
}

impl Sample {
    fn bytes(&self) -> &[u8] {
        let (Sample::Payload(bytes) | Sample::Data { bytes, .. }) = self;
        bytes
    }

    /// Reads the damaged bytes and says whether they were understood.
    fn try_with(&self, bytes: &[u8]) -> bool {
        let started = Instant::now();
        let read = self.decode(bytes);
        assert!(started.elapsed() < DECODE_TIME_MAX, "took {:?}", started.elapsed());
        match read {
            Ok(message) => self.assert_stable(&message),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        self.decode(bytes).is_ok()
    }

    fn decode(&self, bytes: &[u8]) -> Result<Message, DecodeError> {
        let limits = Limits::default();
        match self {
            Sample::Payload(_) => pubsub::decode(bytes, &limits),
            Sample::Data { number, .. } => {
                let fields = [("uid", &b"1"[..]), ("nsp", b"/"), ("type", number.as_bytes()), ("data", bytes)];
                Entry::from_fields(fields, &limits)?.decode(&limits)
            }
        }
    }

    /// Written, read and written again it is the same: the first writing settles how its numbers are written.
    fn assert_stable(&self, message: &Message) {
        let limits = Limits::default();
        match self {
            Sample::Payload(_) => {
                let written = pubsub::encode(message, &limits).unwrap();
                let again = pubsub::encode(&pubsub::decode(&written, &limits).unwrap(), &limits).unwrap();
                assert_eq!(again, written);
            }
            Sample::Data { .. } => {
                let written = Entry::encode(message, &limits).unwrap();
                let again = Entry::encode(&written.clone().decode(&limits).unwrap(), &limits).unwrap();
                assert_eq!(again, written);
            }
        }
    }
}
