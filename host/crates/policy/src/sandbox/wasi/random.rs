//! Implements wasi:random: numbers that follow from the decision's seed alone.

use crate::sandbox::Sandbox;
use crate::sandbox::bindings::wasi::random::{insecure, insecure_seed, random};
use wasmtime::Result;

/// How many bytes one call may request.
const BYTES_MAX: u64 = 4096;

/// The seed of a guest's hash maps. It is a constant, not the decision's seed, because the guest's library requests it
/// once per instance: the first decision of an instance would influence all later ones.
const HASH_SEED: (u64, u64) = (0x706f_696e_7477_6f72, 0x6b5f_686f_7374_2e31);

impl Sandbox {
    fn random_bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        if len > BYTES_MAX {
            return Err(wasmtime::Error::msg(format!("{len} random bytes wanted, at most {BYTES_MAX} at once")));
        }
        let mut bytes = Vec::with_capacity(len as usize + 7);
        while (bytes.len() as u64) < len {
            bytes.extend_from_slice(&self.next_random().to_le_bytes());
        }
        bytes.truncate(len as usize);
        Ok(bytes)
    }
}

impl random::Host for Sandbox {
    fn get_random_bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        self.random_bytes(len)
    }

    fn get_random_u64(&mut self) -> Result<u64> {
        Ok(self.next_random())
    }
}

impl insecure::Host for Sandbox {
    fn get_insecure_random_bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        self.random_bytes(len)
    }

    fn get_insecure_random_u64(&mut self) -> Result<u64> {
        Ok(self.next_random())
    }
}

impl insecure_seed::Host for Sandbox {
    fn insecure_seed(&mut self) -> Result<(u64, u64)> {
        Ok(HASH_SEED)
    }
}
