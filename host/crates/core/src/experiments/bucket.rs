//! Computes the bucket of a unit.

use sha2::{Digest as _, Sha256};

/// How many buckets there are; weights are parts of it.
pub const BUCKETS: u32 = 10_000;

/// The bucket of a unit in an experiment with this salt, below [`BUCKETS`]: the first 64 bits, big-endian, of the SHA-256 of
/// `pointwork bucket v1`, a zero byte, the salt, a zero byte and the unit's id, modulo [`BUCKETS`].
///
/// The same on every replica and in every version of the host: changing it would move every unit to another arm.
pub fn bucket(salt: &str, unit: &str) -> u32 {
    let hash =
        Sha256::new().chain_update("pointwork bucket v1\0").chain_update(salt).chain_update("\0").chain_update(unit);
    let first = hash.finalize().iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    // Of 2^64 the remainders differ in frequency by less than one in 10^15.
    u32::try_from(first % u64::from(BUCKETS)).unwrap_or(0)
}
