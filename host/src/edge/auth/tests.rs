#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;
use std::sync::LazyLock;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::{keys::AuthConfigError, verifier::*};
use crate::config::{AuthConfig, Secret};

/// A key pair in the forms that the settings and the tests need.
struct Pair {
    public_pem: String,
    private_pem: String,
    signing: EncodingKey,
}

fn pem_of(tag: &str, der: &[u8]) -> String {
    pem::encode(&pem::Pem::new(tag, der))
}

fn rsa_pair() -> Pair {
    let pair = aws_lc_rs::rsa::KeyPair::generate(KeySize::Rsa2048).unwrap();
    let private: Pkcs8V1Der<'_> = pair.as_der().unwrap();
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    let private_pem = pem_of("PRIVATE KEY", private.as_ref());
    let signing = EncodingKey::from_rsa_pem(private_pem.as_bytes()).unwrap();
    Pair { public_pem: pem_of("PUBLIC KEY", public.as_ref()), private_pem, signing }
}

fn ed_pair() -> Pair {
    let pair = Ed25519KeyPair::generate().unwrap();
    let private: Pkcs8V1Der<'_> = pair.as_der().unwrap();
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    let signing = EncodingKey::from_ed_der(private.as_ref());
    let private_pem = pem_of("PRIVATE KEY", private.as_ref());
    Pair { public_pem: pem_of("PUBLIC KEY", public.as_ref()), private_pem, signing }
}

static RSA: LazyLock<Pair> = LazyLock::new(rsa_pair);
static ED: LazyLock<Pair> = LazyLock::new(ed_pair);
const SECRET: &str = "a shared secret of 32 bytes or so";

fn hs256() -> EncodingKey {
    EncodingKey::from_secret(SECRET.as_bytes()).unwrap()
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn with_secret() -> AuthConfig {
    AuthConfig { hs256_secret: Secret::new(SECRET), ..AuthConfig::default() }
}

fn with_public_key(pem: &str) -> Result<Verifier, AuthConfigError> {
    let file = file(pem);
    Verifier::from_config(&AuthConfig { public_key_file: Some(file.path().to_owned()), ..AuthConfig::default() })
}

fn with_key_set(keys: Value) -> Result<Verifier, AuthConfigError> {
    let file = file(&json!({ "keys": keys }).to_string());
    Verifier::from_config(&AuthConfig { jwks_file: Some(file.path().to_owned()), ..AuthConfig::default() })
}

fn jwk(key: &EncodingKey, algorithm: Algorithm, id: Option<&str>) -> Value {
    let mut jwk = Jwk::from_encoding_key(key, algorithm).unwrap();
    jwk.common.key_id = id.map(str::to_owned);
    serde_json::to_value(jwk).unwrap()
}

fn signed(algorithm: Algorithm, key: &EncodingKey, id: Option<&str>, claims: &Value) -> String {
    let header = Header { kid: id.map(str::to_owned), ..Header::new(algorithm) };
    encode(&header, claims, key).unwrap()
}

fn for_ada(algorithm: Algorithm, key: &EncodingKey) -> String {
    signed(algorithm, key, None, &json!({"sub": "ada"}))
}

fn ada() -> Result<TokenClaims, AuthError> {
    Ok(TokenClaims { sub: "ada".into(), ..TokenClaims::default() })
}

#[test]
fn each_kind_of_key_proves_its_tokens() {
    let secret = Verifier::from_config(&with_secret()).unwrap();
    assert_eq!(secret.verify(&for_ada(Algorithm::HS256, &hs256())), ada());
    let rsa = with_public_key(&RSA.public_pem).unwrap();
    assert_eq!(rsa.verify(&for_ada(Algorithm::RS256, &RSA.signing)), ada());
    let ed = with_public_key(&ED.public_pem).unwrap();
    assert_eq!(ed.verify(&for_ada(Algorithm::EdDSA, &ED.signing)), ada());
}

#[test]
fn several_keys_stand_side_by_side() {
    let public = file(&ED.public_pem);
    let set = file(&json!({"keys": [jwk(&RSA.signing, Algorithm::RS256, Some("r"))]}).to_string());
    let config = AuthConfig {
        public_key_file: Some(public.path().to_owned()),
        jwks_file: Some(set.path().to_owned()),
        ..with_secret()
    };
    let verifier = Verifier::from_config(&config).unwrap();
    assert_eq!(verifier.verify(&for_ada(Algorithm::HS256, &hs256())), ada());
    assert_eq!(verifier.verify(&for_ada(Algorithm::EdDSA, &ED.signing)), ada());
    assert_eq!(verifier.verify(&for_ada(Algorithm::RS256, &RSA.signing)), ada());
}

#[test]
fn a_key_set_is_searched_by_key_id() {
    let other = ed_pair();
    let verifier = with_key_set(json!([
        jwk(&RSA.signing, Algorithm::RS256, Some("rsa")),
        jwk(&ED.signing, Algorithm::EdDSA, Some("ed-1")),
        jwk(&other.signing, Algorithm::EdDSA, Some("ed-2")),
        jwk(&hs256(), Algorithm::HS256, None),
    ]))
    .unwrap();
    let claims = json!({"sub": "ada"});
    let verify = |algorithm, key, id| verifier.verify(&signed(algorithm, key, id, &claims));
    assert_eq!(verify(Algorithm::RS256, &RSA.signing, Some("rsa")), ada());
    assert_eq!(verify(Algorithm::EdDSA, &ED.signing, Some("ed-1")), ada());
    assert_eq!(verify(Algorithm::EdDSA, &other.signing, Some("ed-2")), ada());
    assert_eq!(verify(Algorithm::EdDSA, &other.signing, Some("ed-1")), Err(AuthError::Signature));
    assert_eq!(verify(Algorithm::EdDSA, &other.signing, Some("ed-3")), Err(AuthError::NoKey));
    assert_eq!(verify(Algorithm::RS256, &RSA.signing, Some("ed-1")), Err(AuthError::NoKey));
    // Without an id, every key of the algorithm is tried.
    assert_eq!(verify(Algorithm::EdDSA, &other.signing, None), ada());
    // A key without an id is tried for every token.
    assert_eq!(verify(Algorithm::HS256, &hs256(), Some("whatever")), ada());
}

#[test]
fn unusable_keys_of_a_set_are_skipped_and_a_set_of_them_is_refused() {
    let mut encryption = jwk(&RSA.signing, Algorithm::RS256, Some("enc"));
    encryption["use"] = json!("enc");
    let mut other_algorithm = jwk(&RSA.signing, Algorithm::RS256, Some("rs512"));
    other_algorithm["alg"] = json!("RS512");
    let curve = json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "ec"});
    let short = json!({"kty": "OKP", "crv": "Ed25519", "x": "AAAA", "kid": "short"});
    let small = json!({"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "small"});
    let unusable = json!([encryption, other_algorithm, curve, short, small, "no key", {"kty": "new"}]);
    let error = with_key_set(unusable.clone()).err().unwrap().to_string();
    assert!(error.contains("auth.jwks_file") && error.contains("holds no key"), "{error}");
    let mut keys = unusable.as_array().unwrap().clone();
    keys.push(jwk(&ED.signing, Algorithm::EdDSA, Some("good")));
    let verifier = with_key_set(keys.into()).unwrap();
    assert_eq!(verifier.verify(&for_ada(Algorithm::EdDSA, &ED.signing)), ada());
    assert_eq!(verifier.verify(&for_ada(Algorithm::RS256, &RSA.signing)), Err(AuthError::NoKey));
}

#[test]
fn a_public_key_is_never_a_shared_secret() {
    for pem in [&RSA.public_pem, &ED.public_pem] {
        let verifier = with_public_key(pem).unwrap();
        let forged = EncodingKey::from_secret(pem.as_bytes()).unwrap();
        assert_eq!(verifier.verify(&for_ada(Algorithm::HS256, &forged)), Err(AuthError::NoKey));
    }
}

#[test]
fn a_key_proves_its_own_algorithm_only() {
    let secret = Verifier::from_config(&with_secret()).unwrap();
    assert_eq!(secret.verify(&for_ada(Algorithm::HS384, &hs256())), Err(AuthError::NoKey));
    assert_eq!(secret.verify(&for_ada(Algorithm::HS512, &hs256())), Err(AuthError::NoKey));
    let rsa = with_public_key(&RSA.public_pem).unwrap();
    assert_eq!(rsa.verify(&for_ada(Algorithm::RS512, &RSA.signing)), Err(AuthError::NoKey));
    assert_eq!(rsa.verify(&for_ada(Algorithm::PS256, &RSA.signing)), Err(AuthError::NoKey));
}

#[test]
fn none_is_no_algorithm() {
    let verifier = Verifier::from_config(&with_secret()).unwrap();
    let token = for_ada(Algorithm::HS256, &hs256());
    let (_, payload_and_signature) = token.split_once('.').unwrap();
    let (payload, signature) = payload_and_signature.split_once('.').unwrap();
    // {"alg":"none"}, {"alg":"None"}, {"alg":"NONE"}
    for header in ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJOb25lIn0", "eyJhbGciOiJOT05FIn0"] {
        for signature in ["", signature] {
            let forged = format!("{header}.{payload}.{signature}");
            assert_eq!(verifier.verify(&forged), Err(AuthError::Malformed), "{forged}");
        }
    }
}

#[test]
fn garbage_is_refused() {
    let verifier = Verifier::from_config(&with_secret()).unwrap();
    let token = for_ada(Algorithm::HS256, &hs256());
    for garbage in ["", ".", "..", "...", "a.b.c", "💥.💥.💥", &token[1..], &format!("{token}.{token}"), "eyJ9.e30."]
    {
        assert_eq!(verifier.verify(garbage), Err(AuthError::Malformed), "{garbage}");
    }
    let long = format!("{token}{}", "a".repeat(TOKEN_BYTES_MAX));
    assert_eq!(verifier.verify(&long), Err(AuthError::TooLong));
    let another = EncodingKey::from_secret(b"another secret").unwrap();
    assert_eq!(verifier.verify(&for_ada(Algorithm::HS256, &another)), Err(AuthError::Signature));
    let (message, _) = token.rsplit_once('.').unwrap();
    assert_eq!(verifier.verify(&format!("{message}.")), Err(AuthError::Signature));
}

#[test]
fn times_hold_where_they_are_present() {
    let verifier = Verifier::from_config(&with_secret()).unwrap();
    let verify = |claims: Value| verifier.verify(&signed(Algorithm::HS256, &hs256(), None, &claims));
    let now = get_current_timestamp();
    assert_eq!(verify(json!({"sub": "ada", "exp": now + 60, "nbf": now - 60})), ada());
    assert_eq!(verify(json!({"sub": "ada", "exp": now - 3_600})), Err(AuthError::Expired));
    assert_eq!(verify(json!({"sub": "ada", "nbf": now + 3_600})), Err(AuthError::NotYet));
    for malformed in [json!("soon"), json!(-1), json!([]), json!({})] {
        let claims = json!({"sub": "ada", "exp": malformed});
        assert_eq!(verify(claims), Err(AuthError::Claim), "{malformed}");
    }
    assert_eq!(verify(json!({"sub": "ada", "aud": ["an", "audience"]})), ada());
}

#[test]
fn the_issuer_is_checked_when_it_is_set() {
    let config = AuthConfig { issuer: Some("handy".to_owned()), ..with_secret() };
    let verifier = Verifier::from_config(&config).unwrap();
    let verify = |claims: Value| verifier.verify(&signed(Algorithm::HS256, &hs256(), None, &claims));
    assert_eq!(verify(json!({"sub": "ada", "iss": "handy"})), ada());
    assert_eq!(verify(json!({"sub": "ada", "iss": "mallory"})), Err(AuthError::Issuer));
    assert_eq!(verify(json!({"sub": "ada"})), Err(AuthError::Issuer));
}

#[test]
fn a_token_names_a_user() {
    let verifier = Verifier::from_config(&with_secret()).unwrap();
    let verify = |claims: Value| verifier.verify(&signed(Algorithm::HS256, &hs256(), None, &claims));
    let longest = "u".repeat(SUB_BYTES_MAX);
    assert_eq!(&*verify(json!({"sub": longest})).unwrap().sub, longest);
    assert_eq!(&*verify(json!({"sub": "a:b"})).unwrap().sub, "a:b");
    for wrong in [json!(null), json!(""), json!(7), json!("u".repeat(SUB_BYTES_MAX + 1))] {
        assert_eq!(verify(json!({"sub": wrong})), Err(AuthError::Subject), "{wrong}");
    }
    assert_eq!(verify(json!({})), Err(AuthError::Subject));
    // The library gives up on it before the type of `sub` is looked at.
    assert_eq!(verify(json!({"sub": ["ada"]})), Err(AuthError::Malformed));
}

#[test]
fn without_a_key_the_host_does_not_start() {
    let error = Verifier::from_config(&AuthConfig::default()).err().unwrap().to_string();
    for setting in ["auth.hs256_secret", "auth.public_key_file", "auth.jwks_file"] {
        assert!(error.contains(setting), "{error}");
    }
}

#[test]
fn a_wrong_key_file_is_named_and_not_quoted() {
    let ec = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
    for pem in [ec, "", "garbage", &RSA.private_pem, &ED.private_pem] {
        let error = with_public_key(pem).err().unwrap().to_string();
        assert!(error.starts_with("setting `auth.public_key_file`: "), "{error}");
        assert!(!error.contains("MII"), "{error}");
    }
    let missing = AuthConfig { jwks_file: Some("/no/such/keys.json".into()), ..AuthConfig::default() };
    let error = Verifier::from_config(&missing).err().unwrap().to_string();
    assert!(error.contains("auth.jwks_file") && error.contains("/no/such/keys.json"), "{error}");
    let not_json = file("{\"keys\": [{\"kty\": \"oct\", \"k\": \"c2VzYW1l\" \"}]}");
    let config = AuthConfig { jwks_file: Some(not_json.path().to_owned()), ..AuthConfig::default() };
    let error = Verifier::from_config(&config).err().unwrap().to_string();
    assert!(error.contains("line 1") && !error.contains("c2VzYW1l"), "{error}");
    let many: Vec<_> = (0..33).map(|_| jwk(&ED.signing, Algorithm::EdDSA, None)).collect();
    assert!(with_key_set(many.into()).err().unwrap().to_string().contains("33 keys"));
}
