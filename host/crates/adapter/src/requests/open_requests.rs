//! The requests of this replica that wait for answers of other servers.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::wire::Body;

/// How many answers to one request may wait to be read.
const ANSWERS_MAX: usize = 65_536;

/// What arrives for a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// An answer. Boxed, because the channel of each request allocates room for many replies.
    Answer(Box<ServerAnswer>),
    /// The request or its answers may be lost.
    Lost,
    /// The server says that no socket will answer.
    Unanswered,
}

/// The answer of one server.
#[derive(Debug)]
pub(crate) struct ServerAnswer {
    /// The uid of the server.
    pub(crate) server: String,
    /// Of type 8, 10, 11 or 12.
    pub(crate) body: Body,
}

/// The open requests of a replica.
#[derive(Debug, Clone)]
pub(crate) struct OpenRequests {
    open: Arc<Mutex<HashMap<String, Waiting>>>,
    max: usize,
}

#[derive(Debug)]
struct Waiting {
    replies: mpsc::Sender<Reply>,
    /// The uid of the server that must answer. `None` if several must.
    server: Option<String>,
}

/// An open request. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    pub(crate) id: String,
    pub(crate) replies: mpsc::Receiver<Reply>,
    requests: OpenRequests,
}

impl OpenRequests {
    pub(crate) fn new(max: usize) -> Self {
        OpenRequests { open: Arc::default(), max }
    }

    /// Opens a request to one server or to all. `None` if too many are open.
    pub(crate) fn open(&self, server: Option<&str>) -> Option<OpenRequest> {
        let (sender, replies) = mpsc::channel(ANSWERS_MAX);
        let server = server.map(ToOwned::to_owned);
        let id = format!("{:016x}", fastrand::u64(..));
        let mut open = self.open.lock();
        if open.len() >= self.max {
            return None;
        }
        open.insert(id.clone(), Waiting { replies: sender, server });
        Some(OpenRequest { id, replies, requests: self.clone() })
    }

    /// Passes an answer to its request. An answer without an open request is late, or was never asked for.
    pub(crate) fn handle_answer(&self, server: String, body: Body) {
        let replies = |id| self.open.lock().get(id).map(|open| open.replies.clone());
        let Some(sender) = body.answers().and_then(replies) else {
            metrics::counter!("adapter_answers_unclaimed_total").increment(1);
            return;
        };
        if sender.try_send(Reply::Answer(Box::new(ServerAnswer { server, body }))).is_err() {
            metrics::counter!("adapter_answers_unclaimed_total").increment(1);
        }
    }

    /// A request or its answer was lost.
    pub(crate) fn fail(&self, id: &str) {
        if let Some(open) = self.open.lock().get(id) {
            open.send(Reply::Lost);
        }
    }

    /// A request will not be answered.
    pub(crate) fn give_up(&self, id: &str) {
        if let Some(open) = self.open.lock().get(id) {
            open.send(Reply::Unanswered);
        }
    }

    /// The requests to the servers that `fails` selects have lost answers.
    pub(crate) fn fail_those(&self, fails: impl Fn(Option<&str>) -> bool) {
        self.open.lock().values().filter(|open| fails(open.server.as_deref())).for_each(|open| open.send(Reply::Lost));
    }

    /// The open requests to one server.
    pub(crate) fn to(&self, server: &str) -> Vec<String> {
        let open = self.open.lock();
        let to_it = open.iter().filter(|(_, open)| open.server.as_deref() == Some(server));
        to_it.map(|(id, _)| id.clone()).collect()
    }
}

impl Waiting {
    fn send(&self, reply: Reply) {
        // A full channel holds more replies than the request waits for.
        let _ = self.replies.try_send(reply);
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.requests.open.lock().remove(&self.id);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
