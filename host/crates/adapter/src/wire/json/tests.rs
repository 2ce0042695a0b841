use super::*;

#[test]
fn replaces_lone_surrogates_and_keeps_pairs() {
    let read = |text: &str| read(text).unwrap().as_str().unwrap().to_owned();
    assert_eq!(read(r#""a\ud83d""#), "a\u{fffd}");
    assert_eq!(read(r#""\ude00\ud83d\ud83d\ude00\\ud83d""#), "\u{fffd}\u{fffd}😀\\ud83d");
    assert_eq!(read(r#""é\\\ud83dé""#), "é\\\u{fffd}é");
}

#[test]
fn reports_other_errors() {
    for text in [r#""\ud83"#, r#"{"a":"\u"#, "{\"\\", r#"{"a":"\ud83d"#, "{\"a\":\"\\é", ""] {
        assert!(matches!(read(text), Err(DecodeError::Json(_))), "{text}");
    }
}

#[test]
fn writes_numbers_as_javascript_does() {
    let numbers = [1.0, -0.0, 0.1, 1e20, f64::NAN, 9_007_199_254_740_992.0].map(Value::F64);
    let value = Value::Array(numbers.to_vec());
    let text = write(&super::super::value::written(&value).unwrap()).unwrap();
    assert_eq!(text, "[1,0,0.1,1e+20,null,9007199254740992.0]");
}
