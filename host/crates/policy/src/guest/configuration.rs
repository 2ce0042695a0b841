//! A policy's configuration.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::{Map, Value};

/// A policy's configuration: a JSON object, written as a table or as a text that holds JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyJson(Map<String, Value>);

impl PolicyJson {
    /// The object as JSON on one line, its keys in order: equal configurations are equal texts.
    pub fn to_json(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }
}

impl Serialize for PolicyJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // As a text: TOML has no null, which a policy's JSON may have.
        serializer.serialize_str(&self.to_json())
    }
}

impl<'de> Deserialize<'de> for PolicyJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = match Value::deserialize(deserializer)? {
            Value::String(text) => serde_json::from_str(&text)
                .map_err(|error| D::Error::custom(format_args!("must hold JSON: {error}")))?,
            value => value,
        };
        match value {
            Value::Object(map) => Ok(Self(map)),
            _ => Err(D::Error::custom("must be a table or a JSON object")),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_the_same_as_table_and_as_text() {
        let parse = |json: &str| serde_json::from_str::<PolicyJson>(json).unwrap();
        let table = parse(r#"{"b":[1,null],"a":{"x":true}}"#);
        let text = parse(r#""{\"a\": {\"x\": true}, \"b\": [1, null]}""#);
        assert_eq!(table, text);
        assert_eq!(table.to_json(), r#"{"a":{"x":true},"b":[1,null]}"#);
    }

    #[test]
    fn a_configuration_is_an_object() {
        for wrong in ["3", "[]", r#""""#, r#""[1]""#, r#""{""#] {
            assert!(serde_json::from_str::<PolicyJson>(wrong).is_err(), "{wrong}");
        }
    }
}
