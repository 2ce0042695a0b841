//! Represents JavaScript values as [`Value`]s: dates, binary and numbers.
//!
//! `Buffer` and typed arrays are [`Value::Binary`], a `Date` is the timestamp extension of msgpack, and `undefined` is nil. A whole
//! number is written as an integer, as JavaScript does, even if it is a float here.

use rmpv::{Value, ValueRef};

use super::error::EncodeError;
use super::limits::DEPTH_MAX;

/// The extension type of msgpack's timestamps.
const TIMESTAMP: i8 = -1;
/// JavaScript's `Number.MAX_SAFE_INTEGER`.
const SAFE_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;
/// JavaScript's dates end 100 million days from 1970, in milliseconds.
const DATE_MS_MAX: i64 = 8_640_000_000_000_000;

/// A date, given in milliseconds since 1970.
pub fn date(ms: i64) -> Value {
    let (secs, nanos) = (ms.div_euclid(1000), ms.rem_euclid(1000) as u32 * 1_000_000);
    let bytes = match (u32::try_from(secs), nanos) {
        (Ok(secs), 0) => secs.to_be_bytes().to_vec(),
        _ if (0..1 << 34).contains(&secs) => (u64::from(nanos) << 34 | secs as u64).to_be_bytes().to_vec(),
        _ => [&nanos.to_be_bytes()[..], &secs.to_be_bytes()[..]].concat(),
    };
    Value::Ext(TIMESTAMP, bytes)
}

/// A date in milliseconds since 1970. `None` if the value is not a date.
pub fn as_date(value: &Value) -> Option<i64> {
    match value {
        Value::Ext(TIMESTAMP, bytes) => timestamp_ms(bytes),
        _ => None,
    }
}

/// Replaces every date by its ISO 8601 text. Clients get the text, because their JSON has no dates.
pub fn dates_to_text(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(dates_to_text),
        Value::Map(pairs) => pairs.iter_mut().for_each(|(_, item)| dates_to_text(item)),
        Value::Ext(TIMESTAMP, bytes) => *value = iso8601(bytes).map_or(Value::Nil, Value::from),
        _ => {}
    }
}

/// The ISO 8601 text of a timestamp's bytes, as JavaScript's `toISOString` writes it. `None` for an invalid date.
pub(super) fn iso8601(timestamp: &[u8]) -> Option<String> {
    let ms = timestamp_ms(timestamp).filter(|ms| (-DATE_MS_MAX..=DATE_MS_MAX).contains(ms))?;
    let (days, ms) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let year = match year {
        0..=9999 => format!("{year:04}"),
        _ => format!("{year:+07}"),
    };
    let (hour, minute, second, milli) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
    Some(format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"))
}

/// Whether a value is a date, by its extension type.
pub(super) fn is_timestamp(ext: i8) -> bool {
    ext == TIMESTAMP
}

/// The value as it is written: its numbers are those that JavaScript writes. Fails if it nests too deep.
pub(super) fn written(value: &Value) -> Result<ValueRef<'_>, EncodeError> {
    written_at(value, DEPTH_MAX)
}

fn written_at(value: &Value, depth_left: usize) -> Result<ValueRef<'_>, EncodeError> {
    let deeper = || depth_left.checked_sub(1).ok_or(EncodeError::TooDeep { max: DEPTH_MAX });
    Ok(match value {
        Value::F32(number) => number_as_written(f64::from(*number)),
        Value::F64(number) => number_as_written(*number),
        Value::Array(items) => {
            let depth = deeper()?;
            ValueRef::Array(items.iter().map(|item| written_at(item, depth)).collect::<Result<_, _>>()?)
        }
        Value::Map(pairs) => {
            let depth = deeper()?;
            let pair = |(key, item)| Ok((written_at(key, depth)?, written_at(item, depth)?));
            ValueRef::Map(pairs.iter().map(|(key, item)| pair((key, item))).collect::<Result<_, EncodeError>>()?)
        }
        scalar => scalar.as_ref(),
    })
}

fn number_as_written(number: f64) -> ValueRef<'static> {
    if number.fract() == 0.0 && number.abs() <= SAFE_INTEGER_MAX {
        ValueRef::from(number as i64)
    } else {
        ValueRef::F64(number)
    }
}

fn timestamp_ms(bytes: &[u8]) -> Option<i64> {
    let (secs, nanos) = match bytes.len() {
        4 => (i64::from(u32::from_be_bytes(bytes.try_into().ok()?)), 0),
        8 => {
            let both = u64::from_be_bytes(bytes.try_into().ok()?);
            ((both & ((1 << 34) - 1)) as i64, (both >> 34) as i64)
        }
        12 => {
            let (nanos, secs) = bytes.split_at(4);
            let nanos = u32::from_be_bytes(nanos.try_into().ok()?);
            (i64::from_be_bytes(secs.try_into().ok()?), i64::from(nanos))
        }
        _ => return None,
    };
    secs.checked_mul(1000)?.checked_add(nanos / 1_000_000)
}

/// The Gregorian date of a day that is counted from 1970-01-01. Days are counted in eras of 400 years. The year starts in March here,
/// so that the leap day is its last day.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
