//! Who may use the admin API: whoever has the token, and whoever is on this machine.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    extract::{ConnectInfo, Request, State},
    http::{
        StatusCode,
        header::{AUTHORIZATION, FORWARDED, HOST, ORIGIN},
        uri::Authority,
    },
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
    let is_in = match request.headers().get(AUTHORIZATION) {
        Some(_) => has_token(&admin, &request),
        None => peer.ip().to_canonical().is_loopback() && is_of_this_machine(&request),
    };
    if is_in {
        return next.run(request).await;
    }
    metrics::counter!("pointwork_admin_refused_total").increment(1);
    refusal(StatusCode::UNAUTHORIZED, "a bearer token is required: admin.token")
}

/// Whether a request from loopback was also made on this machine: not by a page in its browser that had its own name point
/// here, and not for somebody else by a proxy.
fn is_of_this_machine(request: &Request) -> bool {
    let headers = request.headers();
    let is_foreign =
        headers.contains_key(ORIGIN) || headers.contains_key(FORWARDED) || headers.contains_key("x-forwarded-for");
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let authority = host.parse::<Authority>().ok();
    let name = authority.as_ref().map_or("", Authority::host);
    !is_foreign
        && (name == "localhost" || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()))
}

fn has_token(admin: &Admin, request: &Request) -> bool {
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    match (&admin.token, given) {
        (Some(token), Some(given)) => bool::from(token.expose().as_bytes().ct_eq(given)),
        _ => false,
    }
}
