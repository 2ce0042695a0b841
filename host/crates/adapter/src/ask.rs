//! What this server asks of others.

use std::time::Duration;

use rmpv::Value;
use thiserror::Error;
use tokio::time::{Instant, timeout_at};

use crate::error::ClusterError;
use crate::namespace::Namespace;
use crate::requests::{Answered, Reply, Request};
use crate::wire::{Body, Broadcast, FetchSockets, Options, Packet, RemoteSocket, ServerSideEmit, UNCOUNTED};

/// The answers to a request to several servers: those that came.
#[derive(Debug, Default)]
pub struct Answers<T> {
    /// Each with the uid of the server that gave it.
    pub given: Vec<(String, T)>,
    /// How many servers did not answer in time. Their silence proves nothing.
    pub missing: u64,
}

/// Why a request to one socket has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RequestFailed {
    /// Its server answered that the socket is not there.
    #[error("the socket is not there")]
    Absent,
    /// The request or its answer was lost on the way; whether the socket got it is unknown.
    #[error("the link to the other server was lost")]
    Lost,
    /// The socket did not answer in time, or its server knows that it will not.
    #[error("no answer")]
    TimedOut,
}

/// A request to one socket of another server, already on its way.
#[derive(Debug)]
pub struct SocketRequest {
    request: Request,
    deadline: Instant,
}

impl SocketRequest {
    /// The first argument of the socket's acknowledgement, nil when it has none.
    ///
    /// # Errors
    /// When there is none.
    pub async fn answer(mut self) -> Result<Value, RequestFailed> {
        loop {
            let reply = timeout_at(self.deadline, self.request.replies.recv()).await;
            match reply {
                Err(_) | Ok(Some(Reply::Unanswered)) => return Err(RequestFailed::TimedOut),
                Ok(None | Some(Reply::Lost)) => return Err(RequestFailed::Lost),
                Ok(Some(Reply::Answer(answered))) => match answered.body {
                    Body::BroadcastAck(answer) => return Ok(answer.packet),
                    Body::BroadcastClientCount(count) if count.client_count == 0 => return Err(RequestFailed::Absent),
                    _ => {}
                },
            }
        }
    }
}

impl Namespace {
    /// Emits an event to one socket of the server `owner` and asks for its acknowledgement. Only that server is involved. It is
    /// handed over when this returns, so requests to one server keep their order.
    ///
    /// # Errors
    /// When it cannot be taken.
    pub fn request(
        &self,
        owner: &str,
        socket: &str,
        packet: Packet,
        timeout: Duration,
    ) -> Result<SocketRequest, ClusterError> {
        self.request_within(owner, socket, packet, timeout, None)
    }

    /// The same as part of a trace: `traceparent` (W3C Trace Context) is a flag more. A server of this kind tells whom it was given
    /// by [`Namespace::trace_requests`]; Node's passes over it.
    ///
    /// # Errors
    /// When it cannot be taken.
    pub fn request_within(
        &self,
        owner: &str,
        socket: &str,
        packet: Packet,
        timeout: Duration,
        traceparent: Option<String>,
    ) -> Result<SocketRequest, ClusterError> {
        let request = self.open_request(Some(owner))?;
        let mut opts = Options::room(socket);
        opts.flags = single(timeout).with(UNCOUNTED, true);
        if let Some(traceparent) = traceparent {
            opts.flags = opts.flags.with(TRACEPARENT, traceparent);
        }
        let broadcast = Broadcast { packet, request_id: Some(request.id.clone()), opts };
        self.publish(Some(owner), Body::Broadcast(broadcast), Some(request.id.clone()))?;
        Ok(SocketRequest { request, deadline: Instant::now() + timeout })
    }

    /// The sockets of all other servers that `opts` select. Takes the answers that come within `timeout`.
    ///
    /// # Errors
    /// When nobody can be asked.
    pub async fn fetch_sockets(
        &self,
        opts: Options,
        timeout: Option<Duration>,
    ) -> Result<Answers<Vec<RemoteSocket>>, ClusterError> {
        let servers = self.other_servers().await?;
        self.fetch(None, servers, opts, timeout).await
    }

    /// The sockets of one other server that `opts` select; `None` when it does not answer in time.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub async fn fetch_sockets_of(
        &self,
        server: &str,
        opts: Options,
        timeout: Option<Duration>,
    ) -> Result<Option<Vec<RemoteSocket>>, ClusterError> {
        let answers = self.fetch(Some(server), 1, opts, timeout).await?;
        Ok(answers.given.into_iter().next().map(|(_, sockets)| sockets))
    }

    /// Tells every other server an event of the servers' own (`serverSideEmit`).
    ///
    /// # Errors
    /// When it cannot be taken.
    pub fn server_side_emit(&self, event: &str, args: Vec<Value>) -> Result<(), ClusterError> {
        let packet = Packet::event(event, args).data;
        self.publish(None, Body::ServerSideEmit(ServerSideEmit { request_id: None, packet }), None)
    }

    /// The same, and takes the answers that come within `timeout`: the first argument of each server's ack.
    ///
    /// # Errors
    /// When nobody can be asked.
    pub async fn server_side_emit_with_ack(
        &self,
        event: &str,
        args: Vec<Value>,
        timeout: Option<Duration>,
    ) -> Result<Answers<Value>, ClusterError> {
        let servers = self.other_servers().await?;
        let request = self.open_request(None)?;
        let packet = Packet::event(event, args).data;
        let emit = ServerSideEmit { request_id: Some(request.id.clone()), packet };
        self.publish(None, Body::ServerSideEmit(emit), Some(request.id.clone()))?;
        let answer = |body| match body {
            Body::ServerSideEmitResponse(answer) => Some(answer.packet),
            _ => None,
        };
        Ok(self.collect(request, servers, timeout, answer).await)
    }

    /// Asks one other server by an event of the servers' own: the first argument of its ack, `None` when it does not answer in time
    /// or its answer is lost.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub async fn ask_server(
        &self,
        server: &str,
        event: &str,
        args: Vec<Value>,
        timeout: Option<Duration>,
    ) -> Result<Option<Value>, ClusterError> {
        let request = self.open_request(Some(server))?;
        let packet = Packet::event(event, args).data;
        let emit = ServerSideEmit { request_id: Some(request.id.clone()), packet };
        self.publish(Some(server), Body::ServerSideEmit(emit), Some(request.id.clone()))?;
        let answer = |body| match body {
            Body::ServerSideEmitResponse(answer) => Some(answer.packet),
            _ => None,
        };
        Ok(self.collect(request, 1, timeout, answer).await.given.pop().map(|(_, answer)| answer))
    }

    async fn fetch(
        &self,
        server: Option<&str>,
        servers: u64,
        opts: Options,
        timeout: Option<Duration>,
    ) -> Result<Answers<Vec<RemoteSocket>>, ClusterError> {
        if servers == 0 {
            return Ok(Answers { given: Vec::new(), missing: 0 });
        }
        // Asked again soon by whoever needs it: no server is asked what became of it.
        let request = self.open_request(None)?;
        let fetch = FetchSockets { opts, request_id: request.id.clone() };
        self.publish(server, Body::FetchSockets(fetch), Some(request.id.clone()))?;
        let sockets = |body| match body {
            Body::FetchSocketsResponse(response) => Some(response.sockets),
            _ => None,
        };
        Ok(self.collect(request, servers, timeout, sockets).await)
    }

    /// Takes one answer of each server, until all have answered or the time is over.
    async fn collect<T>(
        &self,
        mut request: Request,
        servers: u64,
        timeout: Option<Duration>,
        answer: impl Fn(Body) -> Option<T>,
    ) -> Answers<T> {
        let deadline = Instant::now() + timeout.unwrap_or_else(|| self.request_timeout());
        let mut given: Vec<(String, T)> = Vec::new();
        while (given.len() as u64) < servers {
            match timeout_at(deadline, request.replies.recv()).await {
                Ok(Some(Reply::Answer(answered))) => {
                    let Answered { from, body } = *answered;
                    if let Some(answer) = answer(body)
                        && !given.iter().any(|(known, _)| *known == from)
                    {
                        given.push((from, answer));
                    }
                }
                // What has come is all that will come.
                Ok(Some(Reply::Lost | Reply::Unanswered) | None) | Err(_) => break,
            }
        }
        Answers { missing: servers - given.len() as u64, given }
    }

    pub(crate) fn open_request(&self, server: Option<&str>) -> Result<Request, ClusterError> {
        let inner = self.inner();
        let shared = inner.as_ref().and_then(|inner| inner.shared());
        shared.and_then(|shared| shared.requests.open(server)).ok_or(ClusterError::TooManyRequests)
    }
}

/// The flag of a request that is part of a trace.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// The flags of a request to one socket, as Node sets them.
pub(crate) fn single(timeout: Duration) -> crate::wire::Flags {
    let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    crate::wire::Flags::default().with("timeout", ms).with("expectSingleResponse", true)
}
