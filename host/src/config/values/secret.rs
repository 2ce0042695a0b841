//! Texts that must not be shown: keys, tokens, and addresses with a password.

use std::fmt;

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};

/// The placeholder for a secret.
const SHOWN: &str = "<set>";

/// A non-empty text. `Debug` and serialization show `<set>` instead.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// `None` if the text is empty.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty()).then_some(Self(text))
    }

    /// The text itself. Never log it or send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SHOWN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(SHOWN)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Otherwise the output of `pointwork config`, used as settings, would set a publicly known key.
        if text == SHOWN {
            return Err(D::Error::custom("is the placeholder `<set>`, not the secret itself"));
        }
        Self::new(text).ok_or_else(|| D::Error::custom("must not be empty"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn debug_and_serialization_hide_the_secret() {
        let secret = Secret::new("hunter2").unwrap();
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "<set> Some(<set>)");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"<set>\"");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn rejects_the_empty_text_and_the_placeholder() {
        assert!(serde_json::from_str::<Secret>("\"\"").is_err());
        assert!(serde_json::from_str::<Secret>("\"<set>\"").is_err());
    }
}
