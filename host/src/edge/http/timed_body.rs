//! Bounds the time that the body of a request may take.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep};

/// A body that fails if it is not complete in time.
pub(super) struct TimedBody {
    body: Incoming,
    alarm: Pin<Box<Sleep>>,
}

impl TimedBody {
    pub(super) fn new(body: Incoming, max: Duration) -> Self {
        Self { body, alarm: Box::pin(sleep(max)) }
    }
}

/// The body of a request did not arrive in time.
#[derive(Debug, thiserror::Error)]
#[error("the body of the request did not come in time")]
struct BodyTooSlow;

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let timed = self.get_mut();
        if timed.alarm.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(BodyTooSlow.into())));
        }
        Pin::new(&mut timed.body).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
