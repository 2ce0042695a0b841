//! The id of a call as daemons say it: `<replica>-<call>`, both in hexadecimal.

use pointwork_core::CallId;

/// What an id names: the replica of a call, and the call.
pub(super) fn named(id: &str) -> Option<(String, CallId)> {
    let (owner, call) = id.split_once('-')?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_owner = owner.len() == 16 && is_hex(owner) && is_hex(call);
    Some((is_owner.then(|| owner.to_owned())?, CallId(u64::from_str_radix(call, 16).ok()?)))
}
