//! Reads JSON values of any type without an error, because clients may send anything in a handshake.

use std::{fmt, marker::PhantomData};

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A value that is no list and no object, as JavaScript would see it.
pub(super) enum Scalar<'a> {
    /// A text.
    Text(&'a str),
    /// Anything else, by whether JavaScript takes it for true.
    Other { is_truthy: bool },
}

/// A type that can be read from every JSON value. Types that it does not expect give its default.
pub(super) trait FromAnyValue: Default {
    /// Reads null, a boolean, a number or a text.
    fn from_scalar(_: Scalar<'_>) -> Self {
        Self::default()
    }

    /// Reads a list.
    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    /// Reads an object.
    fn from_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// The body of `Deserialize` for such a type.
pub(super) fn deserialize<'de, T: FromAnyValue, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(AnyVisitor(PhantomData))
}

struct AnyVisitor<T>(PhantomData<T>);

impl<T: FromAnyValue> AnyVisitor<T> {
    fn scalar<E>(is_truthy: bool) -> Result<T, E> {
        Ok(T::from_scalar(Scalar::Other { is_truthy }))
    }
}

impl<'de, T: FromAnyValue> Visitor<'de> for AnyVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Self::scalar(false)
    }

    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Self::scalar(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Self::scalar(value != 0)
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Self::scalar(value != 0)
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Self::scalar(value != 0.0)
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<T, E> {
        Self::scalar(true)
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::from_scalar(Scalar::Text(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::from_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::from_object(object)
    }
}
