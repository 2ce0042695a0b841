//! Writes documents and reports as JSON and reads them. Replicas of different versions read each other's JSON, so a name never
//! changes its meaning, and unknown members are ignored.
//!
//! ```json
//! {"version":7,"current":"<digest>","since_ms":1800000000000,"history":["<digest>",null],
//!  "pending":{"digest":"<digest>","pushed_ms":1800000000000,"force":false},
//!  "failed":{"digest":"<digest>","pushed_ms":1800000000000,"replica":"<uid>","kind":"timeout","message":"…","at_ms":1800000000000},
//!  "quarantined":[{"digest":"<digest>","why":"…","replica":"<uid>","at_ms":1800000000000}]}
//! ```
//! `null` where a digest may stand is the native rule. A report is
//! `{"digest":…,"generation":3,"push":<pushed_ms>,"prepared":"<digest>","error":{"digest":…,"kind":…,"message":…}}`.

use std::sync::Arc;

use pointwork_core::rollout::{Document, FailedPush, PendingPush, QuarantinedDigest, ReplicaReport, ReportError};
use serde::{Deserialize, Serialize};

/// The longest message of an error. Every replica reads it once a second.
const MESSAGE_BYTES_MAX: usize = 1_024;

pub(super) fn write_document(document: &Document) -> String {
    // JSON cannot express maps whose keys are not texts, and a document has none.
    serde_json::to_string(&DocumentJson::write(document)).unwrap_or_default()
}

/// Reads a document; an empty text means that there is none.
pub(super) fn read_document(text: &[u8]) -> Result<Document, serde_json::Error> {
    if text.is_empty() {
        return Ok(Document::default());
    }
    serde_json::from_slice::<DocumentJson>(text).map(Json::read)
}

pub(super) fn write_report(report: &ReplicaReport) -> String {
    serde_json::to_string(&ReportJson::write(report)).unwrap_or_default()
}

/// Reads a report, and the time by the store's clock when it was written.
pub(super) fn read_report(text: &str) -> Option<(u64, ReplicaReport)> {
    let (at_ms, json) = text.split_once('\n')?;
    Some((at_ms.parse().ok()?, serde_json::from_str::<ReportJson>(json).ok()?.read()))
}

/// The beginning of a text, at most [`MESSAGE_BYTES_MAX`] bytes.
pub(super) fn bounded(text: &str) -> String {
    let end = (0..=MESSAGE_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].to_owned()
}

/// A type of the JSON that stands for `T`.
pub(super) trait Json<T> {
    fn write(value: &T) -> Self;
    fn read(self) -> T;
}

impl Json<Arc<str>> for String {
    fn write(value: &Arc<str>) -> Self {
        value.to_string()
    }

    fn read(self) -> Arc<str> {
        self.into()
    }
}

impl Json<Self> for String {
    fn write(value: &Self) -> Self {
        bounded(value)
    }

    fn read(self) -> Self {
        self
    }
}

impl<T, J: Json<T>> Json<Option<T>> for Option<J> {
    fn write(value: &Option<T>) -> Self {
        value.as_ref().map(J::write)
    }

    fn read(self) -> Option<T> {
        self.map(J::read)
    }
}

impl<T, J: Json<T>> Json<Vec<T>> for Vec<J> {
    fn write(value: &Vec<T>) -> Self {
        value.iter().map(J::write).collect()
    }

    fn read(self) -> Vec<T> {
        self.into_iter().map(J::read).collect()
    }
}

macro_rules! json_copy {
    ($($type:ty),*) => {$(
        impl Json<$type> for $type {
            fn write(value: &$type) -> Self {
                *value
            }

            fn read(self) -> $type {
                self
            }
        }
    )*};
}
json_copy!(u64, bool);

/// Declares the JSON of a struct, which has a member for each field.
macro_rules! json_of {
    ($of:ident as $json:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* }) => {
        #[derive(Serialize, Deserialize)]
        pub(super) struct $json {
            $($(#[$attribute])* $field: $type,)*
        }

        impl Json<$of> for $json {
            fn write(value: &$of) -> Self {
                Self { $($field: Json::write(&value.$field),)* }
            }

            fn read(self) -> $of {
                $of { $($field: self.$field.read(),)* }
            }
        }
    };
}

json_of!(Document as DocumentJson {
    version: u64,
    current: Option<String>,
    since_ms: u64,
    #[serde(default)]
    history: Vec<Option<String>>,
    #[serde(default)]
    pending: Option<PendingJson>,
    #[serde(default)]
    failed: Option<FailedJson>,
    #[serde(default)]
    quarantined: Vec<QuarantinedJson>,
});

json_of!(PendingPush as PendingJson {
    digest: String,
    pushed_ms: u64,
    force: bool,
});

json_of!(FailedPush as FailedJson {
    digest: String,
    pushed_ms: u64,
    replica: Option<String>,
    kind: String,
    message: String,
    at_ms: u64,
});

json_of!(QuarantinedDigest as QuarantinedJson {
    digest: String,
    why: String,
    replica: String,
    at_ms: u64,
});

json_of!(ReplicaReport as ReportJson {
    #[serde(rename = "digest")]
    serving: Option<String>,
    generation: u64,
    push: Option<u64>,
    prepared: Option<String>,
    error: Option<ErrorJson>,
});

json_of!(ReportError as ErrorJson {
    digest: String,
    kind: String,
    message: String,
});

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_as_it_was_written() {
        let served = Document::default().push(&"a".into(), true, 7).unwrap().unwrap().moved(9);
        let pushed = served.push(&"b".into(), false, 11).unwrap().unwrap();
        let failed = pushed.fail(Some(&"r".into()), "link", "why", 12).quarantine(&"c".into(), "ü", &"r".into(), 13);
        for document in [Document::default(), served, pushed, failed] {
            assert_eq!(read_document(write_document(&document).as_bytes()).unwrap(), document);
        }
        assert_eq!(read_document(b"").unwrap(), Document::default());
        assert!(read_document(b"{").is_err());
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let error = ReportError { digest: "d".into(), kind: "memory".into(), message: "none".into() };
        let report = ReplicaReport {
            serving: Some("s".into()),
            generation: 3,
            push: Some(9),
            prepared: Some("p".into()),
            error: Some(error),
        };
        for report in [ReplicaReport::default(), report] {
            assert_eq!(read_report(&format!("17\n{}", write_report(&report))), Some((17, report)));
        }
        assert_eq!(read_report("17"), None);
    }

    #[test]
    fn cuts_a_message_between_characters() {
        let long = "ü".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(bounded(&long).len(), MESSAGE_BYTES_MAX);
        assert_eq!(bounded("a"), "a");
    }
}
