//! The listener: connections with deadlines for heads and limits for what they may hold, and an orderly
//! end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::socket::Socket;

/// How long a head may take to arrive; also how long a connection may be idle.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long the other side may leave what is written to it.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// The longest head in bytes.
const HEAD_BYTES: usize = 64 * 1024;
/// The most headers.
const HEADERS: usize = 100;
/// The most connections.
const CONNECTIONS: usize = 4_096;
/// How long requests may take that are under way when the server ends.
const LAST: Duration = Duration::from_secs(2);

/// Something that listens.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens on an address; port 0 is a free one.
    ///
    /// # Errors
    /// When the address can't be listened on.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `over` says so, then lets what is under way end.
    pub async fn serve(self, router: Router, over: watch::Receiver<bool>) {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let mut ended = over.clone();
        loop {
            let accepted = tokio::select! {
                biased;
                () = is_over(&mut ended) => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    // One too many is closed at once: it is told so by nothing else.
                    if let Ok(place) = Arc::clone(&room).try_acquire_owned() {
                        let (router, over) = (router.clone(), over.clone());
                        tokio::spawn(async move {
                            connection(stream, router, over).await;
                            drop(place);
                        });
                    }
                }
                // No more files: those that are open will be closed.
                Err(error) => {
                    tracing::warn!("a connection can't be taken: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(self.listener);
        let all = u32::try_from(CONNECTIONS).unwrap_or(u32::MAX);
        drop(tokio::time::timeout(LAST, room.acquire_many(all)).await);
    }
}

/// Waits until it is over.
async fn is_over(over: &mut watch::Receiver<bool>) {
    // Whoever could say so is gone: then it is over too.
    drop(over.wait_for(|over| *over).await);
}

async fn connection(stream: TcpStream, router: Router, mut over: watch::Receiver<bool>) {
    // Small answers must not wait for the other side's acknowledgement.
    drop(stream.set_nodelay(true));
    let io = TokioIo::new(Socket::new(stream, WRITE_TIME));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(HEADERS)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(io, TowerToHyperService::new(router));
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
