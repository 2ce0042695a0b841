//! Waits for the answers to this replica's requests.

use rmpv::Value;
use thiserror::Error;
use tokio::time::{Instant, timeout_at};

use super::open_requests::{OpenRequest, Reply, ServerAnswer};
use crate::wire::Body;

/// The answers to a request to several servers.
#[derive(Debug, Default)]
pub struct Answers<T> {
    /// The answers that arrived in time, each with the uid of the server that sent it.
    pub given: Vec<(String, T)>,
    /// How many servers did not answer in time. Their silence proves nothing.
    pub missing: u64,
}

impl<T> Answers<T> {
    /// Takes one answer of each server, until all `servers` have answered or the deadline has passed.
    pub(crate) async fn collect(
        mut request: OpenRequest,
        servers: u64,
        deadline: Instant,
        answer: impl Fn(Body) -> Option<T>,
    ) -> Self {
        let mut given: Vec<(String, T)> = Vec::new();
        while (given.len() as u64) < servers {
            // After a loss no more answers will arrive.
            let Ok(Some(Reply::Answer(reply))) = timeout_at(deadline, request.replies.recv()).await else { break };
            let ServerAnswer { server, body } = *reply;
            if let Some(answer) = answer(body)
                && !given.iter().any(|(known, _)| *known == server)
            {
                given.push((server, answer));
            }
        }
        Answers { missing: servers - given.len() as u64, given }
    }
}

/// Why a request to one socket has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RequestFailed {
    /// The server answered that it does not have the socket.
    #[error("the socket is not there")]
    Absent,
    /// The request or its answer was lost. It is unknown whether the socket got the request.
    #[error("the link to the other server was lost")]
    Lost,
    /// The socket did not answer in time, or its server knows that it will not.
    #[error("no answer")]
    TimedOut,
}

/// A request to one socket of another server. It is already on its way.
#[derive(Debug)]
pub struct SocketRequest {
    pub(crate) request: OpenRequest,
    pub(crate) deadline: Instant,
}

impl SocketRequest {
    /// The first argument of the socket's acknowledgement; nil if it has no arguments.
    ///
    /// # Errors
    /// If the socket did not acknowledge the request.
    pub async fn answer(mut self) -> Result<Value, RequestFailed> {
        loop {
            match timeout_at(self.deadline, self.request.replies.recv()).await {
                Err(_) | Ok(Some(Reply::Unanswered)) => return Err(RequestFailed::TimedOut),
                Ok(None | Some(Reply::Lost)) => return Err(RequestFailed::Lost),
                Ok(Some(Reply::Answer(reply))) => match reply.body {
                    Body::BroadcastAck(answer) => return Ok(answer.packet),
                    Body::BroadcastClientCount(count) if count.client_count == 0 => return Err(RequestFailed::Absent),
                    _ => {}
                },
            }
        }
    }
}
