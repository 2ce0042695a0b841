//! How many connections there may be: in all, from one address, of one user.
//!
//! Each that is let in holds a [`Place`], which is given back when it is dropped; so the counts are right in whatever order and
//! way connections end. Who is not let in costs an accept and a close, or a CONNECT_ERROR.

mod forwarded;
mod tally;

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::http::HeaderMap;

pub(crate) use self::tally::{Place, Tally};
use crate::config::{ListenConfig, Networks};

/// How many connections the admin listener has at the most.
const ADMIN_MAX: usize = 256;
/// And from one address, so that nobody shuts out the others: operators, scrapes, probes. Whoever is on this machine has all of them.
const ADMIN_PER_IP_MAX: usize = 32;
/// Files that the rest of the host may need: Redis, policies, records, the admin listener's connections.
const OTHER_FILES: u64 = 256 + ADMIN_MAX as u64;

/// From where a connection comes: an IPv4 address, or the network of an IPv6 one, for whoever has one of those has 2^64.
type Origin = IpAddr;

/// A place among those of one origin.
pub(crate) type OriginPlace = Place<Origin>;

fn origin(address: IpAddr) -> Origin {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

/// Who is let in at a listener. A clone counts with it.
#[derive(Clone)]
pub(crate) struct Admission(Arc<Rules>);

struct Rules {
    max: usize,
    open: AtomicUsize,
    by_origin: Arc<Tally<Origin>>,
    /// Connections of this machine with itself are not counted by origin.
    spares_loopback: bool,
    trusted: Networks,
    gauge: metrics::Gauge,
    too_many: metrics::Counter,
    too_many_of_one: metrics::Counter,
    late: metrics::Counter,
}

impl Admission {
    /// The Socket.IO listener's. Says so when there may be more connections than the process may have files.
    pub(crate) fn of_clients(listen: &ListenConfig) -> Self {
        let max = connections_max(listen.connections_max.as_usize());
        let per_ip = listen.connections_per_ip_max.as_usize();
        Self::new("clients", max, per_ip, listen.trusted_proxies.clone(), ["total", "ip"])
    }

    /// The admin listener's.
    pub(crate) fn of_operators() -> Self {
        Self::new("admin", ADMIN_MAX, ADMIN_PER_IP_MAX, Networks::default(), ["admin", "admin"])
    }

    /// `reasons`: as what refusals are counted, for all and for one origin.
    fn new(listener: &'static str, max: usize, per_ip: usize, trusted: Networks, reasons: [&'static str; 2]) -> Self {
        let [too_many, too_many_of_one] = reasons.map(refusals);
        Self(Arc::new(Rules {
            max,
            open: AtomicUsize::new(0),
            by_origin: Arc::new(Tally::new(per_ip)),
            spares_loopback: listener == "admin",
            trusted,
            gauge: metrics::gauge!("pointwork_connections", "listener" => listener),
            too_many,
            too_many_of_one,
            late: refusals("late"),
        }))
    }

    /// A place for a connection from `address`; `None` when there is none, which is counted.
    pub(crate) fn admit(&self, address: IpAddr) -> Option<Admitted> {
        let rules = &self.0;
        // Only this task adds to it.
        if rules.open.load(Ordering::Relaxed) >= rules.max {
            rules.too_many.increment(1);
            return None;
        }
        let is_spared = rules.spares_loopback && address.to_canonical().is_loopback();
        let is_limited = rules.by_origin.is_limited() && !is_spared && !rules.trusted.hold(address);
        let place = if is_limited { Some(Box::new(self.place_of(address)?)) } else { None };
        rules.open.fetch_add(1, Ordering::Relaxed);
        rules.gauge.increment(1);
        Some(Admitted { admission: self.clone(), _place: place })
    }

    /// Counts a connection that is closed because it did not say in time what it wants.
    pub(crate) fn note_late(&self) {
        self.0.late.increment(1);
    }

    fn place_of(&self, address: IpAddr) -> Option<OriginPlace> {
        let place = self.0.by_origin.take(origin(address));
        if place.is_none() {
            self.0.too_many_of_one.increment(1);
        }
        place
    }

    /// A place for the client that a trusted proxy at `peer` speaks for. An error when it has too many, which is counted;
    /// `None` when there is nothing to count.
    pub(crate) fn admit_forwarded(&self, peer: IpAddr, headers: &HeaderMap) -> Result<Option<OriginPlace>, TooMany> {
        let rules = &self.0;
        if !rules.by_origin.is_limited() || rules.trusted.is_empty() || !rules.trusted.hold(peer) {
            return Ok(None);
        }
        match forwarded::client(headers, &rules.trusted) {
            Some(client) => self.place_of(client).map(Some).ok_or(TooMany),
            None => Ok(None),
        }
    }
}

/// There are as many connections of one as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// What a connection holds for as long as it lasts.
pub(crate) struct Admitted {
    admission: Admission,
    _place: Option<Box<OriginPlace>>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.admission.0.open.fetch_sub(1, Ordering::Relaxed);
        self.admission.0.gauge.decrement(1);
    }
}

/// Sockets of one user in the root namespace.
#[derive(Clone)]
pub(crate) struct Users {
    sockets: Arc<Tally<Arc<str>>>,
    too_many: metrics::Counter,
}

impl Users {
    /// `max`: for each; 0 for any number.
    pub(crate) fn new(max: usize) -> Self {
        Self { sockets: Arc::new(Tally::new(max)), too_many: refusals("user") }
    }

    /// A place for one more socket; `None` when they are not limited.
    pub(crate) fn admit(&self, user: &Arc<str>) -> Result<Option<Place<Arc<str>>>, TooMany> {
        if !self.sockets.is_limited() {
            return Ok(None);
        }
        let place = self.sockets.take(user.clone());
        if place.is_none() {
            self.too_many.increment(1);
        }
        place.map(Some).ok_or(TooMany)
    }
}

fn refusals(reason: &'static str) -> metrics::Counter {
    metrics::counter!("pointwork_connections_refused_total", "reason" => reason)
}

/// The setting, but no more than the process may have files: over that, accepting would fail for everyone. 0 is as many as that.
fn connections_max(set: usize) -> usize {
    let Ok(files) = rlimit::Resource::NOFILE.get_soft() else {
        return if set == 0 { usize::MAX } else { set };
    };
    let left = usize::try_from(files.saturating_sub(OTHER_FILES).max(files / 2)).unwrap_or(usize::MAX);
    if set > left {
        tracing::warn!(
            set,
            files,
            max = left,
            "listen.connections_max is above what the limit of open files leaves (ulimit -n), which counts in its place"
        );
    }
    if set == 0 { left } else { set.min(left) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn admission(max: usize, per_ip: usize, trusted: &str) -> Admission {
        Admission::new("test", max, per_ip, serde_json::from_str(trusted).unwrap(), ["total", "ip"])
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn there_are_no_more_than_there_may_be_in_whatever_order_they_end() {
        let door = admission(3, 0, "[]");
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut held: Vec<_> = (0..3).map(|_| door.admit(ip("10.0.0.1"))).collect();
            assert!(held.iter().all(Option::is_some) && door.admit(ip("10.0.0.2")).is_none());
            for index in order {
                held[index] = None;
                let again = door.admit(ip("10.0.0.3"));
                assert!(again.is_some());
            }
            assert_eq!(door.0.open.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn an_address_and_a_network_of_ipv6_have_so_many_each() {
        let door = admission(100, 2, "[]");
        let one = door.admit(ip("10.0.0.1"));
        let two = door.admit(ip("::ffff:10.0.0.1"));
        assert!(one.is_some() && two.is_some() && door.admit(ip("10.0.0.1")).is_none());
        assert!(door.admit(ip("10.0.0.2")).is_some(), "others are let in");
        assert_eq!(door.0.open.load(Ordering::Relaxed), 2, "who is refused takes no place");
        drop(one);
        assert!(door.admit(ip("10.0.0.1")).is_some());
        let of_network: Vec<_> = ["2001:db8::1", "2001:db8::ffff:1"].map(|address| door.admit(ip(address))).into();
        assert!(door.admit(ip("2001:db8::2")).is_none() && door.admit(ip("2001:db8:0:1::2")).is_some());
        drop((two, of_network));
        assert_eq!(door.0.by_origin.len(), 0, "nothing is kept of who is gone");
    }

    #[test]
    fn no_address_shuts_others_out_of_the_admin_listener() {
        let door = Admission::of_operators();
        let scanner: Vec<_> = (0..ADMIN_MAX).map_while(|_| door.admit(ip("10.0.0.1"))).collect();
        assert_eq!(scanner.len(), ADMIN_PER_IP_MAX);
        assert!(door.admit(ip("10.0.0.2")).is_some());
        let own: Vec<_> = (0..ADMIN_MAX).map_while(|_| door.admit(ip("::ffff:127.0.0.1"))).collect();
        assert_eq!(own.len(), ADMIN_MAX - ADMIN_PER_IP_MAX, "this machine has all that is left");
    }

    #[test]
    fn behind_a_trusted_proxy_its_client_is_counted_and_nobody_else_is_believed() {
        let door = admission(100, 1, r#"["10.0.0.0/8"]"#);
        let says =
            |value: &str| HeaderMap::from_iter([("x-forwarded-for".try_into().unwrap(), value.parse().unwrap())]);
        let proxied: Vec<_> = (0..5).map(|_| door.admit(ip("10.0.0.1")).unwrap()).collect();
        let first = door.admit_forwarded(ip("10.0.0.1"), &says("203.0.113.7"));
        assert!(matches!(first, Ok(Some(_))));
        assert!(door.admit_forwarded(ip("10.0.0.2"), &says("198.51.100.1, 203.0.113.7, 10.0.0.9")).is_err());
        assert!(matches!(door.admit_forwarded(ip("10.0.0.1"), &says("203.0.113.8")), Ok(Some(_))));
        assert!(matches!(door.admit_forwarded(ip("203.0.113.7"), &says("1.1.1.1")), Ok(None)), "no proxy of ours");
        assert!(door.admit(ip("203.0.113.7")).is_none(), "by whatever way it comes");
        drop((first, proxied));
        assert!(door.admit(ip("203.0.113.7")).is_some());
    }

    #[test]
    fn a_user_has_so_many_sockets() {
        let (ada, bob): (Arc<str>, Arc<str>) = ("ada".into(), "bob".into());
        let users = Users::new(1);
        let held = users.admit(&ada);
        assert!(matches!(held, Ok(Some(_))) && users.admit(&ada).is_err() && users.admit(&bob).is_ok());
        drop(held);
        assert!(users.admit(&ada).is_ok());
        assert!(matches!(Users::new(0).admit(&ada), Ok(None)));
    }

    #[test]
    fn the_limit_of_open_files_is_never_passed() {
        let files = usize::try_from(rlimit::Resource::NOFILE.get_soft().unwrap()).unwrap();
        assert!(connections_max(0) < files && connections_max(usize::MAX) == connections_max(0));
        assert_eq!(connections_max(7), 7);
    }
}
