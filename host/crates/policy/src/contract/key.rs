//! Hashes a user or device id into the `key` of a moment, so that a policy can select a fixed share of them.

use sha2::{Digest as _, Sha256};

/// Hash of a user id. It is the same on every replica and in every version of the host: another hash would move every
/// user to another share.
pub fn user_key(user_id: &str) -> u64 {
    key("pointwork key v1 user\0", user_id)
}

/// Hash of a device id. A user with the same id has another key.
pub fn device_key(device_id: &str) -> u64 {
    key("pointwork key v1 device\0", device_id)
}

fn key(domain: &str, id: &str) -> u64 {
    let hash = Sha256::new().chain_update(domain).chain_update(id).finalize();
    hash.iter().take(8).fold(0, |key, byte| key << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::{device_key, user_key};

    /// Known answers: they may never change (computed with `printf 'pointwork key v1 user\0u1' | sha256sum`).
    #[test]
    fn keys_never_change() {
        assert_eq!(user_key("u1"), USER_U1);
        assert_eq!(device_key("u1"), DEVICE_U1);
    }

    const USER_U1: u64 = 0x8ca4_dcf1_ffca_c79a;
    const DEVICE_U1: u64 = 0x9190_fb9a_2ec2_f068;
}
