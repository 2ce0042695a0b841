//! Who may use the admin API: whoever is on this machine, and whoever has the token.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, Request, State},
    http::{StatusCode, header::AUTHORIZATION},
    middleware::Next,
    response::Response,
};
use subtle::ConstantTimeEq;

use super::{Admin, refusal};

pub(super) async fn check(
    State(admin): State<Arc<Admin>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    if peer.ip().to_canonical().is_loopback() || has_token(&admin, &request) {
        return next.run(request).await;
    }
    metrics::counter!("pointwork_admin_refused_total").increment(1);
    refusal(StatusCode::UNAUTHORIZED, "a bearer token is required: admin.token")
}

fn has_token(admin: &Admin, request: &Request) -> bool {
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    match (&admin.token, given) {
        (Some(token), Some(given)) => bool::from(token.expose().as_bytes().ct_eq(given)),
        _ => false,
    }
}
