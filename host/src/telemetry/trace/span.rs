//! What identifies a span, and a span that has ended.

use std::time::SystemTime;

use opentelemetry::{KeyValue, SpanId, TraceId};

/// The ids of a span and its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
}

/// A span that has ended.
#[derive(Debug)]
pub(super) struct EndedSpan {
    pub(super) name: &'static str,
    pub(super) context: TraceContext,
    pub(super) parent: Option<SpanId>,
    pub(super) began: SystemTime,
    pub(super) ended: SystemTime,
    pub(super) is_error: bool,
    pub(super) attributes: Vec<KeyValue>,
}

impl TraceContext {
    /// The `traceparent` of W3C Trace Context, with the flag for sampled.
    pub(crate) fn traceparent(self) -> String {
        format!("00-{}-{}-01", self.trace, self.span)
    }

    /// `None` if the text is no `traceparent`, or has no flag for sampled.
    pub(super) fn read(traceparent: &str) -> Option<Self> {
        let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let mut parts = traceparent.split('-');
        let mut part = |len: usize| parts.next().filter(|part| part.len() == len && is_hex(part));
        let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let context = Self { trace: TraceId::from_hex(trace).ok()?, span: SpanId::from_hex(span).ok()? };
        let is_valid = context.trace != TraceId::INVALID && context.span != SpanId::INVALID;
        let is_known = version != "ff" && (version != "00" || parts.next().is_none());
        (is_valid && is_known && u8::from_str_radix(flags, 16).ok()? & 1 == 1).then_some(context)
    }
}

pub(super) fn span_id() -> SpanId {
    SpanId::from(fastrand::u64(1..))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let context = TraceContext { trace: TraceId::from(0xab), span: SpanId::from(0xcd) };
        let written = context.traceparent();
        assert_eq!(written, "00-000000000000000000000000000000ab-00000000000000cd-01");
        assert_eq!(TraceContext::read(&written), Some(context));
        assert_eq!(TraceContext::read(&format!("01{}-more", &written[2..])), Some(context), "of a later version");
    }

    #[test]
    fn rejects_any_other_text() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        for nonsense in [
            String::new(),
            "00".into(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-00"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-+{}-{span}-01", &trace[1..]),
            format!("00-é{}-{span}-01", &trace[2..]),
        ] {
            assert_eq!(TraceContext::read(&nonsense), None, "{nonsense}");
        }
    }
}
