//! Encodes and decodes the arguments of an event or of an acknowledgement.

use std::fmt;

use rmpv::Value;
use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The arguments of an event or of an acknowledgement, however many there are.
///
/// They are values of msgpack, because JSON values cannot hold binary attachments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Args(pub Vec<Value>);

impl Args {
    /// The first argument. JavaScript sees `undefined` if there is none.
    #[must_use]
    pub fn into_first(self) -> Option<Value> {
        self.0.into_iter().next()
    }
}

/// [`Args`] that are borrowed. They can only be encoded.
pub(crate) struct BorrowedArgs<'a>(pub(crate) &'a [Value]);

/// Socketioxide reads and writes a tuple as the list of arguments, and anything else as the first argument.
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
        BorrowedArgs(&self.0).serialize(serializer)
    }
}

impl Serialize for BorrowedArgs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(self.0.len())?;
        for arg in self.0 {
            tuple.serialize_element(arg)?;
        }
        tuple.end()
    }
}
