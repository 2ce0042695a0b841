//! A client that costs little: Engine.IO and Socket.IO as text in WebSocket frames that are made and read by hand, a write for each
//! packet and no JSON. What a load tool uses of the machine the servers do not have.

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::common::HEADERS;

/// What an idle client keeps; it grows with the packets that come.
const BUFFER_BYTES: usize = 512;
/// No packet of this program is longer.
const PACKET_BYTES_MAX: usize = 1 << 20;
/// Masks need not be secret where nothing lies between.
const MASK: [u8; 4] = [0x5a, 0xc3, 0x96, 0x0f];
const PING: &[u8] = b"2";
const PONG: &[u8] = b"3";
/// A whole text message; as one of a client, masked.
const TEXT: u8 = 0x81;
const MASKED: u8 = 0x80;

/// A connection.
pub(crate) struct Wire {
    stream: TcpStream,
    /// What was read; from `from` on it is not yet given.
    buffer: Vec<u8>,
    from: usize,
    /// What is sent next.
    frame: Vec<u8>,
}

impl Wire {
    /// Engine.IO's handshake, then Socket.IO's on the root. `url` is that of the endpoint, with its path; `auth` is the JSON of the
    /// CONNECT.
    pub(crate) async fn connect(url: &str, auth: &str) -> Result<Self> {
        let mut wire = Self::upgrade(url).await?;
        ensure!(wire.next().await?.starts_with(b"0{"), "Engine.IO does not open");
        wire.send(format!("40{auth}").as_bytes()).await?;
        loop {
            let packet = wire.next().await?;
            match packet {
                _ if packet.starts_with(b"40{") => return Ok(wire),
                _ if packet.starts_with(b"42") => {}
                _ => bail!("a socket that connects was sent {}", String::from_utf8_lossy(packet)),
            }
        }
    }

    /// The WebSocket, asked for as a browser does.
    async fn upgrade(url: &str) -> Result<Self> {
        let url = url.strip_prefix("http://").context("the server speaks plain http")?;
        let (address, path) = url.split_once('/').context("the endpoint has a path")?;
        let mut request = format!(
            "GET /{path}/?EIO=4&transport=websocket HTTP/1.1\r\nhost: {address}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        );
        for (name, value) in HEADERS {
            request += &format!("{name}: {value}\r\n");
        }
        let stream = TcpStream::connect(address).await.context("TCP")?;
        stream.set_nodelay(true)?;
        let mut wire = Self { stream, buffer: Vec::with_capacity(BUFFER_BYTES), from: 0, frame: Vec::new() };
        wire.stream.write_all(format!("{request}\r\n").as_bytes()).await.context("the upgrade")?;
        loop {
            wire.read().await.context("the upgrade")?;
            if let Some(end) = wire.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                ensure!(wire.buffer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&wire.buffer));
                wire.from = end + 4;
                return Ok(wire);
            }
        }
    }

    /// Sends one packet, as it is written on the wire.
    pub(crate) async fn send(&mut self, packet: &[u8]) -> Result<()> {
        self.frame.clear();
        self.frame.push(TEXT);
        match u16::try_from(packet.len()).context("no packet of this program is that long")? {
            #[expect(clippy::cast_possible_truncation, reason = "at most 125")]
            length @ ..126 => self.frame.push(MASKED | length as u8),
            length => {
                self.frame.push(MASKED | 126);
                self.frame.extend(length.to_be_bytes());
            }
        }
        self.frame.extend(MASK);
        self.frame.extend(packet.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.stream.write_all(&self.frame).await.context("sending")
    }

    /// The next packet that is no ping; those are answered. May be dropped while it waits, but for a ping's answer.
    pub(crate) async fn next(&mut self) -> Result<&[u8]> {
        loop {
            match frame(self.buffer.get(self.from..).unwrap_or_default())? {
                Some((start, end)) => {
                    let packet = self.from + start..self.from + end;
                    self.from = packet.end;
                    if self.buffer.get(packet.clone()) == Some(PING) {
                        self.send(PONG).await?;
                    } else {
                        return self.buffer.get(packet).context("a frame lies in the buffer");
                    }
                }
                None => self.read().await?,
            }
        }
    }

    async fn read(&mut self) -> Result<()> {
        // Mostly everything was given: then nothing is moved.
        self.buffer.drain(..self.from);
        self.from = 0;
        ensure!(self.buffer.len() < PACKET_BYTES_MAX, "the server sent a packet of more than {PACKET_BYTES_MAX} bytes");
        self.buffer.reserve(BUFFER_BYTES);
        let count = self.stream.read_buf(&mut self.buffer).await.context("receiving")?;
        ensure!(count > 0, "the server closed the connection");
        Ok(())
    }
}

/// Where the payload of the first frame begins and ends; `None` when it is not whole. Errors when it is no text message.
fn frame(bytes: &[u8]) -> Result<Option<(usize, usize)>> {
    let [head, short, rest @ ..] = bytes else { return Ok(None) };
    ensure!(*head == TEXT, "the server sent a frame that begins with {head:#x}");
    let (start, length) = match (short, rest) {
        (..126, _) => (2, usize::from(*short)),
        (126, [high, low, ..]) => (4, usize::from(u16::from_be_bytes([*high, *low]))),
        (126, _) => return Ok(None),
        _ => bail!("the server sent a frame of 64 KiB or more, or a masked one"),
    };
    Ok((bytes.len() >= start + length).then_some((start, start + length)))
}
