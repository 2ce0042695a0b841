//! Gives a request a head of its own, without what nobody asks for later.
//!
//! A socket keeps the head of its first request for as long as it lives. Its URI and header values are slices of the buffer
//! that hyper read it into: as they come, some hundred bytes would hold on to 8 to 16 KiB a socket.

use axum::{
    body::Bytes,
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Uri, header},
};

/// Headers that speak of this one exchange. Hyper has obeyed them by now, the engine answers in one way only.
const PASSING: [HeaderName; 9] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONNECTION,
    header::PRAGMA,
    header::SEC_WEBSOCKET_EXTENSIONS,
    header::SEC_WEBSOCKET_VERSION,
    header::UPGRADE,
];

/// The same request, of which nothing points into the buffer of its connection any more; all of its text is one allocation.
/// Belongs outside of everything that keeps a part of a request.
pub(crate) async fn detach(mut request: Request) -> Request {
    for name in PASSING {
        request.headers_mut().remove(name);
    }
    let mut text = request.uri().to_string().into_bytes();
    let uri_bytes = text.len();
    text.reserve_exact(request.headers().values().map(HeaderValue::len).sum());
    for value in request.headers().values() {
        text.extend_from_slice(value.as_bytes());
    }
    let mut text = Bytes::from(text);
    // What was parsed once parses again; were it not so, the original does, too.
    if let Ok(uri) = Uri::from_maybe_shared(text.split_to(uri_bytes)) {
        *request.uri_mut() = uri;
    }
    // A map of its own as well: that of hyper has room for all that came, 100 bytes for each.
    let mut kept = HeaderMap::with_capacity(request.headers().keys_len());
    for (name, value) in request.headers() {
        let copy = HeaderValue::from_maybe_shared(text.split_to(value.len()));
        kept.append(name, copy.unwrap_or_else(|_| value.clone()));
    }
    // The clone has room for what there is, and no more.
    *request.headers_mut() = kept.clone();
    request
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[tokio::test]
    async fn the_head_says_the_same_and_leaves_its_buffer() {
        let buffer = Bytes::from(b"/v1/updates/?EIO=4\xe4pp.example.comonetwo".to_vec());
        let value = |range| HeaderValue::from_maybe_shared(buffer.slice(range)).unwrap();
        let request = axum::http::Request::get(Uri::from_maybe_shared(buffer.slice(..18)).unwrap())
            .header(header::HOST, value(18..33))
            .header(header::UPGRADE, "websocket")
            .header("x-forwarded-for", value(33..36))
            .header("x-forwarded-for", value(36..39))
            .body(Body::empty())
            .unwrap();
        assert!(!buffer.is_unique());

        let request = detach(request).await;
        assert!(buffer.is_unique());
        assert_eq!(request.uri(), "/v1/updates/?EIO=4");
        let headers: Vec<_> = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let forwarded = "x-forwarded-for";
        let expected: [(&str, &[u8]); 3] = [("host", b"\xe4pp.example.com"), (forwarded, b"one"), (forwarded, b"two")];
        assert_eq!(headers, expected);
    }
}
