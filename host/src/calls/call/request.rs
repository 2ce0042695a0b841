//! What a call asks for, and why it may be refused.

use std::time::Duration;

use pointwork_core::{CallRefused, calls::message};

use crate::edge::payload::{IncomingEvent, PayloadError, attachment_bytes, take_field};

/// A call as a client sent it.
pub(in crate::calls) struct CallRequest {
    pub(in crate::calls) method: String,
    pub(in crate::calls) params: Option<rmpv::Value>,
    /// How long the daemon may take, if the caller says so.
    pub(in crate::calls) timeout: Option<Duration>,
}

/// Why a call is not taken on. Its text is what the caller is told.
#[derive(Debug, thiserror::Error)]
pub(in crate::calls) enum CallRefusal {
    #[error("{0}")]
    Unfit(#[from] PayloadError),
    #[error("{}", message::METHOD_REQUIRED)]
    NoMethod,
    #[error("Invalid parameters: timeoutMs must be a positive number")]
    WrongTimeout,
    #[error("Params too large")]
    ParamsTooLarge,
    #[error("{}", .0.message())]
    Machine(#[from] CallRefused),
}

impl CallRefusal {
    /// What it is about, as a metric's label.
    pub(in crate::calls) const fn label(&self) -> &'static str {
        match self {
            Self::Unfit(_) | Self::WrongTimeout | Self::ParamsTooLarge => "params",
            Self::NoMethod | Self::Machine(CallRefused::InvalidMethod) => "method",
            Self::Machine(CallRefused::TooManyCalls | CallRefused::TooManyCallsOfUser) => "in-flight",
            Self::Machine(CallRefused::TooManyWaiting) => "waiting",
            Self::Machine(CallRefused::UnknownCaller) => "caller",
        }
    }
}

impl CallRequest {
    /// Reads `{method, params, timeoutMs?}`; the call may have `bytes_max` bytes as it came, with attachments.
    pub(in crate::calls) fn of(incoming: IncomingEvent, bytes_max: usize) -> Result<Self, CallRefusal> {
        let text_bytes = usize::try_from(incoming.bytes).unwrap_or(usize::MAX);
        if text_bytes > bytes_max {
            return Err(CallRefusal::ParamsTooLarge);
        }
        let mut body = incoming.args?.into_first().unwrap_or(rmpv::Value::Nil);
        let method = match take_field(&mut body, "method") {
            Some(rmpv::Value::String(method)) => method.into_str().filter(|method| !method.is_empty()),
            _ => None,
        };
        let method = method.ok_or(CallRefusal::NoMethod)?;
        let timeout = match take_field(&mut body, "timeoutMs") {
            None | Some(rmpv::Value::Nil) => None,
            Some(ms) => Some(milliseconds(&ms).ok_or(CallRefusal::WrongTimeout)?),
        };
        let params = take_field(&mut body, "params");
        if text_bytes + params.as_ref().map_or(0, attachment_bytes) > bytes_max {
            return Err(CallRefusal::ParamsTooLarge);
        }
        Ok(Self { method, params, timeout })
    }
}

/// A JavaScript number of milliseconds, fractions and all; one that is too large for a span is cut by the cap on it.
fn milliseconds(value: &rmpv::Value) -> Option<Duration> {
    let ms = value.as_f64().filter(|ms| *ms > 0.0)?;
    Some(Duration::try_from_secs_f64(ms / 1_000.0).unwrap_or(Duration::MAX))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::edge::payload::Args;

    fn asked(args: Vec<rmpv::Value>, bytes: u32) -> Result<CallRequest, String> {
        CallRequest::of(IncomingEvent { args: Ok(Args(args)), bytes }, 100).map_err(|refusal| refusal.to_string())
    }

    fn body(entries: &[(&str, rmpv::Value)]) -> Vec<rmpv::Value> {
        vec![rmpv::Value::Map(entries.iter().map(|(name, value)| ((*name).into(), value.clone())).collect())]
    }

    #[test]
    fn a_call_names_a_method_and_may_say_how_long() {
        let call = asked(body(&[("method", "m".into()), ("params", 7.into()), ("timeoutMs", 1.5.into())]), 9).unwrap();
        assert_eq!((call.method.as_str(), call.params), ("m", Some(7.into())));
        assert_eq!(call.timeout, Some(Duration::from_micros(1_500)));
        assert_eq!(asked(Vec::new(), 9).err().unwrap(), message::METHOD_REQUIRED);
        assert_eq!(asked(body(&[("method", 7.into())]), 9).err().unwrap(), message::METHOD_REQUIRED);
        for wrong in [0.into(), (-1).into(), "1".into()] {
            let wrong = asked(body(&[("method", "m".into()), ("timeoutMs", wrong)]), 9).err().unwrap();
            assert_eq!(wrong, "Invalid parameters: timeoutMs must be a positive number");
        }
    }

    #[test]
    fn its_size_is_that_of_its_text_and_its_attachments() {
        let with = |bytes| body(&[("method", "m".into()), ("params", rmpv::Value::Binary(vec![0; bytes]))]);
        assert!(asked(with(40), 60).is_ok());
        assert_eq!(asked(with(41), 60).err().unwrap(), "Params too large");
        assert_eq!(asked(Vec::new(), 101).err().unwrap(), "Params too large");
    }
}
