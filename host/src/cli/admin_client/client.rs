//! Sends GET and POST requests to the admin API of one host, and reads the answers.
//!
//! The settings say where the host is, with which token and certificate to sign in (`admin.token`, `admin.client_cert`) and which
//! certificates to trust (`admin.ca`).

use std::time::Duration;

use anyhow::{Context, anyhow};
use serde_json::Value;
use ureq::http::{HeaderValue, Request, Response, header};
use ureq::{Agent, Body, tls::TlsConfig};

use super::address::base_url;
use crate::{
    config::{AdminConfig, Secret},
    edge::tls,
};

/// How long it may take to connect.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long a request may take, until its whole answer is read.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The longest JSON answer that is read, in bytes.
const JSON_BYTES_MAX: u64 = 64 << 20;

/// The admin API of one host. A request fails when the host does not answer in time, or refuses it: the error is then what the host
/// says, with the HTTP status.
pub(in crate::cli) struct AdminClient {
    base_url: String,
    token: Option<Secret>,
    agent: Agent,
}

impl AdminClient {
    /// A client for the host at `url` (`--admin-url`), or for the host of the settings. Sends nothing yet.
    ///
    /// # Errors
    /// When the URL names no host, or a certificate or key of the settings cannot be used.
    pub(in crate::cli) fn new(admin: &AdminConfig, url: Option<&str>) -> anyhow::Result<Self> {
        let base_url = base_url(admin, url)?;
        let tls = base_url.starts_with("https://").then(|| tls::of_commands(admin)).transpose();
        let tls = tls.map_err(|error| anyhow!("{error}"))?;
        Ok(Self { base_url, token: admin.token.clone(), agent: agent(tls) })
    }

    /// Sends a GET request and reads JSON. `path` begins with `/`; encode parts of it with [`percent_encoded`](super::percent_encoded).
    pub(in crate::cli) fn get(&self, path: &str) -> anyhow::Result<Value> {
        let url = self.url(path);
        read_json(&url, self.send(&url, &[], None)?)
    }

    /// Sends a GET request and reads an answer that is not JSON, of at most `bytes_max` bytes.
    pub(in crate::cli) fn get_raw(&self, path: &str, bytes_max: u64) -> anyhow::Result<Response<Vec<u8>>> {
        let url = self.url(path);
        let (head, body) = self.send(&url, &[], None)?.into_parts();
        Ok(Response::from_parts(head, read(&url, body, bytes_max)?))
    }

    /// Sends JSON in a POST request and reads JSON.
    pub(in crate::cli) fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let url = self.url(path);
        read_json(&url, self.send(&url, &[("content-type", "application/json")], Some(body.to_string().as_bytes()))?)
    }

    /// Sends bytes and a header that describes them in a POST request, and reads JSON.
    pub(in crate::cli) fn post_raw(
        &self,
        path: &str,
        header: (&'static str, &str),
        body: &[u8],
    ) -> anyhow::Result<Value> {
        let url = self.url(path);
        read_json(&url, self.send(&url, &[("content-type", "application/octet-stream"), header], Some(body))?)
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }

    /// Sends a POST request if there is a body, else a GET request.
    fn send(&self, url: &str, headers: &[(&'static str, &str)], body: Option<&[u8]>) -> anyhow::Result<Response<Body>> {
        let mut request = Request::builder().uri(url);
        if let Some(token) = &self.token {
            let bearer = format!("Bearer {}", token.expose());
            request = request.header(header::AUTHORIZATION, header_value("authorization", &bearer)?);
        }
        for (name, value) in headers {
            request = request.header(*name, header_value(name, value)?);
        }
        let wrong = |error: ureq::http::Error| anyhow!("{url} is no address: {error}");
        let answer = match body {
            None => self.agent.run(request.body(()).map_err(wrong)?),
            Some(body) => self.agent.run(request.method("POST").body(body).map_err(wrong)?),
        };
        let answer = answer.map_err(|error| anyhow!("no answer from {url}: {error}"))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = read_json(url, answer).unwrap_or_default();
        let problem = body["error"].as_str().or(status.canonical_reason()).unwrap_or("refused");
        Err(anyhow!("{problem} ({} from {url})", status.as_u16()))
    }
}

fn header_value(name: &str, value: &str) -> anyhow::Result<HeaderValue> {
    HeaderValue::from_str(value)
        .map_err(|_| anyhow!("the header `{name}` cannot be sent: it may hold visible ASCII only"))
}

fn agent(tls: Option<TlsConfig>) -> Agent {
    // Proxies of the environment are ignored: the command must reach the host itself, and the host refuses proxied requests.
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .timeout_connect(Some(CONNECT_MAX))
        .timeout_global(Some(ANSWER_MAX));
    let config = match tls {
        Some(tls) => config.tls_config(tls),
        None => config,
    };
    config.build().new_agent()
}

fn read(url: &str, mut body: Body, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let bytes = body.with_config().limit(bytes_max).read_to_vec();
    bytes.map_err(|error| anyhow!("the answer from {url} cannot be read: {error}"))
}

fn read_json(url: &str, answer: Response<Body>) -> anyhow::Result<Value> {
    let bytes = read(url, answer.into_body(), JSON_BYTES_MAX)?;
    serde_json::from_slice(&bytes).with_context(|| format!("the answer from {url} cannot be read"))
}
