//! A whole number that cannot leave its range.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

/// A whole number from `MIN` to `MAX`, both included. The name of the setting states the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Bounded<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Bounded<MIN, MAX> {
    /// A constant number. If it is out of range, the program does not compile.
    pub const fn literal<const VALUE: u32>() -> Self {
        const { assert!(MIN <= VALUE && VALUE <= MAX) };
        Self(VALUE)
    }

    /// `None` when `value` is out of range.
    pub const fn new(value: u32) -> Option<Self> {
        if MIN <= value && value <= MAX { Some(Self(value)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number as a length or a count.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The number as milliseconds.
    pub const fn as_millis(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }
}

impl<const MIN: u32, const MAX: u32> fmt::Display for Bounded<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(BoundedVisitor)
    }
}

/// Names the range in each error, which serde's own messages do not.
struct BoundedVisitor<const MIN: u32, const MAX: u32>;

impl<const MIN: u32, const MAX: u32> BoundedVisitor<MIN, MAX> {
    fn refuse<E: de::Error>(given: impl fmt::Display) -> E {
        E::custom(format_args!("must be a whole number from {MIN} to {MAX}, not {given}"))
    }
}

impl<const MIN: u32, const MAX: u32> Visitor<'_> for BoundedVisitor<MIN, MAX> {
    type Value = Bounded<MIN, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {MIN} to {MAX}")
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        u32::try_from(value).ok().and_then(Bounded::new).ok_or_else(|| Self::refuse(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        match u64::try_from(value) {
            Ok(value) => self.visit_u64(value),
            Err(_) => Err(Self::refuse(value)),
        }
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        Err(Self::refuse(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
        Err(Self::refuse(format_args!("the text {value:?}")))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    type Deadline = Bounded<1, 1000>;

    #[test]
    fn the_range_includes_both_ends() {
        assert_eq!(Deadline::new(1).unwrap().get(), 1);
        assert_eq!(Deadline::new(1000).unwrap().get(), 1000);
        assert_eq!(Deadline::new(0), None);
        assert_eq!(Deadline::new(1001), None);
        assert_eq!(Deadline::literal::<4>().as_millis(), Duration::from_millis(4));
    }

    #[test]
    fn the_error_names_the_range() {
        for given in ["0", "1001", "-3", "4294967297", "2.5"] {
            let error = serde_json::from_str::<Deadline>(given).unwrap_err().to_string();
            let expected = format!("must be a whole number from 1 to 1000, not {given}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
