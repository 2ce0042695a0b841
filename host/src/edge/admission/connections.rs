//! Limits the connections of a listener, in all and from one address.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::http::HeaderMap;

use super::{
    counts::{CountGuard, KeyedCounts, LimitReached, refused_counter},
    forwarded,
    open_files::connections_max,
};
use crate::config::{ListenConfig, Networks};

/// The most connections of the admin listener.
const ADMIN_MAX: usize = 256;
/// The most of them from one address, so that one client cannot shut out the others. Connections from this machine have no such limit.
const ADMIN_PER_IP_MAX: usize = 32;
/// An IPv4 address, or the /64 network of an IPv6 address: a client with one IPv6 address usually has its whole network.
type ClientNetwork = IpAddr;

/// Counts a connection of one network.
pub(crate) type NetworkGuard = CountGuard<ClientNetwork>;

fn network_of(address: IpAddr) -> ClientNetwork {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

/// The limits of one listener. Clones share their counts.
#[derive(Clone)]
pub(crate) struct ConnectionLimits(Arc<LimitState>);

struct LimitState {
    max: usize,
    open: AtomicUsize,
    by_network: Arc<KeyedCounts<ClientNetwork>>,
    /// Connections from this machine are not counted by network.
    exempts_loopback: bool,
    trusted: Networks,
    gauge: metrics::Gauge,
    refused: metrics::Counter,
    refused_one: metrics::Counter,
    late: metrics::Counter,
}

impl ConnectionLimits {
    /// The limits of the Socket.IO listener. Logs a warning if the limit of open files is lower than the setting.
    pub(crate) fn of_clients(listen: &ListenConfig) -> Self {
        let max = connections_max(listen.connections_max.as_usize());
        let per_ip = listen.connections_per_ip_max.as_usize();
        Self::new("clients", max, per_ip, listen.trusted_proxies.clone(), ["total", "ip"])
    }

    /// The limits of the admin listener.
    pub(crate) fn of_operators() -> Self {
        Self::new("admin", ADMIN_MAX, ADMIN_PER_IP_MAX, Networks::default(), ["admin", "admin"])
    }

    /// `reasons` are the metric labels of refusals: over the total, and over the limit of one network.
    fn new(listener: &'static str, max: usize, per_ip: usize, trusted: Networks, reasons: [&'static str; 2]) -> Self {
        let [refused, refused_one] = reasons.map(refused_counter);
        Self(Arc::new(LimitState {
            max,
            open: AtomicUsize::new(0),
            by_network: Arc::new(KeyedCounts::new(per_ip)),
            exempts_loopback: listener == "admin",
            trusted,
            gauge: metrics::gauge!("pointwork_connections", "listener" => listener),
            refused,
            refused_one,
            late: refused_counter("late"),
        }))
    }

    /// Admits a connection from `address`. `None`, and counted as refused, if a limit is reached.
    pub(crate) fn admit(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let limits = &self.0;
        // Only the accepting task adds to it.
        if limits.open.load(Ordering::Relaxed) >= limits.max {
            limits.refused.increment(1);
            return None;
        }
        let is_exempt = limits.exempts_loopback && address.to_canonical().is_loopback();
        let is_limited = limits.by_network.is_limited() && !is_exempt && !limits.trusted.hold(address);
        let guard = if is_limited { Some(Box::new(self.count_client(address)?)) } else { None };
        limits.open.fetch_add(1, Ordering::Relaxed);
        limits.gauge.increment(1);
        Some(ConnectionPermit { limits: self.clone(), _guard: guard })
    }

    /// Counts a connection that is closed because its first request did not arrive in time.
    pub(crate) fn note_late(&self) {
        self.0.late.increment(1);
    }

    fn count_client(&self, address: IpAddr) -> Option<NetworkGuard> {
        let guard = self.0.by_network.take(network_of(address));
        if guard.is_none() {
            self.0.refused_one.increment(1);
        }
        guard
    }

    /// Counts the client behind a trusted proxy at `peer`. `None` if there is nothing to count.
    ///
    /// # Errors
    /// When the client is at its limit, which is counted as refused.
    pub(crate) fn admit_forwarded(
        &self,
        peer: IpAddr,
        headers: &HeaderMap,
    ) -> Result<Option<NetworkGuard>, LimitReached> {
        let limits = &self.0;
        if !limits.by_network.is_limited() || limits.trusted.is_empty() || !limits.trusted.hold(peer) {
            return Ok(None);
        }
        match forwarded::client(headers, &limits.trusted) {
            Some(client) => self.count_client(client).map(Some).ok_or(LimitReached),
            None => Ok(None),
        }
    }
}

/// Counts a connection for as long as it lasts.
pub(crate) struct ConnectionPermit {
    limits: ConnectionLimits,
    _guard: Option<Box<NetworkGuard>>,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.limits.0.open.fetch_sub(1, Ordering::Relaxed);
        self.limits.0.gauge.decrement(1);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn limits_of(max: usize, per_ip: usize, trusted: &str) -> ConnectionLimits {
        ConnectionLimits::new("test", max, per_ip, serde_json::from_str(trusted).unwrap(), ["total", "ip"])
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn holds_the_total_limit_in_any_order_of_endings() {
        let limits = limits_of(3, 0, "[]");
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut held: Vec<_> = (0..3).map(|_| limits.admit(ip("10.0.0.1"))).collect();
            assert!(held.iter().all(Option::is_some) && limits.admit(ip("10.0.0.2")).is_none());
            for index in order {
                held[index] = None;
                let again = limits.admit(ip("10.0.0.3"));
                assert!(again.is_some());
            }
            assert_eq!(limits.0.open.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn limits_each_ipv4_address_and_each_ipv6_network() {
        let limits = limits_of(100, 2, "[]");
        let one = limits.admit(ip("10.0.0.1"));
        let two = limits.admit(ip("::ffff:10.0.0.1"));
        assert!(one.is_some() && two.is_some() && limits.admit(ip("10.0.0.1")).is_none());
        assert!(limits.admit(ip("10.0.0.2")).is_some(), "others are let in");
        assert_eq!(limits.0.open.load(Ordering::Relaxed), 2, "who is refused takes no guard");
        drop(one);
        assert!(limits.admit(ip("10.0.0.1")).is_some());
        let of_network: Vec<_> = ["2001:db8::1", "2001:db8::ffff:1"].map(|address| limits.admit(ip(address))).into();
        assert!(limits.admit(ip("2001:db8::2")).is_none() && limits.admit(ip("2001:db8:0:1::2")).is_some());
        drop((two, of_network));
        assert_eq!(limits.0.by_network.len(), 0, "nothing is kept of who is gone");
    }

    #[test]
    fn one_address_cannot_fill_the_admin_listener() {
        let limits = ConnectionLimits::of_operators();
        let scanner: Vec<_> = (0..ADMIN_MAX).map_while(|_| limits.admit(ip("10.0.0.1"))).collect();
        assert_eq!(scanner.len(), ADMIN_PER_IP_MAX);
        assert!(limits.admit(ip("10.0.0.2")).is_some());
        let own: Vec<_> = (0..ADMIN_MAX).map_while(|_| limits.admit(ip("::ffff:127.0.0.1"))).collect();
        assert_eq!(own.len(), ADMIN_MAX - ADMIN_PER_IP_MAX, "this machine has all that is left");
    }

    #[test]
    fn counts_the_client_behind_a_trusted_proxy_and_trusts_no_other_header() {
        let limits = limits_of(100, 1, r#"["10.0.0.0/8"]"#);
        let says =
            |value: &str| HeaderMap::from_iter([("x-forwarded-for".try_into().unwrap(), value.parse().unwrap())]);
        let proxied: Vec<_> = (0..5).map(|_| limits.admit(ip("10.0.0.1")).unwrap()).collect();
        let first = limits.admit_forwarded(ip("10.0.0.1"), &says("203.0.113.7"));
        assert!(matches!(first, Ok(Some(_))));
        assert!(limits.admit_forwarded(ip("10.0.0.2"), &says("198.51.100.1, 203.0.113.7, 10.0.0.9")).is_err());
        assert!(matches!(limits.admit_forwarded(ip("10.0.0.1"), &says("203.0.113.8")), Ok(Some(_))));
        assert!(matches!(limits.admit_forwarded(ip("203.0.113.7"), &says("1.1.1.1")), Ok(None)), "no proxy of ours");
        assert!(limits.admit(ip("203.0.113.7")).is_none(), "by whatever way it comes");
        drop((first, proxied));
        assert!(limits.admit(ip("203.0.113.7")).is_some());
    }
}
