//! Requests to an admin listener, each on a connection of its own.

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Longer than ten thousand records of decisions are.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// The body of what `url` answers. Errors when that is not 200.
pub(crate) async fn get(url: &str) -> Result<String> {
    request("GET", url, "").await
}

/// As [`get`]; `body` is JSON.
pub(crate) async fn post(url: &str, body: &str) -> Result<String> {
    request("POST", url, body).await
}

/// HTTP/1.0: the answer ends with the connection, and comes in one piece.
async fn request(method: &str, url: &str, body: &str) -> Result<String> {
    let url = url.strip_prefix("http://").context("the admin listener speaks plain http")?;
    let (address, path) = url.split_once('/').context("a request has a path")?;
    let mut stream = TcpStream::connect(address).await?;
    let length = body.len();
    let head = format!("{method} /{path} HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/json\r\n");
    stream.write_all(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes()).await?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head")?;
    let status = head.split_whitespace().nth(1);
    ensure!(status == Some("200"), "{method} {url}: {head}\n{body}");
    Ok(body.to_owned())
}
