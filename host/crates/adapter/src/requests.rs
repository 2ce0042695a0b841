//! The requests that wait for other servers' answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use crate::lock::lock;
use crate::wire::Body;

/// How many answers to one request may wait to be looked at.
const ANSWERS_MAX: usize = 65_536;

/// What comes in for a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A server's answer. Boxed, because each request's channel has room for many from the start.
    Answer(Box<Answered>),
    /// Answers may have been lost on their way, or the request was.
    Lost,
    /// Its server says that no socket will answer.
    Unanswered,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The server.
    pub(crate) from: String,
    /// Of type 8, 10, 11 or 12.
    pub(crate) body: Body,
}

/// The open requests of a replica.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    open: Arc<Mutex<HashMap<String, Open>>>,
    max: usize,
}

#[derive(Debug)]
struct Open {
    replies: mpsc::Sender<Reply>,
    /// The one server that is to answer, if it is one.
    server: Option<String>,
}

/// An open request; dropping it closes it.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: String,
    pub(crate) replies: mpsc::Receiver<Reply>,
    requests: Requests,
}

impl Requests {
    pub(crate) fn new(max: usize) -> Self {
        Requests { open: Arc::default(), max }
    }

    /// Opens a request to one server or to all; `None` if there are too many.
    pub(crate) fn open(&self, server: Option<&str>) -> Option<Request> {
        let (sender, replies) = mpsc::channel(ANSWERS_MAX);
        let server = server.map(ToOwned::to_owned);
        let id = format!("{:016x}", fastrand::u64(..));
        let mut open = lock(&self.open);
        if open.len() >= self.max {
            return None;
        }
        open.insert(id.clone(), Open { replies: sender, server });
        Some(Request { id, replies, requests: self.clone() })
    }

    /// Brings an answer to its request. One that nobody waits for is late, or was never asked for.
    pub(crate) fn answer(&self, from: String, body: Body) {
        let replies = |id| lock(&self.open).get(id).map(|open| open.replies.clone());
        let Some(sender) = body.answers().and_then(replies) else {
            metrics::counter!("adapter_answers_unclaimed_total").increment(1);
            return;
        };
        if sender.try_send(Reply::Answer(Box::new(Answered { from, body }))).is_err() {
            metrics::counter!("adapter_answers_unclaimed_total").increment(1);
        }
    }

    /// A request was lost, or its answer was.
    pub(crate) fn fail(&self, id: &str) {
        if let Some(open) = lock(&self.open).get(id) {
            open.tell(Reply::Lost);
        }
    }

    /// A request will not be answered.
    pub(crate) fn give_up(&self, id: &str) {
        if let Some(open) = lock(&self.open).get(id) {
            open.tell(Reply::Unanswered);
        }
    }

    /// The requests to any server that `fails` says have lost answers.
    pub(crate) fn fail_those(&self, fails: impl Fn(Option<&str>) -> bool) {
        lock(&self.open).values().filter(|open| fails(open.server.as_deref())).for_each(|open| open.tell(Reply::Lost));
    }

    /// The open requests to one server.
    pub(crate) fn to(&self, server: &str) -> Vec<String> {
        let open = lock(&self.open);
        let to_it = open.iter().filter(|(_, open)| open.server.as_deref() == Some(server));
        to_it.map(|(id, _)| id.clone()).collect()
    }
}

impl Open {
    fn tell(&self, reply: Reply) {
        // When it is full there is more to be looked at than anybody waits for.
        let _ = self.replies.try_send(reply);
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        lock(&self.requests.open).remove(&self.id);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::wire::ClientCount;

    fn count(request_id: &str) -> Body {
        Body::BroadcastClientCount(ClientCount { request_id: request_id.to_owned(), client_count: 1 })
    }

    #[tokio::test]
    async fn answers_come_to_the_request_that_is_open() {
        let requests = Requests::new(2);
        let (mut one, other) = (requests.open(Some("a")).unwrap(), requests.open(None).unwrap());
        assert!(requests.open(None).is_none());
        assert_eq!((requests.to("a"), requests.to("b")), (vec![one.id.clone()], vec![]));
        assert_ne!(one.id, other.id);
        requests.answer("a".into(), count(&one.id));
        requests.answer("a".into(), count(&other.id));
        drop(other);
        requests.fail(&one.id);
        requests.fail("nobody's");
        assert!(matches!(one.replies.recv().await, Some(Reply::Answer(answered)) if answered.from == "a"));
        assert!(matches!(one.replies.recv().await, Some(Reply::Lost)));
        assert!(requests.open(None).is_some());
        requests.fail_those(|server| server.is_none());
        requests.fail_those(|server| server == Some("a"));
        assert!(matches!(one.replies.recv().await, Some(Reply::Lost)));
        requests.give_up(&one.id);
        assert!(matches!(one.replies.recv().await, Some(Reply::Unanswered)));
        assert!(one.replies.try_recv().is_err());
    }
}
