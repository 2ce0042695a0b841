//! Works out which user's client connects, from its handshake.

use std::{fmt, sync::Arc};

use super::{capabilities::Capabilities, field::Field, handshake::Handshake, handshake_refusal::HandshakeRefusal};
use crate::edge::auth::{AuthError, TokenClaims};

/// Who a client is, proven by its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The token's `sub`.
    pub user: Arc<str>,
    /// The type of the client.
    pub client: ClientType,
    /// What it supports.
    pub capabilities: Capabilities,
    /// The offset of the last broadcast that it has received.
    pub last_offset: Option<Box<str>>,
}

/// The type of a client. The client chooses the ids, within its user. Each has 1 to `ID_BYTES_MAX` bytes and may contain any
/// character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientType {
    /// An app, which sees everything of its user.
    User,
    /// One session.
    Session(Arc<str>),
    /// One machine: a daemon.
    Machine(Arc<str>),
}

impl fmt::Display for ClientType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Session(session) => write!(f, "session:{session}"),
            Self::Machine(machine) => write!(f, "machine:{machine}"),
        }
    }
}

/// Works out who connects. A missing or unknown client type means user-scoped, like at the original server.
///
/// # Errors
/// The first that applies, in the order of the original server: token missing, id missing, token invalid.
pub fn identify(
    handshake: Option<Handshake>,
    verify: impl FnOnce(&str) -> Result<TokenClaims, AuthError>,
) -> Result<Identity, HandshakeRefusal> {
    let handshake = handshake.unwrap_or_default();
    if handshake.token == Field::Absent {
        return Err(HandshakeRefusal::MissingToken);
    }
    let client = match handshake.client_type {
        Field::Text(scope) if scope == "session-scoped" => {
            ClientType::Session(handshake.session_id.into_id().ok_or(HandshakeRefusal::MissingSession)?)
        }
        Field::Text(scope) if scope == "machine-scoped" => {
            ClientType::Machine(handshake.machine_id.into_id().ok_or(HandshakeRefusal::MissingMachine)?)
        }
        _ => ClientType::User,
    };
    let Field::Text(token) = handshake.token else {
        return Err(HandshakeRefusal::InvalidToken(AuthError::Malformed));
    };
    let claims = verify(&token).map_err(HandshakeRefusal::InvalidToken)?;
    let last_offset = handshake.last_offset.into_offset();
    Ok(Identity { user: claims.sub, client, capabilities: handshake.capabilities, last_offset })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::ID_BYTES_MAX;

    fn verify(token: &str) -> Result<TokenClaims, AuthError> {
        if token == "good" {
            Ok(TokenClaims { sub: "ada".into(), ..TokenClaims::default() })
        } else {
            Err(AuthError::Signature)
        }
    }

    fn of(auth: &Value) -> Result<Identity, HandshakeRefusal> {
        identify(Some(serde_json::from_str(&auth.to_string()).unwrap()), verify)
    }

    fn ada(client: ClientType) -> Result<Identity, HandshakeRefusal> {
        Ok(Identity { user: "ada".into(), client, capabilities: Capabilities::default(), last_offset: None })
    }

    #[test]
    fn recognizes_each_client_type() {
        assert_eq!(of(&json!({"token": "good", "clientType": "user-scoped"})), ada(ClientType::User));
        let session = json!({"token": "good", "clientType": "session-scoped", "sessionId": "s:1", "machineId": "m"});
        assert_eq!(of(&session), ada(ClientType::Session("s:1".into())));
        let machine = json!({"token": "good", "clientType": "machine-scoped", "sessionId": "s", "machineId": "m:1"});
        assert_eq!(of(&machine), ada(ClientType::Machine("m:1".into())));
    }

    #[test]
    fn a_missing_or_unknown_type_is_user_scoped() {
        assert_eq!(of(&json!({"token": "good"})), ada(ClientType::User));
        for unknown in [json!("Session-Scoped"), json!(""), json!(null), json!(7), json!(["session-scoped"]), json!({})]
        {
            assert_eq!(of(&json!({"token": "good", "clientType": unknown})), ada(ClientType::User), "{unknown}");
        }
    }

    #[test]
    fn refusals_have_the_texts_that_clients_know() {
        let text = |auth: Value| of(&auth).unwrap_err().to_string();
        assert_eq!(text(json!({})), "Missing authentication token");
        let session = json!({"token": "good", "clientType": "session-scoped"});
        assert_eq!(text(session), "Session ID required for session-scoped clients");
        let machine = json!({"token": "good", "clientType": "machine-scoped"});
        assert_eq!(text(machine), "Machine ID required for machine-scoped clients");
        assert_eq!(text(json!({"token": "bad"})), "Invalid authentication token");
    }

    #[test]
    fn the_refusals_keep_their_order() {
        for scope in ["session-scoped", "machine-scoped"] {
            assert_eq!(of(&json!({"clientType": scope})), Err(HandshakeRefusal::MissingToken));
        }
        assert_eq!(of(&json!({"token": "bad", "clientType": "session-scoped"})), Err(HandshakeRefusal::MissingSession));
        assert_eq!(of(&json!({"token": "bad", "clientType": "machine-scoped"})), Err(HandshakeRefusal::MissingMachine));
        let with_id = json!({"token": "bad", "clientType": "machine-scoped", "machineId": "m"});
        assert_eq!(of(&with_id), Err(HandshakeRefusal::InvalidToken(AuthError::Signature)));
    }

    #[test]
    fn a_token_of_a_wrong_type_is_missing_or_invalid_as_in_javascript() {
        for missing in [json!(null), json!(""), json!(false), json!(0), json!(0.0)] {
            assert_eq!(of(&json!({"token": missing})), Err(HandshakeRefusal::MissingToken), "{missing}");
        }
        for invalid in [json!(true), json!(7), json!(-1), json!(0.5), json!([]), json!(["good"]), json!({"a": [{}]})] {
            let refusal = Err(HandshakeRefusal::InvalidToken(AuthError::Malformed));
            assert_eq!(of(&json!({"token": invalid})), refusal, "{invalid}");
        }
    }

    #[test]
    fn an_id_is_a_text_within_its_bound() {
        let with_id = |id: Value| of(&json!({"token": "good", "clientType": "session-scoped", "sessionId": id}));
        let longest = "s".repeat(ID_BYTES_MAX);
        assert_eq!(with_id(json!(longest)), ada(ClientType::Session(longest.as_str().into())));
        for wrong in [json!("s".repeat(ID_BYTES_MAX + 1)), json!(""), json!(7), json!(true), json!(["s"]), json!({})] {
            assert_eq!(with_id(wrong.clone()), Err(HandshakeRefusal::MissingSession), "{wrong}");
        }
    }

    #[test]
    fn a_payload_of_any_type_is_read_without_failing() {
        for payload in [json!(null), json!(true), json!(-7), json!(7), json!(0.5), json!("good"), json!([1, [2, {}]])] {
            assert_eq!(of(&payload), Err(HandshakeRefusal::MissingToken), "{payload}");
        }
        assert_eq!(identify(None, verify), Err(HandshakeRefusal::MissingToken));
        let extra = json!({"more": {"and": ["more", null]}, "token": "good", "again": 1});
        assert_eq!(of(&extra), ada(ClientType::User));
    }

    #[test]
    fn a_field_given_twice_is_the_last_as_in_javascript() {
        let handshake = serde_json::from_str(r#"{"token":"bad","token":"good"}"#).unwrap();
        assert_eq!(identify(Some(handshake), verify), ada(ClientType::User));
    }

    #[test]
    fn reads_capabilities_and_the_last_offset() {
        let of = |auth: Value| of(&auth).unwrap();
        let able = of(json!({"token": "good", "capabilities": ["offsets", 1], "lastOffset": "17-0"}));
        assert_eq!(able.capabilities, Capabilities { offsets: true, ..Capabilities::default() });
        assert_eq!(able.last_offset.as_deref(), Some("17-0"));
        assert_eq!(of(json!({"token": "good", "lastOffset": ""})).last_offset, None);
        for nonsense in [json!(7), json!(["17-0"]), json!("9".repeat(ID_BYTES_MAX + 1))] {
            let auth = json!({"token": "good", "capabilities": nonsense, "lastOffset": nonsense});
            assert_eq!(
                (of(auth.clone()).last_offset.as_deref(), of(auth).capabilities),
                (Some(""), Capabilities::default())
            );
        }
    }

    #[test]
    fn debug_does_not_show_the_token() {
        let handshake: Handshake = serde_json::from_value(json!({"token": "sesame"})).unwrap();
        assert!(!format!("{handshake:?}").contains("sesame"));
    }
}
