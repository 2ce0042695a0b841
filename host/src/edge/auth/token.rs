//! Issues tokens for development and tests, with the host's own shared secret.

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Map, Value};

use crate::config::AuthConfig;
use crate::edge::auth::verifier::{SUB_BYTES_MAX, TOKEN_BYTES_MAX};

/// The claims that cannot be given as additional claims.
const OWN_CLAIMS: [&str; 4] = ["sub", "iss", "iat", "exp"];

/// The claims of a new token.
#[derive(Clone, Debug, Default)]
pub struct TokenRequest {
    /// The user.
    pub sub: String,
    /// Seconds until the token expires. `None` means never.
    pub ttl_s: Option<u64>,
    /// More claims as `name=value`; a value that is JSON is taken as JSON, any other as text.
    pub claims: Vec<String>,
}

/// Why no token was issued.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The host has no secret to sign with: it verifies tokens of other issuers only.
    #[error("no secret to sign a token with: set `auth.hs256_secret`")]
    NoSecret,
    /// The host would refuse such a token.
    #[error("the user id must have 1 to {SUB_BYTES_MAX} bytes")]
    Subject,
    /// A claim is not written `name=value`.
    #[error("the claim `{0}` must be written name=value")]
    Claim(String),
    /// A claim that cannot be given this way.
    #[error("the claim `{0}` is set by other means")]
    OwnClaim(String),
    /// The host would refuse such a token.
    #[error("the token is longer than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    /// The library could not sign.
    #[error("cannot sign the token")]
    Sign(#[from] jsonwebtoken::errors::Error),
}

/// Makes an HS256 token with the configured secret and issuer. `now_s` is in seconds since the Unix epoch.
///
/// # Errors
/// When there is no secret, or the host itself would refuse the token.
pub fn mint(config: &AuthConfig, request: &TokenRequest, now_s: u64) -> Result<String, TokenError> {
    let secret = config.hs256_secret.as_ref().ok_or(TokenError::NoSecret)?;
    if request.sub.is_empty() || request.sub.len() > SUB_BYTES_MAX {
        return Err(TokenError::Subject);
    }
    let mut claims = Map::new();
    for claim in &request.claims {
        let (name, value) = claim.split_once('=').unwrap_or((claim, ""));
        if name.is_empty() || !claim.contains('=') {
            return Err(TokenError::Claim(claim.clone()));
        }
        if OWN_CLAIMS.contains(&name) {
            return Err(TokenError::OwnClaim(name.to_owned()));
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        claims.insert(name.to_owned(), value);
    }
    claims.insert("sub".to_owned(), request.sub.clone().into());
    claims.insert("iat".to_owned(), now_s.into());
    if let Some(issuer) = &config.issuer {
        claims.insert("iss".to_owned(), issuer.clone().into());
    }
    if let Some(ttl_s) = request.ttl_s {
        claims.insert("exp".to_owned(), now_s.saturating_add(ttl_s).into());
    }
    let key = EncodingKey::from_secret(secret.expose().as_bytes())?;
    let token = encode(&Header::new(Algorithm::HS256), &Value::Object(claims), &key)?;
    if token.len() > TOKEN_BYTES_MAX { Err(TokenError::TooLong) } else { Ok(token) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use jsonwebtoken::dangerous::insecure_decode_claims;
    use jsonwebtoken::get_current_timestamp;
    use serde_json::json;

    use super::*;
    use crate::config::Secret;
    use crate::edge::auth::{AuthError, Verifier};

    fn config() -> AuthConfig {
        AuthConfig {
            hs256_secret: Secret::new("0123456789"),
            issuer: Some("handy".to_owned()),
            ..AuthConfig::default()
        }
    }

    fn request(claims: &[&str]) -> TokenRequest {
        let claims = claims.iter().map(|claim| (*claim).to_owned()).collect();
        TokenRequest { sub: "ada".to_owned(), ttl_s: None, claims }
    }

    #[test]
    fn the_host_accepts_its_own_tokens() {
        let verifier = Verifier::from_config(&config()).unwrap();
        let now = get_current_timestamp();
        let lasting = mint(&config(), &request(&[]), now).unwrap();
        assert_eq!(&*verifier.verify(&lasting).unwrap().sub, "ada");
        let timed = TokenRequest { ttl_s: Some(600), ..request(&[]) };
        let verdict = |made_at| verifier.verify(&mint(&config(), &timed, made_at).unwrap());
        assert_eq!(&*verdict(now).unwrap().sub, "ada");
        assert_eq!(verdict(now - 6_000), Err(AuthError::Expired));
    }

    #[test]
    fn contains_the_requested_claims() {
        let request =
            TokenRequest { ttl_s: Some(5), ..request(&["role=admin", "level=3", "zip=007", "x={\"y\":[]}", "e="]) };
        let token = mint(&config(), &request, 1_000).unwrap();
        let expected = json!({
            "sub": "ada", "iss": "handy", "iat": 1_000, "exp": 1_005,
            "role": "admin", "level": 3, "zip": "007", "x": {"y": []}, "e": "",
        });
        assert_eq!(insecure_decode_claims::<Value>(&token).unwrap(), expected);
    }

    #[test]
    fn refuses_to_issue_a_token_that_the_host_would_refuse() {
        let refusal = |request: TokenRequest| mint(&config(), &request, 0).unwrap_err().to_string();
        assert!(refusal(TokenRequest::default()).contains("1 to 256 bytes"));
        assert!(refusal(request(&["role"])).contains("name=value"));
        assert!(refusal(request(&["=admin"])).contains("name=value"));
        assert!(refusal(request(&["sub=eve"])).contains("`sub`"));
        assert!(refusal(request(&[&format!("x={}", "x".repeat(TOKEN_BYTES_MAX))])).contains("longer than"));
        let no_secret = mint(&AuthConfig::default(), &request(&[]), 0).unwrap_err().to_string();
        assert!(no_secret.contains("auth.hs256_secret"), "{no_secret}");
    }
}
