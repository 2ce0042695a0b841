//! Finds the client behind a trusted proxy.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;

use crate::config::Networks;

/// The client by `X-Forwarded-For`. Each proxy appends the address that it saw, so the client is the last address that is no
/// trusted proxy. A client can forge the addresses before it. `None` if there is no address.
pub(super) fn client(headers: &HeaderMap, trusted: &Networks) -> Option<IpAddr> {
    let values: Vec<&str> =
        headers.get_all("x-forwarded-for").iter().map(|value| value.to_str()).collect::<Result<_, _>>().ok()?;
    let mut client = None;
    for named in values.iter().rev().flat_map(|value| value.rsplit(',')) {
        let address = address(named.trim())?;
        client = Some(address);
        if !trusted.hold(address) {
            break;
        }
    }
    client
}

/// An address as proxies write it: some add the port.
fn address(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().map(|address| address.ip());
    text.trim_matches(['[', ']']).parse().or_else(|_| with_port()).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_the_last_address_that_is_no_trusted_proxy() {
        let trusted: Networks = serde_json::from_str(r#"["10.0.0.0/8"]"#).unwrap();
        let of = |values: &[&str]| {
            let headers = values.iter().map(|value| ("x-forwarded-for".try_into().unwrap(), value.parse().unwrap()));
            client(&headers.collect(), &trusted).map(|address| address.to_string())
        };
        assert_eq!(of(&["6.6.6.6, 203.0.113.7"]).as_deref(), Some("203.0.113.7"));
        assert_eq!(of(&["6.6.6.6,203.0.113.7 , 10.0.0.9"]).as_deref(), Some("203.0.113.7"));
        assert_eq!(of(&["6.6.6.6", "203.0.113.7:4711", "10.0.0.9"]).as_deref(), Some("203.0.113.7"));
        assert_eq!(of(&["[2001:db8::1]:80"]).as_deref(), Some("2001:db8::1"));
        assert_eq!(of(&["10.0.0.8, 10.0.0.9"]).as_deref(), Some("10.0.0.8"), "a client among the proxies");
        for nobody in [&[][..], &[""], &["unknown"], &["1.1.1.1, _hidden"]] {
            assert_eq!(of(nobody), None, "{nobody:?}");
        }
    }
}
