//! Computes the SHA-256 digest of a wasm file, or of a generation (contract, wasm, configuration).

use crate::contract::CONTRACT_VERSION;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// A SHA-256 digest; displayed and serialized as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a wasm file alone.
    pub fn of_wasm(wasm: &[u8]) -> Self {
        Self(Sha256::digest(wasm).into())
    }

    /// The digest that identifies a generation. Another configuration makes another generation, and so does another
    /// version of the contract.
    pub fn of_generation(wasm: &[u8], config_json: &str) -> Self {
        let wasm_bytes = wasm.len() as u64;
        let hash = Sha256::new()
            .chain_update("pointwork generation\0")
            .chain_update(CONTRACT_VERSION)
            .chain_update(b"\0")
            .chain_update(wasm_bytes.to_be_bytes())
            .chain_update(wasm)
            .chain_update(config_json);
        Self(hash.finalize().into())
    }

    /// The first 12 digits, for log lines.
    pub fn short(&self) -> String {
        let mut hex = self.to_string();
        hex.truncate(12);
        hex
    }
}

/// A text that is no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 64 lower-case hexadecimal digits")]
pub struct NoDigest;

impl FromStr for Digest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        let digits = text.as_bytes();
        let is_digit = |digit: &u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(digit);
        if digits.len() != 64 || !digits.iter().all(is_digit) {
            return Err(NoDigest);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let value = |digit: u8| (digit as char).to_digit(16).unwrap_or_default() as u8;
            *byte = value(pair[0]) << 4 | value(pair[1]);
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::{Digest, NoDigest};

    #[test]
    fn parses_a_digest_as_it_is_displayed() {
        let digest = Digest::of_wasm(b"ab");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for wrong in ["", "12", &"g".repeat(64), &"A".repeat(64), &"é".repeat(32)] {
            assert_eq!(wrong.parse::<Digest>(), Err(NoDigest), "{wrong}");
        }
    }

    #[test]
    fn covers_module_and_configuration() {
        let base = Digest::of_generation(b"ab", "c");
        assert_eq!(base, Digest::of_generation(b"ab", "c"));
        assert_ne!(base, Digest::of_generation(b"ab", "d"));
        assert_ne!(base, Digest::of_generation(b"a", "bc"), "the border is part of it");
        assert_eq!(base.to_string().len(), 64);
        assert!(base.to_string().starts_with(&base.short()));
    }
}
