//! How single settings are read that are more than a number and less than a type of their own.

use std::net::SocketAddr;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// A text or path that may be left out but not be empty: an empty one is most often a variable that did not expand,
/// and to take it for "not set" would drop, say, the check of the issuer.
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

/// An address to listen on, with its port; a host name would have to be resolved first and is refused.
pub(in crate::config) fn socket_addr<'de, D>(deserializer: D) -> Result<SocketAddr, D::Error>
where
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        D::Error::custom(format_args!("must be an IP address and a port, such as 127.0.0.1:3000, not `{text}`"))
    })
}

/// A pattern of methods: it is a label too, and `other` is that of whatever has none of its own.
pub(in crate::config) fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let pattern = name(deserializer)?;
    if pattern == OTHER {
        return Err(D::Error::custom(OTHER_IS_TAKEN));
    }
    Ok(pattern)
}

/// The label of all methods without a label of their own.
pub(crate) const OTHER: &str = "other";

pub(in crate::config) const OTHER_IS_TAKEN: &str =
    "must not be `other`, which all methods without a label are counted as; `othe?` matches a method of that name";

/// A name that is shared with others: not empty, at most 256 bytes.
pub(in crate::config) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.is_empty() || name.len() > 256 {
        return Err(D::Error::custom("must be a name of 1 to 256 bytes"));
    }
    Ok(name)
}
