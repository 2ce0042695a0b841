//! A policy's configuration: the operator's JSON, typed.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The `Config` of a policy that has nothing to set: any field is refused.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

/// Reads the operator's JSON; an empty text stands for the defaults, as `{}` does.
///
/// # Errors
/// What is wrong and where, in words for the operator. A field that `C` does not know is refused when `C`
/// says `#[serde(deny_unknown_fields)]`, which every policy's should: a misspelt setting must not be silently ignored.
pub fn parse_config<C: DeserializeOwned + Default>(json: &str) -> Result<C, String> {
    if json.is_empty() {
        return Ok(C::default());
    }
    // Serde would take a list for the fields in their order.
    if !json.trim_start().starts_with('{') {
        return Err("the configuration must be a JSON object".into());
    }
    serde_json::from_str(json).map_err(|error| error.to_string())
}

/// The longest span that a host takes for an answer, in milliseconds: one hour.
pub const SPAN_MAX_MS: u32 = 3_600_000;

/// Refuses a setting with which answers would be out of bounds: better at load than in every decision.
///
/// # Errors
/// The setting's name and value, if it is over [`SPAN_MAX_MS`].
pub fn check_span(name: &str, span_ms: u32) -> Result<(), String> {
    if span_ms > SPAN_MAX_MS { Err(format!("{name} {span_ms} is over an hour")) } else { Ok(()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    struct Config {
        wait_ms: u32,
    }

    #[test]
    fn a_span_is_an_hour_at_most() {
        assert_eq!(check_span("wait_ms", 3_600_000), Ok(()));
        assert_eq!(check_span("wait_ms", 3_600_001), Err("wait_ms 3600001 is over an hour".into()));
    }

    #[test]
    fn nothing_and_an_empty_object_are_the_defaults() {
        assert_eq!(parse_config::<Config>("").unwrap(), Config::default());
        assert_eq!(parse_config::<Config>(" {} ").unwrap(), Config::default());
    }

    #[test]
    fn an_error_names_what_is_wrong() {
        let unknown = parse_config::<Config>(r#"{"wait": 1}"#).unwrap_err();
        assert!(unknown.contains("unknown field `wait`"), "{unknown}");
        let negative = parse_config::<Config>(r#"{"wait_ms": -1}"#).unwrap_err();
        assert!(negative.contains("expected u32 at line 1"), "{negative}");
        assert!(parse_config::<NoConfig>(r#"{"wait_ms": 1}"#).is_err());
        for no_object in ["[]", "[1]", "null", "\"{}\""] {
            assert!(parse_config::<Config>(no_object).unwrap_err().contains("object"), "{no_object}");
        }
    }
}
