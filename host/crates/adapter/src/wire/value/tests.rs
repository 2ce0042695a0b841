use super::*;

/// Each pair as Node prints it: `new Date(ms).toISOString()`.
const DATES: [(i64, &str); 9] = [
    (0, "1970-01-01T00:00:00.000Z"),
    (-1, "1969-12-31T23:59:59.999Z"),
    (1_709_209_845_678, "2024-02-29T12:30:45.678Z"),
    (951_782_400_000, "2000-02-29T00:00:00.000Z"),
    (4_294_967_296_000, "2106-02-07T06:28:16.000Z"),
    (253_402_300_800_000, "+010000-01-01T00:00:00.000Z"),
    (-62_198_755_200_000, "-000001-01-01T00:00:00.000Z"),
    (8_640_000_000_000_000, "+275760-09-13T00:00:00.000Z"),
    (-8_640_000_000_000_000, "-271821-04-20T00:00:00.000Z"),
];

#[test]
fn writes_dates_as_javascript_does() {
    for (ms, text) in DATES {
        let mut value = Value::Array(vec![date(ms)]);
        assert_eq!(as_date(&value.as_array().unwrap()[0]), Some(ms));
        dates_to_text(&mut value);
        assert_eq!(value, Value::Array(vec![text.into()]));
    }
}

#[test]
fn a_date_outside_the_range_of_javascript_is_null() {
    for bytes in [date(i64::MAX), date(8_640_000_000_000_001), Value::Ext(TIMESTAMP, vec![1, 2, 3])] {
        let mut value = bytes;
        dates_to_text(&mut value);
        assert_eq!(value, Value::Nil);
    }
}

#[test]
fn refuses_data_that_nests_too_deep() {
    let nest = |levels| (0..levels).fold(Value::Nil, |inner, _| Value::Array(vec![inner]));
    assert!(written(&nest(DEPTH_MAX)).is_ok());
    assert!(matches!(written(&nest(DEPTH_MAX + 1)), Err(EncodeError::TooDeep { .. })));
}
