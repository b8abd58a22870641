//! The streams to a server. A bounded number of bytes is read from it for one call, whatever the server sends. And no type
//! that a server describes reaches the driver, which would look it up without a bound: a type that is not built in is
//! replaced by one that is, and kept for [`super::server_types`].

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::types::{Oid, Type};

/// The most columns that a result of PostgreSQL has.
const MAX_COLUMNS: u16 = 1664;
/// The longest description of a statement that is read, in bytes.
const MAX_DESCRIPTION: usize = 4 << 20;
/// How many bytes are read at once.
const READ: usize = 16 << 10;

/// A connection of the system.
pub(super) trait ServerSocket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ServerSocket for S {}

/// How many bytes may still be read.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadBudget(Arc<AtomicUsize>);

impl ReadBudget {
    /// From now on this number.
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

/// The types of the statement that a server described last, as it named them.
#[derive(Debug, Clone, Default)]
pub(super) struct DescribedTypes {
    pub(super) parameters: Vec<Oid>,
    pub(super) columns: Vec<Oid>,
    /// Why a description was refused; the connection is of no use then.
    pub(super) refused: Option<String>,
}

/// What a stream saw described, for those that use its connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Descriptions(Arc<Mutex<DescribedTypes>>);

impl Descriptions {
    /// That of the last statement.
    pub(super) fn last(&self) -> DescribedTypes {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why one was refused, if one was.
    pub(super) fn refused(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).refused.clone()
    }
}

/// A stream of messages that are not encrypted, in which the described types are built in.
pub(super) struct DescribedStream {
    stream: Box<dyn ServerSocket>,
    messages: Messages,
    /// What was read and not handed on yet.
    ready: Vec<u8>,
    /// How much of it was handed on.
    taken: usize,
}

impl DescribedStream {
    pub(super) fn new(stream: Box<dyn ServerSocket>, described: Descriptions) -> Self {
        Self { stream, messages: Messages { described, ..Messages::default() }, ready: Vec::new(), taken: 0 }
    }
}

impl AsyncRead for DescribedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let left = this.ready.get(this.taken..).unwrap_or_default();
            if !left.is_empty() {
                let (given, _) = left.split_at(left.len().min(buffer.remaining()));
                buffer.put_slice(given);
                this.taken = this.taken.saturating_add(given.len());
                return Poll::Ready(Ok(()));
            }
            this.ready.clear();
            this.taken = 0;
            let mut room = [0_u8; READ];
            let mut read = ReadBuf::new(&mut room);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.messages.pass(read.filled(), &mut this.ready)?;
        }
    }
}

impl AsyncWrite for DescribedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The messages of a server: one after the other, each a letter, its length and its body.
#[derive(Debug, Default)]
struct Messages {
    described: Descriptions,
    /// The head of a message, or the whole of a description, until it is complete.
    held: Vec<u8>,
    /// How many bytes of the present message are handed on as they are.
    passing: usize,
}

/// The letter of a message and its length.
const HEAD: usize = 5;
const PARAMETERS: u8 = b't';
const COLUMNS: u8 = b'T';

impl Messages {
    /// Hands bytes of the server on.
    ///
    /// # Errors
    /// When they are no messages, or one describes more than a database can have.
    fn pass(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.passing > 0 {
                let (passed, rest) = bytes.split_at(self.passing.min(bytes.len()));
                out.extend_from_slice(passed);
                self.passing = self.passing.saturating_sub(passed.len());
                bytes = rest;
                continue;
            }
            let wanted = self.wanted();
            let (taken, rest) = bytes.split_at(wanted.saturating_sub(self.held.len()).min(bytes.len()));
            self.held.extend_from_slice(taken);
            bytes = rest;
            if self.held.len() < HEAD {
                continue;
            }
            let length = self.length();
            let is_description = matches!(self.held.first(), Some(&(PARAMETERS | COLUMNS)));
            if length < 4 || (is_description && length > MAX_DESCRIPTION) {
                return Err(self.refuse("it sent a message that is none, or describes too much".to_owned()));
            }
            if !is_description {
                self.passing = length.saturating_sub(HEAD - 1);
                out.append(&mut self.held);
            } else if self.held.len() == self.wanted() {
                let mut message = std::mem::take(&mut self.held);
                self.describe(&mut message)?;
                out.append(&mut message);
            }
        }
        Ok(())
    }

    /// How many bytes are held before something can be done with them.
    fn wanted(&self) -> usize {
        if self.held.len() < HEAD { HEAD } else { self.length().saturating_add(1) }
    }

    /// The length that the head says, its own four bytes included.
    fn length(&self) -> usize {
        let length = self.held.get(1..HEAD).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
        usize::try_from(length).unwrap_or(usize::MAX)
    }

    fn refuse(&self, why: String) -> io::Error {
        self.described.0.lock().unwrap_or_else(PoisonError::into_inner).refused = Some(why.clone());
        io::Error::other(why)
    }

    /// Keeps the types of a description, and puts built-in ones in place of the others.
    fn describe(&self, message: &mut [u8]) -> io::Result<()> {
        let damaged = || self.refuse("it sent a description that is none".to_owned());
        let is_columns = message.first() == Some(&COLUMNS);
        let mut rest = message.get_mut(HEAD..).ok_or_else(damaged)?;
        let count = u16::from_be_bytes(*taken::<2>(&mut rest).ok_or_else(damaged)?);
        if is_columns && count > MAX_COLUMNS {
            let why = format!("it describes {count} columns, and a result of PostgreSQL has at most {MAX_COLUMNS}");
            return Err(self.refuse(why));
        }
        let mut types = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            if is_columns {
                let end = rest.iter().position(|byte| *byte == 0).ok_or_else(damaged)?;
                // The name, the table and the column's number in it.
                rest = rest.get_mut(end.saturating_add(7)..).ok_or_else(damaged)?;
            }
            let bytes = taken::<4>(&mut rest).ok_or_else(damaged)?;
            let oid = Oid::from_be_bytes(*bytes);
            types.push(oid);
            if Type::from_oid(oid).is_none() {
                *bytes = Type::UNKNOWN.oid().to_be_bytes();
            }
            if is_columns {
                // The size of the type, its modifier and the format.
                taken::<8>(&mut rest).ok_or_else(damaged)?;
            }
        }
        let mut described = self.described.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_columns {
            described.columns = types;
        } else {
            // Its columns follow, if it has any.
            (described.parameters, described.columns) = (types, Vec::new());
        }
        Ok(())
    }
}

/// Takes the next bytes.
fn taken<'b, const N: usize>(rest: &mut &'b mut [u8]) -> Option<&'b mut [u8; N]> {
    let (taken, after) = std::mem::take(rest).split_first_chunk_mut::<N>()?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[kind], &length[..], body].concat()
    }

    fn columns(oids: &[u32]) -> Vec<u8> {
        let mut body = u16::try_from(oids.len()).unwrap().to_be_bytes().to_vec();
        for oid in oids {
            body.extend_from_slice(b"name\0\0\0\0\x01\0\x02");
            body.extend_from_slice(&oid.to_be_bytes());
            body.extend_from_slice(&[0; 8]);
        }
        message(COLUMNS, &body)
    }

    fn parameters(oids: &[u32]) -> Vec<u8> {
        let oids: Vec<u8> = oids.iter().flat_map(|oid| oid.to_be_bytes()).collect();
        let count = u16::try_from(oids.len() / 4).unwrap().to_be_bytes();
        message(PARAMETERS, &[&count[..], &oids].concat())
    }

    #[test]
    fn a_type_that_is_not_built_in_is_kept_and_the_driver_reads_a_built_in_one() {
        let others = [message(b'1', b""), message(b'D', &[7; 300])].concat();
        let sent = [others.clone(), parameters(&[25, 70_000]), columns(&[23, 70_001]), others.clone()].concat();
        let read = [others.clone(), parameters(&[25, 705]), columns(&[23, 705]), others].concat();
        for pieces in [1, 3, 7, sent.len()] {
            let (mut messages, mut out) = (Messages::default(), Vec::new());
            sent.chunks(pieces).for_each(|piece| messages.pass(piece, &mut out).unwrap());
            assert_eq!(out, read, "in pieces of {pieces}");
            let described = messages.described.last();
            assert_eq!((described.parameters, described.columns), (vec![25, 70_000], vec![23, 70_001]));
        }
    }

    #[test]
    fn a_description_that_no_database_gives_is_refused_and_says_why() {
        for (sent, why) in [
            (columns(&[25; 1665]), "1665 columns"),
            (message(COLUMNS, &[0, 2, 0]), "is none"),
            (message(COLUMNS, &[0, 1, b'a', b'b']), "is none"),
            (message(PARAMETERS, &[0, 2, 0, 0, 0, 25]), "is none"),
            (message(PARAMETERS, &[]), "is none"),
            (vec![COLUMNS, 0xff, 0xff, 0xff, 0xff], "too much"),
            (vec![b'D', 0, 0, 0, 3], "is none"),
        ] {
            let mut messages = Messages::default();
            let refused = messages.pass(&sent, &mut Vec::new()).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
            assert_eq!(messages.described.refused(), Some(refused));
        }
    }
}
