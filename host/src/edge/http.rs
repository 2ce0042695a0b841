//! Serves HTTP on a listener: each connection by a task of its own, until it is asked to stop.
//!
//! What `axum::serve` does, and two bounds that it has not: a head that does not come whole in time, be it a byte a minute, ends
//! the connection, and so does a body.

use std::{
    future::Future,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    extract::{ConnectInfo, Request},
    http::{StatusCode, header::UPGRADE},
    response::IntoResponse,
};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    sync::watch,
    time::{Sleep, sleep},
};

use crate::edge::{
    admission::{Admission, OriginPlace, TooMany},
    connection::{Line, Lines, Scissors},
};

/// The longest head of a request. The field's clients may have their token in a header, and a browser its cookies.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Until the head of its first request is there, TLS handshake included.
    pub(crate) first_head: Duration,
    /// From one request until the head of the next is there. Longer than load balancers keep idle connections, a minute in most:
    /// one that sends on a connection that is just being closed tells its client of an error.
    pub(crate) next_head: Duration,
    /// For the body of a request.
    pub(crate) body: Duration,
}

/// Serves `app` until `stopped`, and then until the last connection is closed; idle ones are closed at once.
///
/// Requests have `ConnectInfo` of what `known` makes of the connection.
pub(crate) async fn serve<T: Clone + Send + Sync + 'static>(
    mut lines: Lines,
    app: Router,
    patience: Patience,
    known: fn(SocketAddr, Scissors) -> T,
    stopped: impl Future<Output = ()> + Send,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience.next_head).max_buf_size(HEAD_BYTES_MAX);
    let (stop, _) = watch::channel(false);
    let mut stopped = pin!(stopped);
    loop {
        let (line, peer) = tokio::select! {
            accepted = lines.accept() => accepted,
            () = stopped.as_mut() => break,
        };
        let info = known(peer, line.scissors());
        let door = Door { admission: lines.admission().clone(), peer, line: line.scissors(), patience };
        tokio::spawn(converse(http.clone(), line, app.clone(), (door, info), stop.subscribe()));
    }
    drop(lines);
    stop.send_replace(true);
    stop.closed().await;
}

/// One connection, until it ends or becomes a WebSocket.
async fn converse<T: Clone + Send + Sync + 'static>(
    http: http1::Builder,
    line: Line,
    app: Router,
    (door, info): (Door, T),
    mut stop: watch::Receiver<bool>,
) {
    let app = TowerToHyperService::new(app);
    let (has_asked, admission, first_head) = (AtomicBool::new(false), door.admission.clone(), door.patience.first_head);
    let service = service_fn(|request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        let answer = door.enter(request).map(|(mut request, upgrade)| {
            request.extensions_mut().insert(ConnectInfo(info.clone()));
            (app.call(request), upgrade)
        });
        async move {
            let Ok((answer, upgrade)) = answer else { return Ok(StatusCode::SERVICE_UNAVAILABLE.into_response()) };
            let answer = answer.await;
            if let (Ok(response), Some(upgrade)) = (&answer, upgrade) {
                upgrade.answered(response.status());
            }
            answer
        }
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(line), service).with_upgrades());
    let mut stopping = pin!(async {
        let _ = stop.wait_for(|stop| *stop).await;
    });
    let mut late = pin!(sleep(first_head));
    let (mut is_stopping, mut may_be_late) = (false, true);
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            () = stopping.as_mut(), if !is_stopping => {
                connection.as_mut().graceful_shutdown();
                is_stopping = true;
            }
            () = late.as_mut(), if may_be_late => {
                if !has_asked.load(Ordering::Relaxed) {
                    return admission.note_late();
                }
                may_be_late = false;
            }
        }
    };
    if let Err(error) = ended {
        // A client that went away, or was sent away.
        tracing::trace!(%error, "a connection failed");
    }
}

/// What a request passes before anything is done for it.
struct Door {
    admission: Admission,
    peer: SocketAddr,
    line: Scissors,
    patience: Patience,
}

impl Door {
    fn enter(&self, request: Request<Incoming>) -> Result<(Request, Option<Upgrade>), TooMany> {
        let headers = request.headers();
        // A WebSocket has its connection for itself, through a proxy, too. Polls share theirs, and say nothing of how many clients
        // there are.
        let place =
            if headers.contains_key(UPGRADE) { self.admission.admit_forwarded(self.peer.ip(), headers)? } else { None };
        let upgrade = place.map(|place| Upgrade { line: self.line.clone(), place });
        let body_max = self.patience.body;
        let request = request
            .map(|body| if body.is_end_stream() { Body::empty() } else { Body::new(Timely::new(body, body_max)) });
        Ok((request, upgrade))
    }
}

/// A client of a proxy that asks for a WebSocket.
struct Upgrade {
    line: Scissors,
    place: OriginPlace,
}

impl Upgrade {
    /// Its place is kept for as long as the WebSocket lasts. One that was refused leaves the connection to the proxy, which keeps it for
    /// others.
    fn answered(self, status: StatusCode) {
        if status == StatusCode::SWITCHING_PROTOCOLS {
            self.line.hold(self.place);
        }
    }
}

/// A body that fails when it is not there in time.
struct Timely {
    body: Incoming,
    alarm: Pin<Box<Sleep>>,
}

impl Timely {
    fn new(body: Incoming, max: Duration) -> Self {
        Self { body, alarm: Box::pin(sleep(max)) }
    }
}

/// The client took too long for the body of its request.
#[derive(Debug, thiserror::Error)]
#[error("the body of the request did not come in time")]
struct TooSlow;

impl HttpBody for Timely {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let timely = self.get_mut();
        if timely.alarm.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(TooSlow.into())));
        }
        Pin::new(&mut timely.body).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
