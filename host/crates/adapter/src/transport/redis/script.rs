//! Runs a Lua script.

use bytes::Bytes;
use fred::interfaces::ClientLike;
use fred::types::{ClusterHash, CustomCommand, Value};

use super::connection::Connection;
use super::reply;
use crate::transport::types::TransportError;

/// What a script returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptReply {
    /// `nil`, or `false`.
    Nothing,
    /// A number, without its fraction.
    Number(i64),
    /// A string.
    Text(Bytes),
    /// A table, up to its first `nil`.
    List(Vec<ScriptReply>),
}

/// Sends EVAL with the text of the script. Redis compiles a text once, and nothing must be loaded again when Redis has lost its
/// scripts. Fred's own `eval` is not used, because it blocks the connection until the answer arrives.
pub(super) async fn evaluate(
    connection: &Connection,
    script: &'static str,
    keys: Vec<String>,
    args: Vec<Bytes>,
) -> Result<ScriptReply, TransportError> {
    let mut live = connection.live()?;
    let client = live.client.clone();
    let eval = CustomCommand::new_static("EVAL", ClusterHash::FirstKey, false);
    let answer: Result<Value, _> = live.answer(client.custom(eval, arguments(script, keys, args))).await;
    if answer.as_ref().is_err_and(is_demoted) {
        connection.renew();
    }
    script_reply(answer?)
}

/// The text, the number of keys, the keys, the other arguments.
fn arguments(script: &'static str, keys: Vec<String>, args: Vec<Bytes>) -> Vec<Value> {
    let count = Value::from(keys.len().to_string());
    let keys = keys.into_iter().map(Value::from);
    let args = args.into_iter().map(Value::Bytes);
    [Value::from_static_str(script), count].into_iter().chain(keys).chain(args).collect()
}

/// After a failover the old master continues as a replica. Redis 6 puts the error code inside a text of its own.
fn is_demoted(error: &TransportError) -> bool {
    matches!(error, TransportError::Refused(why) if why.contains("READONLY"))
}

fn script_reply(value: Value) -> Result<ScriptReply, TransportError> {
    Ok(match value {
        Value::Null => ScriptReply::Nothing,
        Value::Integer(number) => ScriptReply::Number(number),
        Value::Array(values) => ScriptReply::List(values.into_iter().map(script_reply).collect::<Result<_, _>>()?),
        value => ScriptReply::Text(reply::bytes(value)?),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
