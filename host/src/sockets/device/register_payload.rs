//! The payload of `device:register`, and how long its fields may be.

use std::sync::Arc;

use pointwork_core::devices::{Credentials, LimiterKey, Registration};

use crate::{
    config::ID_BYTES_MAX,
    edge::{auth::TOKEN_BYTES_MAX, payload::take_field},
};

/// The longest fingerprint, in bytes.
const FINGERPRINT_BYTES_MAX: usize = 4_096;
/// The longest pairing code, in bytes.
const CODE_BYTES_MAX: usize = 64;

/// What a device says of itself. A field that is empty, too long or no text counts as missing.
#[derive(Default)]
pub(super) struct RegisterPayload {
    device: Option<Arc<str>>,
    pub(super) token: Option<String>,
    pub(super) pairing_code: Option<Arc<str>>,
    fingerprint: Option<u64>,
}

impl RegisterPayload {
    pub(super) fn of(mut body: rmpv::Value) -> Self {
        Self {
            device: text(&mut body, "device_id", ID_BYTES_MAX).map(Arc::from),
            token: text(&mut body, "device_token", TOKEN_BYTES_MAX),
            pairing_code: text(&mut body, "pairing_code", CODE_BYTES_MAX).map(Arc::from),
            fingerprint: text(&mut body, "fingerprint", FINGERPRINT_BYTES_MAX).map(|fingerprint| hash(&fingerprint)),
        }
    }

    pub(super) fn registration(&self, is_polling: bool, address: Option<u64>) -> Registration {
        let key = LimiterKey::of(self.device.clone(), self.fingerprint, self.token.as_deref().map(hash));
        let (device, credentials) = match (&self.token, &self.pairing_code) {
            (Some(_), _) => (self.device.clone(), Credentials::Token),
            (None, Some(code)) if self.fingerprint.is_some() => {
                // Always the same for one fingerprint, so that its duplicate sockets are one device.
                let seed = self.fingerprint.unwrap_or_default();
                (Some(format!("dev-{seed:016x}").into()), Credentials::Pairing { code: code.clone() })
            }
            (None, _) => (self.device.clone(), Credentials::Missing),
        };
        Registration { device, key, credentials, fingerprint: self.fingerprint, address, is_polling }
    }
}

/// A field's text, if it is one that is not empty and not too long.
pub(super) fn text(body: &mut rmpv::Value, key: &str, bytes_max: usize) -> Option<String> {
    let rmpv::Value::String(text) = take_field(body, key)? else { return None };
    text.into_str().filter(|text| !text.is_empty() && text.len() <= bytes_max)
}

/// The same on every replica.
pub(super) fn hash(text: &str) -> u64 {
    pointwork_policy::user_key(text)
}
