//! Numbers of a scenario that may be drawn: `250`, or `[100, 400]` for any number from 100 to 400.

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// The numbers from `min` to `max`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The least.
    pub min: u64,
    /// The greatest, not below `min`.
    pub max: u64,
}

impl Span {
    /// One number only.
    pub const fn one(number: u64) -> Span {
        Span { min: number, max: number }
    }
}

/// A span that a field has by default.
pub(super) fn span<const MIN: u64, const MAX: u64>() -> Span {
    Span { min: MIN, max: MAX }
}

/// A number that a field has by default.
pub(super) fn number<const NUMBER: u64>() -> u64 {
    NUMBER
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Span;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a number that is not negative, or [least, greatest]")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Span, E> {
        let number = u64::try_from(number);
        number.map(Span::one).map_err(|_| E::custom("must not be negative"))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Span, E> {
        Ok(Span::one(number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Span, A::Error> {
        let mut next = |index| numbers.next_element::<u64>()?.ok_or_else(|| A::Error::invalid_length(index, &self));
        let (min, max) = (next(0)?, next(1)?);
        if numbers.next_element::<u64>()?.is_some() {
            return Err(A::Error::invalid_length(3, &self));
        }
        if min > max {
            return Err(A::Error::custom(format!("[{min}, {max}]: the least comes first")));
        }
        Ok(Span { min, max })
    }
}
