//! The stream to a server: at most so many bytes are read from it for one call, whatever the server sends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection of the system.
pub(super) trait ServerSocket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ServerSocket for S {}

/// How many bytes may still be read.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadBudget(Arc<AtomicUsize>);

impl ReadBudget {
    /// So many from now on.
    pub(super) fn fill(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// Whether all of them were read.
    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// A stream whose reading ends with its budget.
pub(super) struct MeteredStream {
    pub(super) socket: Box<dyn ServerSocket>,
    pub(super) budget: ReadBudget,
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        let bytes = buffer.filled().len().saturating_sub(before);
        let left = self.budget.0.load(Ordering::Relaxed).saturating_sub(bytes);
        self.budget.0.store(left, Ordering::Relaxed);
        if left == 0 && bytes > 0 {
            return Poll::Ready(Err(io::Error::other("the server sent more than a call may read")));
        }
        read
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
