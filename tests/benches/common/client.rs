//! A Socket.IO client over a raw WebSocket, byte for byte what a browser's client sends.

use anyhow::{Context, Result, bail, ensure};
use futures_util::{SinkExt, StreamExt};
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
pub(crate) const HEADERS: [(HeaderName, &str); 6] = [
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
/// Engine.IO's ping.
pub(crate) const PING: &str = "2";

/// A connected client.
pub(crate) struct Client {
    stream: WebSocketStream<TcpStream>,
    /// As packets name it: empty for the root, else with a comma at its end.
    namespace: &'static str,
    /// How many pings it has answered.
    pub(crate) pings: usize,
}

impl Client {
    /// Engine.IO's handshake, then Socket.IO's. `url` is that of the endpoint, with its path; `namespace` is written as packets
    /// name it, such as `/device,`, and empty for the root; `auth` is the JSON of the CONNECT, or empty.
    pub(crate) async fn connect(url: &str, namespace: &'static str, auth: &str) -> Result<Self> {
        let url = url.strip_prefix("http://").context("the host serves plain http")?;
        let (address, path) = url.split_once('/').context("the endpoint has a path")?;
        let mut request = format!("ws://{address}/{path}/?EIO=4&transport=websocket").into_client_request()?;
        for (name, value) in HEADERS {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let stream = TcpStream::connect(address).await.context("TCP")?;
        let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES);
        let (stream, _) = client_async_with_config(request, stream, Some(config)).await.context("WebSocket")?;
        let mut client = Self { stream, namespace, pings: 0 };
        client.expect("0{").await.context("Engine.IO")?;
        client.send(format!("40{namespace}{auth}")).await?;
        client.expect(&format!("40{namespace}{{")).await.context("Socket.IO")?;
        Ok(client)
    }

    /// Reads one packet. A ping is answered, and given like any other. May be dropped while it waits.
    pub(crate) async fn receive(&mut self) -> Result<String> {
        let packet = self.next().await?;
        if packet == PING {
            self.pings += 1;
            self.send("3".to_owned()).await?;
        }
        Ok(packet)
    }

    /// Sends one packet, as it is written on the wire.
    pub(crate) async fn send(&mut self, packet: String) -> Result<()> {
        self.stream.send(Message::text(packet)).await.context("sending")
    }

    /// Leaves as a client does that is told to disconnect, and waits for the end of the connection.
    pub(crate) async fn leave(mut self) -> Result<()> {
        self.send(format!("41{}", self.namespace)).await?;
        self.stream.close(None).await.context("closing")?;
        while let Some(message) = self.stream.next().await {
            message.context("closing")?;
        }
        Ok(())
    }

    /// Waits for the packet that begins with `start`. A ping and events of its user's other sockets may come before.
    async fn expect(&mut self, start: &str) -> Result<()> {
        loop {
            let packet = self.receive().await?;
            if packet.starts_with(start) {
                return Ok(());
            }
            ensure!(packet == PING || packet.starts_with("42"), "a socket that connects was sent {packet}");
        }
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
