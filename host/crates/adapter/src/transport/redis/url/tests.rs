use fred::types::config::ServerConfig;

use super::*;

#[test]
fn parses_urls() {
    let tcp = parse("redis://ann:s%40crecy@redis.example:7000/3").unwrap();
    assert_eq!(tcp.server, ServerConfig::new_centralized("redis.example", 7000));
    assert_eq!((tcp.username.as_deref(), tcp.password.as_deref()), (Some("ann"), Some("s@crecy")));
    assert_eq!((tcp.database, tcp.uses_tls()), (Some(3), false));
    assert!(parse("rediss://redis.example").unwrap().uses_tls());
    for url in ["unix:///run/redis.sock", "redis+unix:///run/redis.sock"] {
        assert_eq!(parse(url).unwrap().server, ServerConfig::new_unix_socket("/run/redis.sock"));
    }
}

#[test]
fn does_not_quote_a_wrong_url() {
    for url in [
        "s3cret",
        "http://:s3cret@host",
        "redis-cluster://:s3cret@host",
        "unix://s3cret/redis.sock",
        "redis://:s3cret@",
        "redis://:s3cret@host:99999999",
        "redis://:s3cret@host/s3cret",
        "redis://:s3cret@host/1/2",
    ] {
        let error = parse(url).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
}
