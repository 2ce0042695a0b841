//! Copies the head of a request, so that a socket needs less memory.
//!
//! A socket keeps the head of its first request for life. URI and header values are slices of hyper's read buffer, so a few hundred
//! bytes would keep 8 to 16 KiB for each socket.

use axum::{
    body::Bytes,
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Uri, header},
};

/// Headers that only matter to this exchange. Hyper has already applied them.
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

/// The same request with a copied head, whose text is one allocation. It must be the outermost layer: inner layers may keep parts of
/// the head.
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
    // It has been parsed before, so it parses again. If not, the original URI stays.
    if let Ok(uri) = Uri::from_maybe_shared(text.split_to(uri_bytes)) {
        *request.uri_mut() = uri;
    }
    // A new map too: that of hyper has room for every header that arrived, 100 bytes each.
    let mut kept = HeaderMap::with_capacity(request.headers().keys_len());
    for (name, value) in request.headers() {
        let copy = HeaderValue::from_maybe_shared(text.split_to(value.len()));
        kept.append(name, copy.unwrap_or_else(|_| value.clone()));
    }
    // A clone has no spare room.
    *request.headers_mut() = kept.clone();
    request
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[tokio::test]
    async fn the_copied_head_is_equal_and_frees_the_buffer() {
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
