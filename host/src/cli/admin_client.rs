//! The operators' commands' way to a host that runs: its admin API, asked over HTTP, blocking.
//!
//! Where the host is comes from the settings (`admin.address`, with `0.0.0.0` read as this machine) or from `--admin-url`; who asks, from
//! `admin.token` and `admin.client_cert`; whom to believe over TLS, from `admin.ca`. What the host refuses is told in its own words (`{error}`) with the status.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use ureq::{Agent, Body, tls::TlsConfig};

use crate::config::{AdminConfig, Secret};
use crate::edge::tls;

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long a request may take, until its answer is read whole, unless [`AdminClient::within`] says otherwise.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The longest answer in JSON that is read, in bytes.
const JSON_BYTES_MAX: u64 = 64 << 20;

/// Why a request to the admin API came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// `--admin-url`, or the port of `admin.address`, leads nowhere.
    #[error("{0}")]
    Address(String),
    /// A certificate or key of the settings cannot be used.
    #[error("{0}")]
    Tls(String),
    /// A header cannot be sent; its name.
    #[error("the header `{0}` cannot be sent: it may hold visible ASCII only")]
    Header(String),
    /// Nobody answers there, or not in time.
    #[error("no answer from {url}: {problem}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// Why.
        problem: String,
    },
    /// The host refuses, in its own words.
    #[error("{error} ({status} from {url})")]
    Refused {
        /// What was asked for.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The host's words.
        error: String,
    },
    /// The answer is not what the admin API of this version gives.
    #[error("the answer from {url} cannot be read: {problem}")]
    Unreadable {
        /// What was asked for.
        url: String,
        /// Why.
        problem: String,
    },
}

impl AdminError {
    /// The HTTP status of a refusal.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// An answer that is not JSON.
pub struct Raw {
    /// The bytes.
    pub body: Vec<u8>,
    headers: HeaderMap,
}

impl Raw {
    /// A header's text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The admin API of one host.
pub struct AdminClient {
    base: String,
    token: Option<Secret>,
    tls: Option<TlsConfig>,
    agent: Agent,
}

impl AdminClient {
    /// The host of the settings, or the one at `url` (`--admin-url`). Nothing is sent yet.
    ///
    /// # Errors
    /// [`AdminError::Address`], [`AdminError::Tls`].
    pub fn new(admin: &AdminConfig, url: Option<&str>) -> Result<Self, AdminError> {
        let names_host = |url: &str| {
            ["http://", "https://"].iter().any(|scheme| url.len() > scheme.len() && url.starts_with(scheme))
        };
        let base = match url {
            None => of_address(admin)?,
            Some(url) if names_host(url) => url.trim_end_matches('/').into(),
            Some(url) => {
                let problem = format!("--admin-url must begin with http:// or https:// and name a host, not `{url}`");
                return Err(AdminError::Address(problem));
            }
        };
        let tls = base.starts_with("https://").then(|| tls::of_commands(admin)).transpose();
        let tls = tls.map_err(|error| AdminError::Tls(error.to_string()))?;
        let agent = agent(ANSWER_MAX, tls.as_ref());
        Ok(Self { base, token: admin.token.clone(), tls, agent })
    }

    /// The same, but with another time that a request may take.
    #[must_use]
    pub fn within(self, answer_max: Duration) -> Self {
        Self { agent: agent(answer_max, self.tls.as_ref()), ..self }
    }

    /// GET; `path` begins with `/` and may have a query, its parts encoded with [`encoded`].
    ///
    /// # Errors
    /// See [`AdminError`].
    pub fn get(&self, path: &str) -> Result<Value, AdminError> {
        let url = self.url(path);
        json(&url, self.send(&url, "GET", &[], &[])?)
    }

    /// GET of what is not JSON, at most `bytes_max` long.
    ///
    /// # Errors
    /// See [`AdminError`].
    pub fn get_raw(&self, path: &str, bytes_max: u64) -> Result<Raw, AdminError> {
        let url = self.url(path);
        let (head, body) = self.send(&url, "GET", &[], &[])?.into_parts();
        Ok(Raw { body: read(&url, body, bytes_max)?, headers: head.headers })
    }

    /// POST of JSON.
    ///
    /// # Errors
    /// See [`AdminError`].
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, AdminError> {
        let url = self.url(path);
        let headers = [("content-type", "application/json")];
        json(&url, self.send(&url, "POST", &headers, body.to_string().as_bytes())?)
    }

    /// POST of bytes, with headers that say more of them.
    ///
    /// # Errors
    /// See [`AdminError`].
    pub fn post_raw(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Value, AdminError> {
        let url = self.url(path);
        let kind = ("content-type", "application/octet-stream");
        let headers: Vec<_> = std::iter::once(kind).chain(headers.iter().copied()).collect();
        json(&url, self.send(&url, "POST", &headers, body)?)
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn send(
        &self,
        url: &str,
        method: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response<Body>, AdminError> {
        let unreachable = |error: ureq::Error| AdminError::Unreachable { url: url.into(), problem: error.to_string() };
        let mut request = ureq::http::Request::builder().method(method).uri(url);
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, visible("authorization", &bearer(token))?);
        }
        for (name, value) in headers {
            let known = HeaderName::try_from(*name).map_err(|_| AdminError::Header((*name).to_owned()))?;
            request = request.header(known, visible(name, value)?);
        }
        let wrong = |error: ureq::http::Error| AdminError::Address(format!("{url} is no address: {error}"));
        let answer = if method == "GET" {
            self.agent.run(request.body(()).map_err(wrong)?)
        } else {
            self.agent.run(request.body(body).map_err(wrong)?)
        };
        let answer = answer.map_err(unreachable)?;
        if answer.status().is_success() { Ok(answer) } else { Err(refusal(url, answer)) }
    }
}

fn bearer(token: &Secret) -> String {
    format!("Bearer {}", token.expose())
}

fn visible(name: &str, value: &str) -> Result<HeaderValue, AdminError> {
    HeaderValue::from_str(value).map_err(|_| AdminError::Header(name.to_owned()))
}

/// A text as a part of a path or of a query: all but letters, digits and `-._~` as `%XX`.
#[must_use]
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// A listener on every address of its machine is asked on this one.
fn of_address(admin: &AdminConfig) -> Result<String, AdminError> {
    let address = admin.address;
    if address.port() == 0 {
        let problem = "admin.address has port 0, which the system chooses at the start: say --admin-url";
        return Err(AdminError::Address(problem.to_owned()));
    }
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let scheme = if admin.tls.cert.is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{}", SocketAddr::new(ip, address.port())))
}

fn agent(answer_max: Duration, tls: Option<&TlsConfig>) -> Agent {
    // No proxy of the environment: the host itself is meant, and it refuses what a proxy brings.
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .timeout_connect(Some(CONNECT_MAX))
        .timeout_global(Some(answer_max));
    let config = match tls {
        Some(tls) => config.tls_config(tls.clone()),
        None => config,
    };
    config.build().new_agent()
}

fn read(url: &str, mut body: Body, bytes_max: u64) -> Result<Vec<u8>, AdminError> {
    let bytes = body.with_config().limit(bytes_max).read_to_vec();
    bytes.map_err(|error| AdminError::Unreadable { url: url.to_owned(), problem: error.to_string() })
}

fn json(url: &str, answer: Response<Body>) -> Result<Value, AdminError> {
    let bytes = read(url, answer.into_body(), JSON_BYTES_MAX)?;
    let parsed = serde_json::from_slice(&bytes);
    parsed.map_err(|error| AdminError::Unreadable { url: url.to_owned(), problem: error.to_string() })
}

fn refusal(url: &str, answer: Response<Body>) -> AdminError {
    let status = answer.status();
    let said = read(url, answer.into_body(), JSON_BYTES_MAX).unwrap_or_default();
    let parsed: Option<Value> = serde_json::from_slice(&said).ok();
    let words = parsed.as_ref().and_then(|value| value.get("error")).and_then(Value::as_str);
    let error = words.or(status.canonical_reason()).unwrap_or("refused").to_owned();
    AdminError::Refused { url: url.to_owned(), status: status.as_u16(), error }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Whether `request` is there to the end that its head announces: the body may come in pieces of its own.
    fn is_whole(request: &[u8]) -> bool {
        let Some(head) = request.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
        let lines = String::from_utf8_lossy(&request[..head]).to_lowercase();
        let body = lines.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        request.len() >= head + 4 + body.unwrap_or(0)
    }

    /// Answers one request with `answer`; gives the client's end and what it was asked.
    fn host(answer: &'static str) -> (AdminConfig, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !is_whole(&request) {
                let count = stream.read(&mut buffer).unwrap();
                assert!(count > 0, "the request ends before its end");
                request.extend_from_slice(&buffer[..count]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(request).unwrap()
        });
        (AdminConfig { address, token: Secret::new("sixteen--letters"), ..AdminConfig::default() }, asked)
    }

    #[test]
    fn an_answer_is_read_and_the_token_sent() {
        let (admin, asked) = host("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"a\": 1}\n");
        let client = AdminClient::new(&admin, None).unwrap();
        assert_eq!(client.get("/v1/policies?a=b").unwrap()["a"], 1);
        let asked = asked.join().unwrap();
        assert!(asked.starts_with("GET /v1/policies?a=b HTTP/1.1\r\n"), "{asked}");
        assert!(asked.to_lowercase().contains("authorization: bearer sixteen--letters\r\n"), "{asked}");
    }

    #[test]
    fn bytes_go_out_with_their_headers_and_come_in_up_to_a_bound() {
        let (admin, asked) = host("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        let client = AdminClient::new(&admin, None).unwrap();
        client.post_raw("/v1/x", &[("x-config", "{}")], b"\x01{}").unwrap();
        let asked = asked.join().unwrap();
        assert!(asked.contains("x-config: {}\r\n") && asked.ends_with("\r\n\r\n\x01{}"), "{asked}");

        let (admin, asked) = host("HTTP/1.1 200 OK\r\nx-a: b\r\ncontent-length: 4\r\n\r\nabcd");
        let raw = AdminClient::new(&admin, None).unwrap().get_raw("/v1/x", 4).unwrap();
        assert_eq!((raw.header("x-a"), raw.body.as_slice()), (Some("b"), &b"abcd"[..]));
        asked.join().unwrap();
        let (admin, asked) = host("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd");
        let longer = AdminClient::new(&admin, None).unwrap().get_raw("/v1/x", 3);
        assert!(matches!(longer, Err(AdminError::Unreadable { .. })));
        asked.join().unwrap();
    }

    #[test]
    fn a_refusal_is_told_in_the_hosts_words() {
        let (admin, asked) = host("HTTP/1.1 409 Conflict\r\ncontent-length: 15\r\n\r\n{\"error\":\"why\"}");
        let refused = AdminClient::new(&admin, None).unwrap().get("/v1/x").unwrap_err();
        assert_eq!(refused.status(), Some(409));
        assert!(refused.to_string().starts_with("why (409 from http://127.0.0.1:"), "{refused}");
        asked.join().unwrap();
    }

    #[test]
    fn where_the_host_is() {
        let of =
            |address: &str| of_address(&AdminConfig { address: address.parse().unwrap(), ..AdminConfig::default() });
        assert_eq!(of("0.0.0.0:9").unwrap(), "http://127.0.0.1:9");
        assert_eq!(of("[::]:9").unwrap(), "http://[::1]:9");
        assert_eq!(of("10.1.2.3:9").unwrap(), "http://10.1.2.3:9");
        assert!(of("127.0.0.1:0").unwrap_err().to_string().contains("--admin-url"));
        let admin = AdminConfig::default();
        for wrong in ["ftp://a", "localhost:9090", "http://", "https://", ""] {
            assert!(AdminClient::new(&admin, Some(wrong)).is_err(), "{wrong}");
        }
        assert_eq!(AdminClient::new(&admin, Some("http://a:1/")).unwrap().url("/v1"), "http://a:1/v1");
        let mut over_tls = AdminConfig { address: "0.0.0.0:9".parse().unwrap(), ..AdminConfig::default() };
        over_tls.tls.cert = Some("cert.pem".into());
        assert_eq!(of_address(&over_tls).unwrap(), "https://127.0.0.1:9");
        over_tls.ca = Some("/no/such/ca.pem".into());
        let error = AdminClient::new(&over_tls, Some("https://a")).err().unwrap();
        assert!(error.to_string().starts_with("/no/such/ca.pem cannot be read"), "{error}");
    }

    #[test]
    fn nobody_there_is_said() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let admin = AdminConfig { address: listener.local_addr().unwrap(), ..AdminConfig::default() };
        drop(listener);
        let error = AdminClient::new(&admin, None).unwrap().get("/health").unwrap_err();
        assert!(error.to_string().starts_with("no answer from http://127.0.0.1:"), "{error}");
    }

    #[test]
    fn a_part_of_a_path_is_encoded() {
        assert_eq!(encoded("a-b.c_d~1"), "a-b.c_d~1");
        assert_eq!(encoded("a/b ü?"), "a%2Fb%20%C3%BC%3F");
    }
}
