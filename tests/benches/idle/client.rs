//! A Socket.IO client over a raw WebSocket, byte for byte what a browser's client sends.

use anyhow::{Context, Result, bail, ensure};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        Message,
        client::IntoClientRequest,
        http::{HeaderName, HeaderValue, header},
        protocol::WebSocketConfig,
    },
};

/// What a browser adds to a handshake.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::ORIGIN, "https://app.example.com"),
    (
        header::USER_AGENT,
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36",
    ),
    (header::ACCEPT_ENCODING, "gzip, deflate, br, zstd"),
    (header::ACCEPT_LANGUAGE, "en-GB,en;q=0.9,de;q=0.8"),
    (header::CACHE_CONTROL, "no-cache"),
    (header::SEC_WEBSOCKET_EXTENSIONS, "permessage-deflate; client_max_window_bits"),
];

/// Ten thousand of the default ones would take more memory than the host does.
const READ_BUFFER_BYTES: usize = 512;

/// What a client says of itself in its CONNECT.
pub(crate) struct Credentials(Value);

impl Credentials {
    pub(crate) fn app(token: String) -> Self {
        Self(json!({ "token": token, "clientType": "user-scoped" }))
    }

    pub(crate) fn machine(token: String, id: String) -> Self {
        Self(json!({ "token": token, "clientType": "machine-scoped", "machineId": id }))
    }

    pub(crate) fn session(token: String, id: String) -> Self {
        Self(json!({ "token": token, "clientType": "session-scoped", "sessionId": id }))
    }
}

/// A connected client.
pub(crate) struct Client {
    stream: WebSocketStream<TcpStream>,
    /// How many pings it has answered.
    pub(crate) pings: usize,
}

impl Client {
    /// Engine.IO's handshake, then Socket.IO's. `url` is that of the endpoint, with its path.
    pub(crate) async fn connect(url: &str, credentials: &Credentials) -> Result<Self> {
        let url = url.strip_prefix("http://").context("the host serves plain http")?;
        let (address, path) = url.split_once('/').context("the endpoint has a path")?;
        let mut request = format!("ws://{address}/{path}/?EIO=4&transport=websocket").into_client_request()?;
        for (name, value) in HEADERS {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let stream = TcpStream::connect(address).await.context("TCP")?;
        let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES);
        let (stream, _) = client_async_with_config(request, stream, Some(config)).await.context("WebSocket")?;
        let mut client = Self { stream, pings: 0 };
        client.expect("0{").await.context("Engine.IO")?;
        client.send(format!("40{}", credentials.0)).await?;
        client.expect("40{").await.context("Socket.IO")?;
        Ok(client)
    }

    /// Reads one packet, which is a ping and is answered, or an event. May be dropped while it waits.
    pub(crate) async fn idle(&mut self) -> Result<()> {
        let packet = self.next().await?;
        self.in_passing(&packet).await
    }

    /// Leaves as a client does that is told to disconnect, and waits for the end of the connection.
    pub(crate) async fn leave(mut self) -> Result<()> {
        self.send("41".to_owned()).await?;
        self.stream.close(None).await.context("closing")?;
        while let Some(message) = self.stream.next().await {
            message.context("closing")?;
        }
        Ok(())
    }

    /// Waits for the packet that begins with `start`. A ping and events of its user's other sockets may come before.
    async fn expect(&mut self, start: &str) -> Result<()> {
        loop {
            let packet = self.next().await?;
            if packet.starts_with(start) {
                return Ok(());
            }
            self.in_passing(&packet).await?;
        }
    }

    async fn in_passing(&mut self, packet: &str) -> Result<()> {
        if packet == "2" {
            self.pings += 1;
            return self.send("3".to_owned()).await;
        }
        ensure!(packet.starts_with("42"), "an idle socket was sent {packet}");
        Ok(())
    }

    async fn send(&mut self, packet: String) -> Result<()> {
        self.stream.send(Message::text(packet)).await.context("sending")
    }

    async fn next(&mut self) -> Result<String> {
        match self.stream.next().await {
            Some(Ok(Message::Text(packet))) => Ok(packet.as_str().to_owned()),
            Some(Ok(other)) => bail!("the host sent {other:?}"),
            Some(Err(error)) => Err(error).context("receiving"),
            None => bail!("the host closed the connection"),
        }
    }
}
