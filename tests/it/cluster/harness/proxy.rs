//! A network that fails, between workers and PostgreSQL: connections that are cut or slow, networks that lose what is sent in
//! one direction, and answers to commits that are lost.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the statements that append events have, and no other one.
const APPEND: &[u8] = b"SELECT a.run, a.seq, a.fence, a.sum, a.event FROM ";
/// The end of each answer of PostgreSQL outside of a transaction.
const READY: &[u8] = b"Z\0\0\0\x05I";

#[derive(Default)]
struct Faults {
    /// How long each piece is held back, in milliseconds.
    slow_ms: AtomicU64,
    /// What workers send is lost, and what the database sends.
    loses_requests: AtomicBool,
    loses_answers: AtomicBool,
    /// How many answers to appends are still to be lost, and how many were.
    to_lose: AtomicUsize,
    lost: AtomicUsize,
    connections: Mutex<Vec<TcpStream>>,
    over: AtomicBool,
}

/// A network; it ends with the test.
pub struct Proxy {
    pub address: SocketAddr,
    faults: Arc<Faults>,
}

impl Proxy {
    /// A network in front of the server with this socket.
    pub fn start(socket: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, faults) = (listener.local_addr().unwrap(), Arc::new(Faults::default()));
        let shared = Arc::clone(&faults);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared.over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                client.set_nodelay(true).unwrap();
                shared.connections.lock().unwrap().push(client.try_clone().unwrap());
                connect(client, server, &shared);
            }
        });
        Self { address, faults }
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        for connection in self.faults.connections.lock().unwrap().drain(..) {
            drop(connection.shutdown(Shutdown::Both));
        }
    }

    /// Holds each piece back for so long.
    pub fn slow(&self, ms: u64) {
        self.faults.slow_ms.store(ms, Ordering::SeqCst);
    }

    /// From now on, connections on which something is sent are dead: what workers send is lost, or what they are answered,
    /// or both. Nobody is informed.
    pub fn lose(&self, requests: bool, answers: bool) {
        self.faults.loses_requests.store(requests, Ordering::SeqCst);
        self.faults.loses_answers.store(answers, Ordering::SeqCst);
    }

    /// Loses the answers to the next appends, which are committed, and cuts their connections.
    pub fn lose_commits(&self, answers: usize) {
        self.faults.to_lose.store(answers, Ordering::SeqCst);
    }

    /// How many answers to appends were lost.
    pub fn lost(&self) -> usize {
        self.faults.lost.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.faults.over.store(true, Ordering::SeqCst);
        self.cut();
        drop(TcpStream::connect(self.address));
    }
}

/// Passes on what both sides send.
fn connect(client: TcpStream, server: UnixStream, faults: &Arc<Faults>) {
    let (from_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let appends = Arc::new(AtomicBool::new(false));
    let (seen, known) = (Arc::clone(&appends), Arc::clone(faults));
    std::thread::spawn(move || {
        let (mut requests, mut is_dead) = (Requests::default(), false);
        pass(from_client, &to_server, &known, |piece| {
            if let Some(is_append) = requests.read(piece) {
                seen.store(is_append, Ordering::SeqCst);
            }
            is_dead |= known.loses_requests.load(Ordering::SeqCst);
            !is_dead
        });
        drop(to_server.shutdown(Shutdown::Both));
    });
    let known = Arc::clone(faults);
    std::thread::spawn(move || {
        let (other, mut is_dead) = (client.try_clone().unwrap(), false);
        pass(server, &client, &known, |piece| {
            let is_lost = appends.load(Ordering::SeqCst)
                && piece.ends_with(READY)
                && known.to_lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |more| more.checked_sub(1)).is_ok();
            if is_lost {
                known.lost.fetch_add(1, Ordering::SeqCst);
                drop(other.shutdown(Shutdown::Both));
            }
            is_dead |= known.loses_answers.load(Ordering::SeqCst);
            !is_lost && !is_dead
        });
        drop(client.shutdown(Shutdown::Both));
    });
}

/// Passes pieces on until a side ends; `passes` sees each piece, and says whether it gets there.
fn pass(mut from: impl Read, mut to: impl Write, faults: &Faults, mut passes: impl FnMut(&[u8]) -> bool) {
    let mut piece = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        let slow_ms = faults.slow_ms.load(Ordering::SeqCst);
        if slow_ms > 0 {
            std::thread::sleep(Duration::from_millis(slow_ms));
        }
        if passes(&piece[..count]) && to.write_all(&piece[..count]).is_err() {
            return;
        }
    }
}

/// The messages of a client of PostgreSQL, as far as it takes to know which statement is executed.
#[derive(Default)]
struct Requests {
    rest: Vec<u8>,
    has_begun: bool,
    /// The names of the prepared appends.
    appends: HashSet<Vec<u8>>,
}

impl Requests {
    /// Whether the last statement that a piece executes is an append; none when it executes none.
    fn read(&mut self, piece: &[u8]) -> Option<bool> {
        self.rest.extend_from_slice(piece);
        let mut executed = None;
        loop {
            // The first message has no letter.
            let head = usize::from(self.has_begun);
            let length = self.rest.get(head..head + 4)?;
            let end = head + u32::from_be_bytes(length.try_into().unwrap()) as usize;
            if self.rest.len() < end {
                return executed;
            }
            let message: Vec<u8> = self.rest.drain(..end).collect();
            let mut words = message[head + 4..].split(|byte| *byte == 0);
            let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            match message[0] {
                b'P' if self.has_begun && second.windows(APPEND.len()).any(|part| part == APPEND) => {
                    self.appends.insert(first.to_vec());
                }
                b'P' if self.has_begun => {
                    self.appends.remove(first);
                }
                b'B' if self.has_begun => executed = Some(self.appends.contains(second)),
                b'Q' if self.has_begun => executed = Some(false),
                _ => {}
            }
            self.has_begun = true;
            if self.rest.is_empty() {
                return executed;
            }
        }
    }
}
