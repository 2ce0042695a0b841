//! Finds the URL of the host that a command talks to, and encodes parts of URLs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::ensure;

use crate::config::AdminConfig;

/// The base URL, without a slash at the end: `url` (`--admin-url`) if it is given, else `admin.address` of the settings.
///
/// # Errors
/// When `url` is not of HTTP, or the settings leave the port to the system.
pub(super) fn base_url(admin: &AdminConfig, url: Option<&str>) -> anyhow::Result<String> {
    let Some(url) = url else { return url_of_settings(admin) };
    let names_host = ["http://", "https://"].iter().any(|scheme| url.len() > scheme.len() && url.starts_with(scheme));
    ensure!(names_host, "--admin-url must begin with http:// or https:// and name a host, not `{url}`");
    Ok(url.trim_end_matches('/').into())
}

/// If the host listens on all addresses of its machine, the command connects to the loopback address.
fn url_of_settings(admin: &AdminConfig) -> anyhow::Result<String> {
    let address = admin.address;
    ensure!(address.port() != 0, "admin.address has port 0, which the system chooses at the start: say --admin-url");
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let scheme = if admin.tls.cert.is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{}", SocketAddr::new(ip, address.port())))
}

/// A text as a part of a path or of a query: all but letters, digits and `-._~` become `%XX`.
pub(in crate::cli) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_host_of_the_settings() {
        let url = |address: &str| {
            base_url(&AdminConfig { address: address.parse().unwrap(), ..AdminConfig::default() }, None)
        };
        assert_eq!(url("0.0.0.0:9").unwrap(), "http://127.0.0.1:9");
        assert_eq!(url("[::]:9").unwrap(), "http://[::1]:9");
        assert_eq!(url("10.1.2.3:9").unwrap(), "http://10.1.2.3:9");
        assert!(url("127.0.0.1:0").unwrap_err().to_string().contains("--admin-url"));
        let mut with_tls = AdminConfig { address: "0.0.0.0:9".parse().unwrap(), ..AdminConfig::default() };
        with_tls.tls.cert = Some("cert.pem".into());
        assert_eq!(base_url(&with_tls, None).unwrap(), "https://127.0.0.1:9");
    }

    #[test]
    fn accepts_only_http_urls_that_name_a_host() {
        let admin = AdminConfig::default();
        for wrong in ["ftp://a", "localhost:9090", "http://", "https://", ""] {
            assert!(base_url(&admin, Some(wrong)).is_err(), "{wrong}");
        }
        assert_eq!(base_url(&admin, Some("http://a:1/")).unwrap(), "http://a:1");
    }

    #[test]
    fn encodes_a_part_of_a_path() {
        assert_eq!(percent_encoded("a-b.c_d~1"), "a-b.c_d~1");
        assert_eq!(percent_encoded("a/b ü?"), "a%2Fb%20%C3%BC%3F");
    }
}
