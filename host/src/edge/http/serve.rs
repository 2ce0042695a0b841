//! Serves HTTP on a listener, with one task for each connection.
//!
//! In contrast to `axum::serve`, it bounds the time that the head and the body of a request may take.

use std::{
    future::Future,
    net::SocketAddr,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
};

use axum::{
    Router,
    extract::{ConnectInfo, Request},
    http::StatusCode,
    response::IntoResponse,
};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{sync::watch, time::sleep};

use super::request_admission::{HttpTimeouts, RequestAdmission};
use crate::edge::connection::{ConnectionHandle, ConnectionListener, TcpConnection};

/// The longest head of a request. Clients may send their token in a header, and browsers send cookies.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Serves `app` until `stopped` completes, and then until the last connection closes. Idle connections are closed at once.
///
/// Requests have `ConnectInfo` of what `info` makes of their connection.
pub(crate) async fn serve<T: Clone + Send + Sync + 'static>(
    mut listener: ConnectionListener,
    app: Router,
    timeouts: HttpTimeouts,
    info: fn(SocketAddr, ConnectionHandle) -> T,
    stopped: impl Future<Output = ()> + Send,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(timeouts.next_head).max_buf_size(HEAD_BYTES_MAX);
    let (stop, _) = watch::channel(false);
    let mut stopped = pin!(stopped);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped.as_mut() => break,
        };
        let connection = stream.handle();
        let info = info(peer, connection.clone());
        let admission = RequestAdmission { limits: listener.limits().clone(), peer, connection, timeouts };
        tokio::spawn(serve_connection(http.clone(), stream, app.clone(), (admission, info), stop.subscribe()));
    }
    drop(listener);
    stop.send_replace(true);
    stop.closed().await;
}

/// Serves one connection until it ends or becomes a WebSocket.
async fn serve_connection<T: Clone + Send + Sync + 'static>(
    http: http1::Builder,
    stream: TcpConnection,
    app: Router,
    (admission, info): (RequestAdmission, T),
    mut stop: watch::Receiver<bool>,
) {
    let app = TowerToHyperService::new(app);
    let (has_requested, limits, first_head) =
        (AtomicBool::new(false), admission.limits.clone(), admission.timeouts.first_head);
    let service = service_fn(|request: Request<Incoming>| {
        has_requested.store(true, Ordering::Relaxed);
        let answer = admission.admit(request).map(|(mut request, upgrade)| {
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
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
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
                if !has_requested.load(Ordering::Relaxed) {
                    return limits.note_late();
                }
                may_be_late = false;
            }
        }
    };
    if let Err(error) = ended {
        // The client is gone, or the host ended the connection.
        tracing::trace!(%error, "a connection failed");
    }
}
