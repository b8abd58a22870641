//! The listener: connections with limits for time, size and number, and a graceful shutdown.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use futures_util::FutureExt as _;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::Sleep;

use super::connections::{Connections, PeerAddress, Requests};

/// The time limit for receiving a head, and for an idle connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for the client to read what is written to it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest head in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The most headers.
const MAX_HEADERS: usize = 100;
/// The time limit for requests in progress when the server stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// A listening socket.
pub struct HttpListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpListener {
    /// Listens on an address; port 0 is a free one.
    ///
    /// # Errors
    /// When the address can't be listened on.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `over` is true, then lets the requests in progress end.
    pub async fn serve(self, router: Router, connections: Arc<Connections>, over: watch::Receiver<bool>) {
        let all = connections.room().all();
        let room = Arc::new(Semaphore::new(all));
        let mut ended = over.clone();
        loop {
            let accepted = tokio::select! {
                biased;
                () = is_over(&mut ended) => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let entered = connections.enter();
                    // If an old connection must close for this one, wait for that: its descriptor is freed
                    // first.
                    let Ok(place) = Arc::clone(&room).acquire_owned().await else { break };
                    let (router, over) = (router.clone(), over.clone());
                    tokio::spawn(async move {
                        tokio::select! {
                            () = connection((stream, PeerAddress(peer)), router, entered.requests(), over) => {}
                            () = entered.is_to_close() => tracing::debug!("an idle connection made room for another"),
                        }
                        drop(place);
                    }.boxed());
                }
                // No descriptor is left: idle connections will be closed.
                Err(error) => {
                    tracing::warn!("a connection can't be taken: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(self.listener);
        let all = u32::try_from(all).unwrap_or(u32::MAX);
        drop(tokio::time::timeout(SHUTDOWN_TIMEOUT, room.acquire_many(all)).await);
    }
}

/// Waits until `over` is true.
async fn is_over(over: &mut watch::Receiver<bool>) {
    // If the sender is gone, it is over too.
    drop(over.wait_for(|over| *over).await);
}

async fn connection(
    accepted: (TcpStream, PeerAddress),
    router: Router,
    requests: Requests,
    mut over: watch::Receiver<bool>,
) {
    let (stream, peer) = accepted;
    // Small answers must not wait for acknowledgements.
    drop(stream.set_nodelay(true));
    let io = TokioIo::new(Socket::new(stream, WRITE_TIMEOUT));
    let service = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(requests.clone());
        request.extensions_mut().insert(peer);
        let busy = requests.busy();
        let answer = service.call(request);
        async move {
            let answer = answer.await;
            drop(busy);
            answer
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(io, service);
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = is_over(&mut over) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection broke: {error}");
    }
}

/// A connection whose client must read: if it accepts nothing for too long, the connection is closed, and the unwritten
/// bytes are discarded.
struct Socket {
    stream: TcpStream,
    patience: Duration,
    /// Since when nothing could be written; on the heap, because most connections never wait.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    /// A connection whose client must accept something within `patience`.
    fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, patience, stalled: None }
    }

    fn within_patience<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the other side does not read")))
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within_patience(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.within_patience(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
