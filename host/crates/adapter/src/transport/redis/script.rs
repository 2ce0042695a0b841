//! Runs a script.

use bytes::Bytes;
use fred::interfaces::ClientLike;
use fred::types::{ClusterHash, CustomCommand, Value};

use super::link::Link;
use super::reply;
use crate::transport::types::TransportError;

/// What a script gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptReply {
    /// `nil`, or `false`.
    Nothing,
    /// A number, without what came after its point.
    Number(i64),
    /// A string.
    Text(Bytes),
    /// A table, up to its first `nil`.
    List(Vec<ScriptReply>),
}

/// Sends EVAL with the script's text. Redis compiles a text once, and there is nothing to load again when it forgot its
/// scripts. It is not fred's own `eval`, which lets nothing else onto the connection until the answer is there.
pub(super) async fn evaluate(
    link: &Link,
    script: &'static str,
    keys: Vec<String>,
    args: Vec<Bytes>,
) -> Result<ScriptReply, TransportError> {
    let mut live = link.live()?;
    let client = live.client.clone();
    let eval = CustomCommand::new_static("EVAL", ClusterHash::FirstKey, false);
    let answer: Result<Value, _> = live.answer(client.custom(eval, arguments(script, keys, args))).await;
    if answer.as_ref().is_err_and(is_demoted) {
        link.doubt();
    }
    script_reply(answer?)
}

/// The text, the number of keys, the keys, the rest.
fn arguments(script: &'static str, keys: Vec<String>, args: Vec<Bytes>) -> Vec<Value> {
    let count = Value::from(keys.len().to_string());
    let keys = keys.into_iter().map(Value::from);
    let args = args.into_iter().map(Value::Bytes);
    [Value::from_static_str(script), count].into_iter().chain(keys).chain(args).collect()
}

/// After a failover the old master lives on as a replica. Redis 6 wraps the code into a text of its own.
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
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn arguments_stand_where_eval_wants_them() {
        let sent = arguments("return 1", vec!["k".to_owned(), "l".to_owned()], vec![Bytes::from_static(b"\xff")]);
        let bytes: Vec<Bytes> = sent.into_iter().map(|value| reply::bytes(value).unwrap()).collect();
        assert_eq!(bytes, [&b"return 1"[..], b"2", b"k", b"l", b"\xff"]);
    }

    #[test]
    fn replies_are_read() {
        let nested = Value::Array(vec![Value::from("a"), Value::Null, Value::Array(vec![Value::from(-3)])]);
        let list =
            vec![ScriptReply::Text("a".into()), ScriptReply::Nothing, ScriptReply::List(vec![ScriptReply::Number(-3)])];
        assert_eq!(script_reply(nested), Ok(ScriptReply::List(list)));
        assert_eq!(
            script_reply(Value::Bytes(Bytes::from_static(b"\xff"))).unwrap(),
            ScriptReply::Text(b"\xff"[..].into())
        );
        assert!(matches!(script_reply(Value::Double(0.5)), Err(TransportError::Reply(_))));
    }

    #[test]
    fn a_demoted_server_is_known() {
        let refused = |why: &str| TransportError::Refused(why.to_owned());
        assert!(is_demoted(&refused("READONLY You can't write against a read only replica.")));
        assert!(is_demoted(&refused("ERR Error running script: @user_script:1: -READONLY You can't write")));
        assert!(!is_demoted(&refused("OOM command not allowed")));
    }
}
