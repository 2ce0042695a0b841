//! `[metrics]`: what `/metrics` tells apart.

use serde::de::{Deserializer, Error as _};

use crate::config::values::bounded::Bounded;
use crate::config::values::section::section;
use crate::config::values::text::{self, ListOrText};

section! {
    /// Labels that clients have a say in.
    pub struct MetricsConfig {
        /// Methods that are counted under a label of their own: patterns (`*` any text, `?` one character), each of which is its
        /// label, but for `other`, which is one already. The first that matches counts; those of `[[rpc.method]]` come after them.
        #[serde(deserialize_with = "patterns")]
        pub method_labels: Vec<String> = Vec::new(),
        /// How many methods without a pattern have a label because a daemon registered them, first come; of one user's half of them at
        /// most. Each costs up to 26 series; 0 for none.
        pub methods_max: Bounded<0, 1_000> = Bounded::literal::<50>(),
    }
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let given = match text::list(deserializer, "patterns")? {
        ListOrText::Text(text) if text.is_empty() => Vec::new(),
        given => given.into_vec(),
    };
    if given.iter().any(|pattern| pattern == text::OTHER) {
        return Err(D::Error::custom(text::OTHER_IS_TAKEN));
    }
    match given.iter().find(|pattern| pattern.is_empty() || pattern.len() > 256) {
        None if given.len() <= 100 => Ok(given),
        None => Err(D::Error::custom("must be 100 patterns at most")),
        Some(_) => Err(D::Error::custom("must be patterns of 1 to 256 bytes")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_are_a_list_or_a_text_with_commas() {
        let of = |labels| {
            let config = serde_json::from_value::<MetricsConfig>(json!({"method_labels": labels, "methods_max": 1}));
            config.map(|config| config.method_labels)
        };
        assert_eq!(of(json!(["*:bash", "term-*"])).unwrap(), ["*:bash", "term-*"]);
        assert_eq!(of(json!("*:bash, term-*")).unwrap(), ["*:bash", "term-*"]);
        assert_eq!(of(json!("")).unwrap(), [""; 0]);
        for wrong in [
            json!([""]),
            json!("a,,b"),
            json!(["other"]),
            json!("a,other"),
            json!(["a".repeat(257)]),
            json!(vec!["a"; 101]),
            json!(3),
        ] {
            assert!(of(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
