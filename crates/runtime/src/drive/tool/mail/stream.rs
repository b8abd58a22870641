//! The connection to a server of mail: dialled at an address that the guard allows, and encrypted. Nothing is sent over it
//! before, except to the loopback.

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lettre::transport::smtp::client::AsyncTokioStream;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::drive::egress::{Egress, EgressFault};
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;
use crate::drive::tool::transient;
use loopctl_lang::policy::host::literal;
use loopctl_lang::policy::mail::MailServer;

/// The longest line that a server says before its connection is encrypted.
const MAX_LINE_BYTES: usize = 2_000;
/// The most lines of its answer.
const MAX_LINES: usize = 100;
/// The most bytes that a server may say while it takes a message.
const MAX_SAID_BYTES: usize = 64 << 10;
/// How long one of the addresses of a server is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The most addresses of a server that are tried.
const MAX_ADDRESSES: usize = 8;

/// A connection. What was read in clear text before it was encrypted is not read again.
pub(super) struct MailStream {
    peer: SocketAddr,
    /// What a client of mail reads first, in place of the greeting that was read already.
    greeting: &'static [u8],
    /// How many bytes the server said.
    said: usize,
    transport: MailTransport,
}

enum MailTransport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl fmt::Debug for MailStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MailStream").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// Connects to a server.
///
/// # Errors
/// When it is not allowed, can't be reached, or offers no encryption.
pub(super) async fn connect(egress: &Egress, written: &str) -> Result<MailStream, RawFault> {
    let config = config().map_err(|why| fault("no encryption", why))?;
    let server = MailServer::parse(written)
        .ok_or_else(|| RawFault::from(fault("address not valid", "`smtp` is smtps://HOST:PORT or smtp://HOST:PORT")))?;
    let (address, stream) = dial(egress, &server).await?;
    let peer = SocketAddr::new(address, server.port);
    if !server.is_encrypted_at_once && address.is_loopback() {
        return Ok(MailStream { peer, greeting: b"", said: 0, transport: MailTransport::Plain(stream) });
    }
    encrypt(&server, peer, stream, config).await
}

/// The connection once it is encrypted, by a server whose certificate has the name of the address.
async fn encrypt(
    server: &MailServer,
    peer: SocketAddr,
    mut stream: TcpStream,
    config: ClientConfig,
) -> Result<MailStream, RawFault> {
    let name = ServerName::try_from(server.host.clone()).map_err(|_| {
        RawFault::from(fault("address not valid", "the host has no name that a certificate could hold"))
    })?;
    if !server.is_encrypted_at_once {
        start_tls(&mut stream).await?;
    }
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let stream = stream.map_err(|error| transient(fault("no encryption", error.to_string())))?;
    let greeting: &[u8] = if server.is_encrypted_at_once { b"" } else { b"220 encrypted\r\n" };
    Ok(MailStream { peer, greeting, said: 0, transport: MailTransport::Tls(Box::new(stream)) })
}

/// A connection to the first address of a server that answers.
async fn dial(egress: &Egress, server: &MailServer) -> Result<(IpAddr, TcpStream), RawFault> {
    let not_reached = |why: String| transient(fault("server not reached", why));
    let mut fault = not_reached(format!("`{}` has no address", server.host));
    for address in addresses(egress, server).await?.into_iter().take(MAX_ADDRESSES) {
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect((address, server.port))).await {
            Ok(Ok(stream)) => return Ok((address, stream)),
            Ok(Err(error)) => fault = not_reached(error.to_string()),
            Err(_) => fault = not_reached(format!("no connection in {} s", CONNECT_TIMEOUT.as_secs())),
        }
    }
    Err(fault)
}

/// The addresses of a server that may be dialled.
async fn addresses(egress: &Egress, server: &MailServer) -> Result<Vec<IpAddr>, RawFault> {
    let refused = |why: EgressFault| match why {
        EgressFault::NotAllowed(why) => fault("address not allowed", why).into(),
        EgressFault::NotFound(why) => transient(fault("server not reached", why)),
    };
    egress.check_listed(&server.host, Some(server.port)).map_err(refused)?;
    match literal(&server.host) {
        Some(address) if egress.permits(address) => Ok(vec![address]),
        Some(_) => Err(refused(EgressFault::NotAllowed(format!(
            "the host `{}` is private, local or reserved; `allow.private_addresses` in loopctl.json allows such hosts",
            server.host
        )))),
        None => egress.addresses(&server.host).await.map_err(refused),
    }
}

fn config() -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let builder = builder.with_platform_verifier().map_err(|error| error.to_string())?;
    Ok(builder.with_no_client_auth())
}

/// Has the server encrypt the connection. Each sign is read alone, so that nothing which was said in clear text is taken for
/// a part of what is encrypted.
async fn start_tls(stream: &mut TcpStream) -> Result<(), RawFault> {
    let failed = |error: io::Error| transient(fault("server not reached", error.to_string()));
    says(stream, "220").await.map_err(failed)?;
    stream.write_all(b"EHLO localhost\r\n").await.map_err(failed)?;
    let offered = says(stream, "250").await.map_err(failed)?;
    if !offered.iter().any(|line| line.get(4..).is_some_and(|word| word.trim().eq_ignore_ascii_case("STARTTLS"))) {
        let why = "the server offers no STARTTLS, and nothing is sent in clear text";
        return Err(fault("no encryption", why).into());
    }
    stream.write_all(b"STARTTLS\r\n").await.map_err(failed)?;
    says(stream, "220").await.map_err(failed).map(drop)
}

/// The lines of an answer that has this code.
async fn says(stream: &mut TcpStream, code: &str) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    while lines.len() < MAX_LINES {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            if line.len() > MAX_LINE_BYTES {
                return Err(io::Error::other("the server says a line that is too long"));
            }
            line.push(stream.read_u8().await?);
        }
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        if !line.starts_with(code) {
            return Err(io::Error::other(format!("the server says {}", line.escape_debug())));
        }
        let is_last = line.as_bytes().get(3) != Some(&b'-');
        lines.push(line);
        if is_last {
            return Ok(lines);
        }
    }
    Err(io::Error::other("the server says too much"))
}

impl AsyncTokioStream for MailStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl AsyncRead for MailStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.greeting.is_empty() {
            let (now, later) = self.greeting.split_at(self.greeting.len().min(buffer.remaining()));
            buffer.put_slice(now);
            self.greeting = later;
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = match &mut self.transport {
            MailTransport::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            MailTransport::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        self.said = self.said.saturating_add(buffer.filled().len().saturating_sub(before));
        if self.said > MAX_SAID_BYTES {
            return Poll::Ready(Err(io::Error::other(format!("the server says more than {MAX_SAID_BYTES} bytes"))));
        }
        polled
    }
}

impl AsyncWrite for MailStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            MailTransport::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            MailTransport::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            MailTransport::Plain(stream) => Pin::new(stream).poll_flush(context),
            MailTransport::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            MailTransport::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            MailTransport::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
