//! Who a token speaks for.

mod keys;
#[cfg(test)]
mod tests;
pub mod token;
mod verifier;

pub use self::{
    keys::AuthConfigError,
    verifier::{AuthError, DEVICE_SCOPE, SUB_BYTES_MAX, TOKEN_BYTES_MAX, TokenClaims, Verifier},
};
