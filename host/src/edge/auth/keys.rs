//! Reads the keys that verify tokens, once at the start.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use serde::Deserialize;

use crate::config::AuthConfig;

/// The most keys in a key set. A token without a key id is tried with every key of its algorithm.
const JWKS_KEYS_MAX: usize = 32;

/// A shorter secret, in bytes, can be guessed from one token (RFC 7518, 3.2).
const SECRET_BYTES_ADVISED: usize = 32;

/// The sizes of RSA keys that the library accepts, in bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;

/// The size of an Ed25519 public key, in bytes.
const ED25519_BYTES: usize = 32;

/// Why the host cannot verify tokens. Every message names the setting.
#[derive(Debug, thiserror::Error)]
pub enum AuthConfigError {
    /// No key is set, so no client could connect.
    #[error("no key to verify tokens with: set `auth.hs256_secret`, `auth.public_key_file` or `auth.jwks_file`")]
    NoKeys,
    /// A key file cannot be read.
    #[error("setting `{setting}`: cannot read {}", path.display())]
    Read {
        /// `auth.public_key_file` or `auth.jwks_file`.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A key or its file cannot be used.
    #[error("setting `{setting}`: {problem}")]
    Unusable {
        /// The setting.
        setting: &'static str,
        /// What is wrong, with the file's name.
        problem: String,
    },
}

/// A key and its only algorithm.
pub(super) struct TokenKey {
    pub(super) algorithm: Algorithm,
    pub(super) decoding: DecodingKey,
    id: Option<String>,
}

impl TokenKey {
    /// Whether this key may have signed a token with this algorithm and key id. If the key or the token has no id, the key is tried.
    pub(super) fn may_have_signed(&self, algorithm: Algorithm, id: Option<&str>) -> bool {
        let same_id = match (&self.id, id) {
            (Some(own), Some(id)) => own == id,
            _ => true,
        };
        self.algorithm == algorithm && same_id
    }
}

/// All keys of the settings, at least one.
pub(super) fn load(config: &AuthConfig) -> Result<Vec<TokenKey>, AuthConfigError> {
    let mut keys = Vec::new();
    if let Some(secret) = &config.hs256_secret {
        let secret = secret.expose().as_bytes();
        if secret.len() < SECRET_BYTES_ADVISED {
            tracing::warn!(bytes = secret.len(), "auth.hs256_secret is short: use {SECRET_BYTES_ADVISED} random bytes");
        }
        let decoding = DecodingKey::from_secret(secret).map_err(|error| unusable("auth.hs256_secret", error))?;
        keys.push(TokenKey { algorithm: Algorithm::HS256, decoding, id: None });
    }
    if let Some(path) = &config.public_key_file {
        let setting = "auth.public_key_file";
        let pem = read(setting, path)?;
        let key = public_key(&pem).map_err(|problem| in_file(setting, path, problem))?;
        keys.push(key);
    }
    if let Some(path) = &config.jwks_file {
        let setting = "auth.jwks_file";
        let json = read(setting, path)?;
        keys.extend(key_set(&json).map_err(|problem| in_file(setting, path, problem))?);
    }
    if keys.is_empty() { Err(AuthConfigError::NoKeys) } else { Ok(keys) }
}

/// A public key in PEM, of the kind that its own algorithm identifier states.
fn public_key(pem: &str) -> Result<TokenKey, String> {
    if pem.contains("PRIVATE KEY-----") {
        return Err("holds a private key; give the host the public one".to_owned());
    }
    // The library would accept a certificate as a key, and read the wrong bits of it.
    if !pem.contains("-----BEGIN PUBLIC KEY-----") && !pem.contains("-----BEGIN RSA PUBLIC KEY-----") {
        return Err("has no PEM block `PUBLIC KEY`".to_owned());
    }
    if let Ok(decoding) = DecodingKey::from_rsa_pem(pem.as_bytes()) {
        // The library parses an RSA key only when it verifies. Reading its components proves that it is one.
        let jwk = Jwk::from_decoding_key(&decoding, Some(Algorithm::RS256)).map_err(|error| error.to_string())?;
        return from_jwk(&jwk);
    }
    match DecodingKey::from_ed_pem(pem.as_bytes()) {
        Ok(decoding) => ed25519(decoding),
        Err(_) => Err("is neither an RSA nor an Ed25519 public key".to_owned()),
    }
}

/// The usable keys of a JSON Web Key Set. Other keys are skipped with a warning, because issuers publish keys for other uses in the
/// same set.
fn key_set(json: &str) -> Result<Vec<TokenKey>, String> {
    #[derive(Deserialize)]
    struct KeySet {
        keys: Vec<serde_json::Value>,
    }
    // The parser's message may quote a secret, so only the position is reported.
    let set: KeySet = serde_json::from_str(json)
        .map_err(|error| format!("is not a JSON Web Key Set (line {}, column {})", error.line(), error.column()))?;
    if set.keys.len() > JWKS_KEYS_MAX {
        return Err(format!("holds {} keys; the most is {JWKS_KEYS_MAX}", set.keys.len()));
    }
    let mut keys = Vec::new();
    for (index, key) in set.keys.into_iter().enumerate() {
        let parsed = serde_json::from_value::<Jwk>(key).map_err(|_| "it is not a JSON Web Key".to_owned());
        match parsed.and_then(|jwk| from_jwk(&jwk)) {
            Ok(key) => keys.push(key),
            Err(problem) => tracing::warn!(index, problem, "a key of auth.jwks_file is not used"),
        }
    }
    if keys.is_empty() {
        return Err("holds no key for HS256, RS256 or EdDSA (Ed25519)".to_owned());
    }
    Ok(keys)
}

fn from_jwk(jwk: &Jwk) -> Result<TokenKey, String> {
    if matches!(&jwk.common.public_key_use, Some(purpose) if *purpose != PublicKeyUse::Signature) {
        return Err("it is not for signatures".to_owned());
    }
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::OctetKey(_) => Algorithm::HS256,
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => Algorithm::EdDSA,
        _ => return Err("its kind is not RSA, oct or Ed25519".to_owned()),
    };
    if matches!(jwk.common.key_algorithm, Some(stated) if stated != algorithm.into()) {
        return Err("it is for an algorithm other than HS256, RS256 or EdDSA".to_owned());
    }
    let decoding = DecodingKey::from_jwk(jwk).map_err(|_| "its numbers are malformed".to_owned())?;
    let key = match algorithm {
        Algorithm::EdDSA => ed25519(decoding)?,
        Algorithm::RS256 => rsa(decoding)?,
        _ => TokenKey { algorithm, decoding, id: None },
    };
    Ok(TokenKey { id: jwk.common.key_id.clone(), ..key })
}

fn rsa(decoding: DecodingKey) -> Result<TokenKey, String> {
    let bits = match decoding.kind() {
        DecodingKeyKind::RsaModulusExponent { n, .. } => {
            let leading = n.iter().take_while(|&&byte| byte == 0).count();
            (n.len() - leading) * 8
        }
        DecodingKeyKind::SecretOrDer(_) => 0,
    };
    if !RSA_BITS.contains(&bits) {
        return Err(format!("its RSA key has {bits} bits; it must have {} to {}", RSA_BITS.start(), RSA_BITS.end()));
    }
    Ok(TokenKey { algorithm: Algorithm::RS256, decoding, id: None })
}

fn ed25519(decoding: DecodingKey) -> Result<TokenKey, String> {
    match decoding.try_get_as_bytes() {
        Ok(bytes) if bytes.len() == ED25519_BYTES => Ok(TokenKey { algorithm: Algorithm::EdDSA, decoding, id: None }),
        _ => Err("its Ed25519 key does not have 32 bytes".to_owned()),
    }
}

fn read(setting: &'static str, path: &Path) -> Result<String, AuthConfigError> {
    std::fs::read_to_string(path).map_err(|source| AuthConfigError::Read { setting, path: path.to_owned(), source })
}

fn in_file(setting: &'static str, path: &Path, problem: String) -> AuthConfigError {
    unusable(setting, format!("{} {problem}", path.display()))
}

fn unusable(setting: &'static str, problem: impl Display) -> AuthConfigError {
    AuthConfigError::Unusable { setting, problem: problem.to_string() }
}
