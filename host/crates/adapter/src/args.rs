//! The arguments of an event or of an acknowledgement.

use std::fmt;

use rmpv::Value;
use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The arguments of an event or of an acknowledgement, however many there are.
///
/// Of msgpack's values and not of JSON's: those keep binary attachments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Args(pub Vec<Value>);

impl Args {
    /// The first argument; `undefined` in JavaScript when there is none.
    #[must_use]
    pub fn into_first(self) -> Option<Value> {
        self.0.into_iter().next()
    }
}

/// The same, of arguments that are somebody else's.
pub(crate) struct Spread<'a>(pub(crate) &'a [Value]);

/// Socketioxide spreads what is (de)serialized as a tuple over the arguments, and treats all else as the first of them.
impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ArgsVisitor;
        impl<'de> Visitor<'de> for ArgsVisitor {
            type Value = Args;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the arguments of an event")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Args, A::Error> {
                let mut args = Vec::new();
                while let Some(arg) = seq.next_element()? {
                    args.push(arg);
                }
                Ok(Args(args))
            }
        }
        deserializer.deserialize_tuple(usize::MAX, ArgsVisitor)
    }
}

impl Serialize for Args {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Spread(&self.0).serialize(serializer)
    }
}

impl Serialize for Spread<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(self.0.len())?;
        for arg in self.0 {
            tuple.serialize_element(arg)?;
        }
        tuple.end()
    }
}
