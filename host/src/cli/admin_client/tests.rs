//! Tests of the client against a listener that answers one request.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use ureq::http::HeaderValue;

use super::AdminClient;
use crate::config::{AdminConfig, Secret};

/// Whether `request` is complete by the length that its head announces: the body may arrive in several pieces.
fn is_complete(request: &[u8]) -> bool {
    let Some(head) = request.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let lines = String::from_utf8_lossy(&request[..head]).to_lowercase();
    let body = lines.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    request.len() >= head + 4 + body.unwrap_or(0)
}

/// Answers one request with `answer`. Returns a client for it, and the request once it has come.
fn host(answer: &'static str) -> (AdminClient, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let request = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        while !is_complete(&request) {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the request ends before its end");
            request.extend_from_slice(&buffer[..count]);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    });
    let admin = AdminConfig { address, token: Secret::new("sixteen--letters"), ..AdminConfig::default() };
    (AdminClient::new(&admin, None).unwrap(), request)
}

#[test]
fn sends_the_token_and_reads_the_answer() {
    let (client, request) = host("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"a\": 1}\n");
    assert_eq!(client.get("/v1/policies?a=b").unwrap()["a"], 1);
    let request = request.join().unwrap();
    assert!(request.starts_with("GET /v1/policies?a=b HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains("authorization: bearer sixteen--letters\r\n"), "{request}");
}

#[test]
fn posts_json() {
    let (client, request) = host("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
    client.post("/v1/x", &serde_json::json!({ "a": 1 })).unwrap();
    let request = request.join().unwrap();
    assert!(request.starts_with("POST /v1/x HTTP/1.1\r\n") && request.ends_with("\r\n\r\n{\"a\":1}"), "{request}");
    assert!(request.contains("content-type: application/json\r\n"), "{request}");
}

#[test]
fn sends_bytes_with_a_header_and_reads_bytes_up_to_a_limit() {
    let (client, request) = host("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
    client.post_raw("/v1/x", ("x-config", "{}"), b"\x01{}").unwrap();
    let request = request.join().unwrap();
    assert!(request.contains("x-config: {}\r\n") && request.ends_with("\r\n\r\n\x01{}"), "{request}");

    let (client, request) = host("HTTP/1.1 200 OK\r\nx-a: b\r\ncontent-length: 4\r\n\r\nabcd");
    let raw = client.get_raw("/v1/x", 4).unwrap();
    assert_eq!((&raw.headers()["x-a"], raw.body().as_slice()), (&HeaderValue::from_static("b"), &b"abcd"[..]));
    request.join().unwrap();
    let (client, request) = host("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd");
    let error = client.get_raw("/v1/x", 3).err().unwrap();
    assert!(error.to_string().contains("cannot be read"), "{error}");
    request.join().unwrap();
}

#[test]
fn reports_a_refusal_in_the_words_of_the_host() {
    let (client, request) = host("HTTP/1.1 409 Conflict\r\ncontent-length: 15\r\n\r\n{\"error\":\"why\"}");
    let refused = client.get("/v1/x").unwrap_err();
    assert!(refused.to_string().starts_with("why (409 from http://127.0.0.1:"), "{refused}");
    request.join().unwrap();
}

#[test]
fn reports_a_host_that_does_not_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = AdminConfig { address: listener.local_addr().unwrap(), ..AdminConfig::default() };
    drop(listener);
    let error = AdminClient::new(&admin, None).unwrap().get("/health").unwrap_err();
    assert!(error.to_string().starts_with("no answer from http://127.0.0.1:"), "{error}");
}

#[test]
fn names_a_file_of_certificates_that_cannot_be_read() {
    let admin = AdminConfig { ca: Some("/no/such/ca.pem".into()), ..AdminConfig::default() };
    let error = AdminClient::new(&admin, Some("https://a")).err().unwrap();
    assert!(error.to_string().starts_with("/no/such/ca.pem cannot be read"), "{error}");
}
