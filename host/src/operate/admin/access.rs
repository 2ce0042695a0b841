//! Who may use the admin API: whoever has the token or a certificate, and whoever is on this machine.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
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
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::state::{Admin, refusal};
use crate::edge::connection::ConnectionHandle;

/// Who asks.
#[derive(Clone)]
pub(crate) struct Operator {
    address: SocketAddr,
    connection: ConnectionHandle,
}

impl Operator {
    /// Whoever is at `address`, by this connection.
    pub(crate) fn new(address: SocketAddr, connection: ConnectionHandle) -> Self {
        Self { address, connection }
    }

    fn is_local(&self) -> bool {
        self.connection.local().is_some_and(|local| is_within(local, self.address.ip()))
    }
}

/// Whether a connection is this machine's with itself: it leads to loopback, and comes from where a program's own do. The sidecars of
/// meshes come from other loopback addresses, such as 127.0.0.6, to whatever address was asked for, and speak for anybody.
fn is_within(local: IpAddr, peer: IpAddr) -> bool {
    let peer = peer.to_canonical();
    local.to_canonical().is_loopback() && (peer == Ipv4Addr::LOCALHOST || peer == Ipv6Addr::LOCALHOST)
}

pub(super) async fn check(
    State(admin): State<Arc<Admin>>,
    ConnectInfo(operator): ConnectInfo<Operator>,
    request: Request,
    next: Next,
) -> Response {
    let is_in = match request.headers().get(AUTHORIZATION) {
        Some(_) => has_token(&admin, &request),
        None if operator.connection.is_certified() => true,
        None => operator.is_local() && is_of_this_machine(&request),
    };
    if is_in {
        return next.run(request).await;
    }
    metrics::counter!("pointwork_admin_refused_total").increment(1);
    refusal(StatusCode::UNAUTHORIZED, "a bearer token (admin.token) or a certificate (admin.tls.client_ca) is required")
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
        // Of digests, which are of one length: how long the token is does not show either.
        (Some(token), Some(given)) => {
            let (token, given) = (Sha256::digest(token.expose()), Sha256::digest(given));
            bool::from(token.as_slice().ct_eq(given.as_slice()))
        }
        _ => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_a_connection_from_loopback_to_loopback_is_this_machines_own() {
        let within = |local: &str, peer: &str| is_within(local.parse().unwrap(), peer.parse().unwrap());
        for (local, peer) in [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::ffff:127.0.0.1", "::ffff:127.0.0.1")] {
            assert!(within(local, peer), "{local} {peer}");
        }
        for (local, peer) in [("10.0.0.5", "127.0.0.6"), ("127.0.0.1", "127.0.0.6"), ("10.0.0.5", "127.0.0.1")] {
            assert!(!within(local, peer), "{local} {peer}");
        }
    }
}
