use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsConnector, client,
    rustls::{ClientConfig, pki_types::ServerName},
};

use super::{
    CertificateFiles, ListenerCertificate,
    files::{certificates, key},
    server_config::{authorities, provider},
};
use crate::edge::{
    admission::ConnectionLimits,
    connection::{ConnectionListener, TcpConnection},
};

/// Vouches for the certificates of a test, which lie in a folder of their own.
struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Self { folder: tempfile::tempdir().unwrap(), issuer };
        std::fs::write(authority.path("ca.pem"), authority.issuer.pem()).unwrap();
        authority
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes `NAME.pem` and `NAME.key`.
    fn issue(&self, name: &str) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    fn files(&self, name: &str, client_ca: bool) -> CertificateFiles {
        let (cert, key) = (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")));
        CertificateFiles { cert, key, client_ca: client_ca.then(|| self.path("ca.pem")) }
    }

    /// A client that believes this authority, and shows the certificate of that name.
    fn client(&self, shown: Option<&str>) -> TlsConnector {
        let read = |path: PathBuf| std::fs::read(path).unwrap();
        let roots = authorities(Path::new(""), &read(self.path("ca.pem"))).unwrap();
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        let config = match shown {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let files = self.files(name, false);
                let chain = certificates(&files.cert, &read(files.cert.clone())).unwrap();
                builder.with_client_auth_cert(chain, key(&files.key, &read(files.key.clone())).unwrap()).unwrap()
            }
        };
        TlsConnector::from(Arc::new(config))
    }
}

async fn listen(tls: &ListenerCertificate, silence_max: Duration) -> (ConnectionListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (ConnectionListener::new(listener, silence_max, ConnectionLimits::of_operators(), Some(tls.clone())), port)
}

const LONG: Duration = Duration::from_secs(3_600);

type Client = client::TlsStream<TcpStream>;

/// Both ends of a connection, after one byte.
async fn connected(tls: &ListenerCertificate, connector: TlsConnector) -> (TcpConnection, Client) {
    let (mut listener, port) = listen(tls, LONG).await;
    let dialling = tokio::spawn(dial(connector, port));
    let (mut connection, _) = listener.accept().await;
    assert_eq!(connection.read_u8().await.unwrap(), b'x');
    (connection, dialling.await.unwrap().unwrap())
}

async fn dial(connector: TlsConnector, port: u16) -> std::io::Result<Client> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    let mut client = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await?;
    client.write_all(b"x").await?;
    Ok(client)
}

fn leaf(client: &Client) -> Vec<u8> {
    client.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test]
async fn tls_changes_no_byte() {
    let authority = Authority::new();
    authority.issue("server");
    let tls = ListenerCertificate::open(authority.files("server", false), "test", LONG).unwrap();
    let (connection, client) = connected(&tls, authority.client(None)).await;
    assert_eq!(client.get_ref().1.alpn_protocol(), None, "a client that asks for nothing is given nothing");
    let sent: Vec<u8> = (0..500_003_u32).map(|index| (index % 251) as u8).collect();
    let (mut line_in, mut line_out) = tokio::io::split(connection);
    let (mut client_in, mut client_out) = tokio::io::split(client);
    let (up, down) = (sent.clone(), sent.clone());
    let sending = tokio::spawn(async move {
        client_out.write_all(&up).await.unwrap();
        client_out.flush().await.unwrap();
    });
    let answering = tokio::spawn(async move {
        line_out.write_all(&down).await.unwrap();
        line_out.shutdown().await.unwrap();
    });
    let echoed = tokio::spawn(async move {
        let mut got = Vec::new();
        client_in.read_to_end(&mut got).await.unwrap();
        got
    });
    let mut got = Vec::new();
    while got.len() < sent.len() {
        let mut small = [0; 128];
        let size = line_in.read(&mut small).await.unwrap();
        got.extend_from_slice(&small[..size]);
    }
    assert!(got == sent && echoed.await.unwrap() == sent);
    sending.await.unwrap();
    answering.await.unwrap();
}

#[tokio::test]
async fn a_client_without_a_handshake_delays_nobody_and_is_disconnected() {
    let authority = Authority::new();
    authority.issue("server");
    let tls = ListenerCertificate::open(authority.files("server", false), "test", LONG).unwrap();
    let (mut listener, port) = listen(&tls, Duration::from_millis(100)).await;
    let silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    let (mut held_up, _) = listener.accept().await;
    let dialling = tokio::spawn(dial(authority.client(None), port));
    let (mut connection, _) = listener.accept().await;
    assert_eq!(connection.read_u8().await.unwrap(), b'x');
    dialling.await.unwrap().unwrap();
    assert_eq!(held_up.read_u8().await.unwrap_err().kind(), std::io::ErrorKind::ConnectionAborted);
    drop(silent);
}

#[tokio::test]
async fn rejects_a_client_without_tls() {
    let authority = Authority::new();
    authority.issue("server");
    let tls = ListenerCertificate::open(authority.files("server", false), "test", LONG).unwrap();
    let (mut listener, port) = listen(&tls, LONG).await;
    let mut plain = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let (mut connection, _) = listener.accept().await;
    assert!(connection.read_u8().await.is_err());
    assert!(connection.read_u8().await.is_err(), "and again");
    assert!(connection.write_all(b"x").await.is_err());
    connection.flush().await.unwrap();
    connection.shutdown().await.unwrap();
}

#[tokio::test]
async fn reports_a_verified_client_certificate() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    authority.issue("server");
    authority.issue("operator");
    let tls = ListenerCertificate::open(authority.files("server", true), "test", LONG).unwrap();
    let (connection, client) = connected(&tls, authority.client(Some("operator"))).await;
    assert!(connection.handle().is_certified());
    drop(client);
    let (connection, _client) = connected(&tls, authority.client(None)).await;
    assert!(!connection.handle().is_certified(), "without one it gets as far as the token");

    stranger.issue("operator");
    std::fs::copy(stranger.path("operator.pem"), authority.path("strange.pem")).unwrap();
    std::fs::copy(stranger.path("operator.key"), authority.path("strange.key")).unwrap();
    let (mut listener, port) = listen(&tls, LONG).await;
    let dialling = tokio::spawn(dial(authority.client(Some("strange")), port));
    let (mut connection, _) = listener.accept().await;
    assert!(connection.read_u8().await.is_err(), "one that nobody vouches for ends the handshake");
    assert!(!connection.handle().is_certified());
    let _ = dialling.await.unwrap();
}

#[tokio::test]
async fn loads_a_renewed_certificate_and_ignores_a_broken_one() {
    let authority = Authority::new();
    authority.issue("server");
    let files = authority.files("server", false);
    let tls = ListenerCertificate::open(files.clone(), "test", Duration::from_millis(10)).unwrap();
    let serving = async || leaf(&connected(&tls, authority.client(None)).await.1);
    let first = serving().await;
    // A new certificate whose key has not come yet: not of each other.
    authority.issue("renewed");
    std::fs::copy(authority.path("renewed.pem"), &files.cert).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(serving().await == first);
    std::fs::copy(authority.path("renewed.key"), &files.key).unwrap();
    let renewed = loop {
        let now = serving().await;
        if now != first {
            break now;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    std::fs::write(&files.cert, "-----BEGIN CERTIFICATE-----\nno").unwrap();
    std::fs::remove_file(&files.key).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(serving().await == renewed);
    // As Kubernetes and certbot do: a link that moves.
    authority.issue("third");
    std::fs::copy(authority.path("third.pem"), &files.cert).unwrap();
    std::os::unix::fs::symlink(authority.path("third.key"), &files.key).unwrap();
    while serving().await == renewed {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn errors_name_the_file_and_never_quote_a_key() {
    let authority = Authority::new();
    authority.issue("server");
    authority.issue("other");
    let files = authority.files("server", true);
    let problem =
        |files: &CertificateFiles| ListenerCertificate::open(files.clone(), "test", LONG).err().unwrap().to_string();
    let missing = CertificateFiles { cert: "/no/such.pem".into(), ..files.clone() };
    assert!(problem(&missing).starts_with("/no/such.pem cannot be read"), "{}", problem(&missing));
    let swapped = CertificateFiles { cert: files.key.clone(), ..files.clone() };
    assert!(problem(&swapped).ends_with("server.key holds no certificate in PEM"), "{}", problem(&swapped));
    let keyless = CertificateFiles { key: files.cert.clone(), ..files.clone() };
    assert!(problem(&keyless).ends_with("server.pem holds no private key in PEM"), "{}", problem(&keyless));
    let mixed = CertificateFiles { key: authority.path("other.key"), ..files.clone() };
    assert!(problem(&mixed).starts_with("the certificate and its key cannot be used"), "{}", problem(&mixed));
    let nobody = CertificateFiles { client_ca: Some(files.key.clone()), ..files.clone() };
    assert!(problem(&nobody).ends_with("server.key holds no certificate in PEM"), "{}", problem(&nobody));
    let text = std::fs::read_to_string(&files.key).unwrap();
    std::fs::write(&files.key, text.replace("-----END", "sesame!!\n-----END")).unwrap();
    assert!(!problem(&files).contains("sesame"), "{}", problem(&files));
}
