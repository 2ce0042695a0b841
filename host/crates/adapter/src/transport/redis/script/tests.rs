use super::*;

#[test]
fn orders_the_arguments_of_eval() {
    let sent = arguments("return 1", vec!["k".to_owned(), "l".to_owned()], vec![Bytes::from_static(b"\xff")]);
    let bytes: Vec<Bytes> = sent.into_iter().map(|value| reply::bytes(value).unwrap()).collect();
    assert_eq!(bytes, [&b"return 1"[..], b"2", b"k", b"l", b"\xff"]);
}

#[test]
fn converts_the_replies_of_scripts() {
    let nested = Value::Array(vec![Value::from("a"), Value::Null, Value::Array(vec![Value::from(-3)])]);
    let list =
        vec![ScriptReply::Text("a".into()), ScriptReply::Nothing, ScriptReply::List(vec![ScriptReply::Number(-3)])];
    assert_eq!(script_reply(nested), Ok(ScriptReply::List(list)));
    assert_eq!(script_reply(Value::Bytes(Bytes::from_static(b"\xff"))).unwrap(), ScriptReply::Text(b"\xff"[..].into()));
    assert!(matches!(script_reply(Value::Double(0.5)), Err(TransportError::Reply(_))));
}

#[test]
fn recognizes_a_demoted_server() {
    let refused = |why: &str| TransportError::Refused(why.to_owned());
    assert!(is_demoted(&refused("READONLY You can't write against a read only replica.")));
    assert!(is_demoted(&refused("ERR Error running script: @user_script:1: -READONLY You can't write")));
    assert!(!is_demoted(&refused("OOM command not allowed")));
}
