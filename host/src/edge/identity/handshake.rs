//! The `auth` payload of a handshake, read from whatever a client sends.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess};

use super::{
    any_value::{self, FromAnyValue},
    capabilities::Capabilities,
    field::Field,
};

/// The `auth` payload of a CONNECT packet: `{token, clientType, sessionId, machineId, capabilities, lastOffset}`, each of any
/// type. A payload that is no object has no fields: the refusal for a missing field says more than a parse error.
#[derive(Clone, Default)]
pub struct Handshake {
    pub(super) token: Field,
    pub(super) client_type: Field,
    pub(super) session_id: Field,
    pub(super) machine_id: Field,
    pub(super) capabilities: Capabilities,
    pub(super) last_offset: Field,
}

// Not derived, because it contains the token.
impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake").finish_non_exhaustive()
    }
}

impl FromAnyValue for Handshake {
    fn from_object<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut handshake = Self::default();
        while let Some(key) = map.next_key::<String>()? {
            let field = match key.as_str() {
                "token" => &mut handshake.token,
                "clientType" => &mut handshake.client_type,
                "sessionId" => &mut handshake.session_id,
                "machineId" => &mut handshake.machine_id,
                "lastOffset" => &mut handshake.last_offset,
                "capabilities" => {
                    handshake.capabilities = map.next_value()?;
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *field = map.next_value()?;
        }
        Ok(handshake)
    }
}

impl<'de> Deserialize<'de> for Handshake {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any_value::deserialize(deserializer)
    }
}
