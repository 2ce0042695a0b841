//! Reads a map field by field, within the [`Limits`].

use rmpv::{Utf8String, Value};

use super::error::DecodeError;
use super::limits::Limits;

/// The fields of a map. Each is taken out by its name. A nil field counts as missing, because `undefined` is nil.
pub(super) struct Fields<'a> {
    pairs: Vec<(Value, Value)>,
    pub(super) limits: &'a Limits,
}

impl<'a> Fields<'a> {
    pub(super) fn of(field: &'static str, value: Value, limits: &'a Limits) -> Result<Self, DecodeError> {
        match value {
            Value::Map(pairs) => Ok(Fields { pairs, limits }),
            Value::Nil => Err(DecodeError::Missing { field }),
            _ => Err(wrong(field, "a map")),
        }
    }

    /// A field of any type; nil if it is missing. If two fields have the same name, the last counts, as in JavaScript.
    pub(super) fn take(&mut self, field: &str) -> Value {
        let found = self.pairs.iter().rposition(|(key, _)| key.as_str() == Some(field));
        found.map_or(Value::Nil, |at| self.pairs.remove(at).1)
    }

    pub(super) fn name(&mut self, field: &'static str) -> Result<String, DecodeError> {
        self.optional_name(field)?.ok_or(DecodeError::Missing { field })
    }

    pub(super) fn optional_name(&mut self, field: &'static str) -> Result<Option<String>, DecodeError> {
        match self.take(field) {
            Value::Nil => Ok(None),
            Value::String(text) => text_within(field, text, self.limits).map(Some),
            _ => Err(wrong(field, "text")),
        }
    }

    pub(super) fn count(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        match self.take(field) {
            Value::Nil => Err(DecodeError::Missing { field }),
            value => value.as_u64().ok_or(wrong(field, "a whole number from 0 up")),
        }
    }

    pub(super) fn optional_bool(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        match self.take(field) {
            Value::Nil => Ok(false),
            Value::Boolean(value) => Ok(value),
            _ => Err(wrong(field, "true or false")),
        }
    }

    pub(super) fn list(&mut self, field: &'static str) -> Result<Vec<Value>, DecodeError> {
        match self.take(field) {
            Value::Array(items) => Ok(items),
            Value::Nil => Err(DecodeError::Missing { field }),
            _ => Err(wrong(field, "a list")),
        }
    }

    pub(super) fn rooms(&mut self, field: &'static str) -> Result<Vec<String>, DecodeError> {
        let list = Value::Array(self.list(field)?);
        self.rooms_of(field, list)
    }

    /// A room that is a whole number becomes its digits, because JavaScript accepts numbers as rooms. Anything else is an error. It is
    /// never left out, because an empty list would mean everyone.
    pub(super) fn rooms_of(&self, field: &'static str, list: Value) -> Result<Vec<String>, DecodeError> {
        let Value::Array(items) = list else { return Err(wrong(field, "a list")) };
        at_most(field, items.len(), self.limits.rooms_max)?;
        let room = |item| match item {
            Value::String(text) => text_within(field, text, self.limits),
            Value::Integer(number) => text_within(field, number.to_string().into(), self.limits),
            _ => Err(wrong(field, "a list of room names")),
        };
        items.into_iter().map(room).collect()
    }
}

fn text_within(field: &'static str, text: Utf8String, limits: &Limits) -> Result<String, DecodeError> {
    let (bytes, max) = (text.as_bytes().len(), limits.name_bytes_max);
    if bytes > max {
        return Err(DecodeError::TooLong { field, bytes, max });
    }
    text.into_str().ok_or(wrong(field, "UTF-8"))
}

pub(super) fn at_most(field: &'static str, count: usize, max: usize) -> Result<(), DecodeError> {
    if count > max { Err(DecodeError::TooMany { field, count, max }) } else { Ok(()) }
}

pub(super) fn wrong(field: &'static str, expected: &'static str) -> DecodeError {
    DecodeError::WrongType { field, expected }
}
