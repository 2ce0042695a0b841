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

use pointwork_core::rollout::{Document, Failed, Pending, Quarantined, Report, ReportError};
use serde::{Deserialize, Serialize};

/// The longest message of an error. Every replica reads it once a second.
const MESSAGE_BYTES_MAX: usize = 1_024;

pub(super) fn write_document(document: &Document) -> String {
    // JSON cannot express maps whose keys are not texts, and a document has none.
    serde_json::to_string(&DocumentJson::from(document)).unwrap_or_default()
}

/// Reads a document; an empty text means that there is none.
pub(super) fn read_document(text: &[u8]) -> Result<Document, serde_json::Error> {
    if text.is_empty() {
        return Ok(Document::default());
    }
    serde_json::from_slice::<DocumentJson>(text).map(Into::into)
}

pub(super) fn write_report(report: &Report) -> String {
    serde_json::to_string(&ReportJson::from(report)).unwrap_or_default()
}

/// Reads a report, and the time by the store's clock when it was written.
pub(super) fn read_report(text: &str) -> Option<(u64, Report)> {
    let (at_ms, json) = text.split_once('\n')?;
    Some((at_ms.parse().ok()?, serde_json::from_str::<ReportJson>(json).ok()?.into()))
}

/// The beginning of a text, at most [`MESSAGE_BYTES_MAX`] bytes.
pub(super) fn bounded(text: &str) -> String {
    let end = (0..=MESSAGE_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].to_owned()
}

/// A document as JSON, also in the admin API.
#[derive(Serialize, Deserialize)]
pub(super) struct DocumentJson {
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
}

#[derive(Serialize, Deserialize)]
struct PendingJson {
    digest: String,
    pushed_ms: u64,
    force: bool,
}

#[derive(Serialize, Deserialize)]
struct FailedJson {
    digest: String,
    pushed_ms: u64,
    replica: Option<String>,
    kind: String,
    message: String,
    at_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct QuarantinedJson {
    digest: String,
    why: String,
    replica: String,
    at_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct ReportJson {
    digest: Option<String>,
    generation: u64,
    push: Option<u64>,
    prepared: Option<String>,
    error: Option<ErrorJson>,
}

#[derive(Serialize, Deserialize)]
struct ErrorJson {
    digest: String,
    kind: String,
    message: String,
}

impl From<&Document> for DocumentJson {
    fn from(document: &Document) -> Self {
        let text = |digest: &std::sync::Arc<str>| digest.to_string();
        Self {
            version: document.version,
            current: document.current.as_ref().map(text),
            since_ms: document.since_ms,
            history: document.history.iter().map(|former| former.as_ref().map(text)).collect(),
            pending: document.pending.as_ref().map(|pending| PendingJson {
                digest: text(&pending.digest),
                pushed_ms: pending.pushed_ms,
                force: pending.force,
            }),
            failed: document.failed.as_ref().map(|failed| FailedJson {
                digest: text(&failed.digest),
                pushed_ms: failed.pushed_ms,
                replica: failed.replica.as_ref().map(text),
                kind: failed.kind.clone(),
                message: bounded(&failed.message),
                at_ms: failed.at_ms,
            }),
            quarantined: document.quarantined.iter().map(QuarantinedJson::from).collect(),
        }
    }
}

impl From<&Quarantined> for QuarantinedJson {
    fn from(quarantined: &Quarantined) -> Self {
        Self {
            digest: quarantined.digest.to_string(),
            why: bounded(&quarantined.why),
            replica: quarantined.replica.to_string(),
            at_ms: quarantined.at_ms,
        }
    }
}

impl From<DocumentJson> for Document {
    fn from(json: DocumentJson) -> Self {
        let pending =
            |json: PendingJson| Pending { digest: json.digest.into(), pushed_ms: json.pushed_ms, force: json.force };
        let failed = |json: FailedJson| Failed {
            digest: json.digest.into(),
            pushed_ms: json.pushed_ms,
            replica: json.replica.map(Into::into),
            kind: json.kind,
            message: json.message,
            at_ms: json.at_ms,
        };
        let quarantined = |json: QuarantinedJson| Quarantined {
            digest: json.digest.into(),
            why: json.why,
            replica: json.replica.into(),
            at_ms: json.at_ms,
        };
        Self {
            version: json.version,
            current: json.current.map(Into::into),
            since_ms: json.since_ms,
            history: json.history.into_iter().map(|former| former.map(Into::into)).collect(),
            pending: json.pending.map(pending),
            failed: json.failed.map(failed),
            quarantined: json.quarantined.into_iter().map(quarantined).collect(),
        }
    }
}

impl From<&Report> for ReportJson {
    fn from(report: &Report) -> Self {
        let text = |digest: &std::sync::Arc<str>| digest.to_string();
        let error = |error: &ReportError| ErrorJson {
            digest: text(&error.digest),
            kind: error.kind.clone(),
            message: bounded(&error.message),
        };
        Self {
            digest: report.serving.as_ref().map(text),
            generation: report.generation,
            push: report.push,
            prepared: report.prepared.as_ref().map(text),
            error: report.error.as_ref().map(error),
        }
    }
}

impl From<ReportJson> for Report {
    fn from(json: ReportJson) -> Self {
        let error =
            |json: ErrorJson| ReportError { digest: json.digest.into(), kind: json.kind, message: json.message };
        Self {
            serving: json.digest.map(Into::into),
            generation: json.generation,
            push: json.push,
            prepared: json.prepared.map(Into::into),
            error: json.error.map(error),
        }
    }
}

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
        let report = Report {
            serving: Some("s".into()),
            generation: 3,
            push: Some(9),
            prepared: Some("p".into()),
            error: Some(error),
        };
        for report in [Report::default(), report] {
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
