//! Reads settings that are texts or lists of texts.

use std::net::SocketAddr;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// A text or path that may be missing but not empty. An empty text is usually a variable that did not expand. To take it as "not set"
/// would disable, for example, the check of the issuer.
pub(in crate::config) fn non_empty<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: From<String>,
{
    match Option::<String>::deserialize(deserializer)? {
        Some(text) if text.is_empty() => Err(D::Error::custom("must not be empty")),
        text => Ok(text.map(T::from)),
    }
}

/// An address and a port to listen on. A host name is refused, because it would have to be resolved first.
pub(in crate::config) fn socket_addr<'de, D>(deserializer: D) -> Result<SocketAddr, D::Error>
where
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        D::Error::custom(format_args!("must be an IP address and a port, such as 127.0.0.1:3000, not `{text}`"))
    })
}

/// A list of texts. The environment and the flags know no lists, so there it is one text with commas.
#[derive(Deserialize)]
#[serde(untagged)]
pub(in crate::config) enum ListOrText {
    List(Vec<String>),
    Text(String),
}

impl ListOrText {
    pub(in crate::config) fn into_vec(self) -> Vec<String> {
        match self {
            Self::List(list) => list,
            Self::Text(text) => text.split(',').map(|item| item.trim().to_owned()).collect(),
        }
    }
}

/// Reads a list of `items`.
pub(in crate::config) fn list<'de, D: Deserializer<'de>>(deserializer: D, items: &str) -> Result<ListOrText, D::Error> {
    let problem = || format!("must be a list of {items}, or one text with commas between them");
    ListOrText::deserialize(deserializer).map_err(|_| D::Error::custom(problem()))
}

/// A pattern of methods. It is a label too, so it must not be `other`.
pub(in crate::config) fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let pattern = name(deserializer)?;
    if pattern == OTHER {
        return Err(D::Error::custom(OTHER_IS_TAKEN));
    }
    Ok(pattern)
}

/// The metric label of all methods without a label of their own.
pub(crate) const OTHER: &str = "other";

pub(in crate::config) const OTHER_IS_TAKEN: &str =
    "must not be `other`, which all methods without a label are counted as; `othe?` matches a method of that name";

/// A name of 1 to 256 bytes.
pub(in crate::config) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.is_empty() || name.len() > 256 {
        return Err(D::Error::custom("must be a name of 1 to 256 bytes"));
    }
    Ok(name)
}
