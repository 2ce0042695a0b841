//! The `auth` payload of a handshake, read from whatever a client sends.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{capabilities::Capabilities, field::Field};

/// The `auth` payload of a CONNECT packet: `{token, clientType, sessionId, machineId, capabilities, lastOffset}`, each of any
/// type. A payload that is no object is one without fields: what is missing then has its own refusal, which says more than a parse error.
#[derive(Clone, Default)]
pub struct Handshake {
    pub(super) token: Field,
    pub(super) client_type: Field,
    pub(super) session_id: Field,
    pub(super) machine_id: Field,
    pub(super) capabilities: Capabilities,
    pub(super) last_offset: Field,
}

// Not derived: it holds the token.
impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake").finish_non_exhaustive()
    }
}

impl<'de> Deserialize<'de> for Handshake {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HandshakeVisitor)
    }
}

struct HandshakeVisitor;

impl<'de> Visitor<'de> for HandshakeVisitor {
    type Value = Handshake;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the auth payload of a handshake")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Handshake, A::Error> {
        let mut handshake = Handshake::default();
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Handshake, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Handshake::default())
    }

    fn visit_unit<E>(self) -> Result<Handshake, E> {
        Ok(Handshake::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Handshake, E> {
        Ok(Handshake::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Handshake, E> {
        Ok(Handshake::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Handshake, E> {
        Ok(Handshake::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Handshake, E> {
        Ok(Handshake::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Handshake, E> {
        Ok(Handshake::default())
    }
}
