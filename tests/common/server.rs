//! A small HTTP/1.1 server for tests, on threads: it gives the answers that a test sets, counts and keeps the
//! requests, and fails in the ways that servers fail. It listens on a free port of 127.0.0.1.
#![allow(dead_code, reason = "each test file uses its part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc, reason = "a test's helper may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

#[path = "answer.rs"]
mod answer;

pub use answer::Answer;
use answer::Body;
#[allow(unused_imports, reason = "not every suite holds answers back")]
pub use answer::Gate;

/// A request to the server.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`, `POST`, ...
    pub method: String,
    /// The path with its query, as it was sent.
    pub path: String,
    /// The headers in their order, names as they were sent.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    pub body: Vec<u8>,
    /// The number of its connection, from 0.
    pub connection: usize,
}

impl Request {
    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("the request's body is not UTF-8")
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("the request's body is not JSON")
    }
}

type Handler = dyn Fn(usize, &Request) -> Answer + Send + Sync;

struct Shared {
    handler: Box<Handler>,
    reads_first: bool,
    requests: Mutex<Vec<Request>>,
    arrived: Condvar,
    sockets: Mutex<Vec<TcpStream>>,
    connections: AtomicUsize,
    ended: AtomicUsize,
    sent: AtomicUsize,
    over: AtomicBool,
}

/// A server; it stops when it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// A server that gives these answers in their order, and 500 after them.
    pub fn new(answers: Vec<Answer>) -> Self {
        Self::with(move |number, _| {
            answers.get(number).cloned().unwrap_or_else(|| Answer::json("{\"error\":\"no more answers\"}").status(500))
        })
    }

    /// A server that calls the function with the request's number, from 0.
    pub fn with(handler: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::open(Box::new(handler), false)
    }

    /// The same, and the request has its body, which is read before.
    pub fn reading(handler: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::open(Box::new(handler), true)
    }

    fn open(handler: Box<Handler>, reads_first: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on 127.0.0.1");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            handler,
            reads_first,
            requests: Mutex::default(),
            arrived: Condvar::new(),
            sockets: Mutex::default(),
            connections: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            sent: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        });
        let here = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || {
            for socket in listener.incoming() {
                if here.over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(socket) = socket else { continue };
                here.accept(socket);
            }
        });
        Self { address, shared, accepting: Some(accepting) }
    }

    /// `http://127.0.0.1:PORT`, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests, in the order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits for so many requests.
    pub fn wait_for(&self, requests: usize) {
        let guard = self.shared.requests.lock().unwrap();
        drop(self.shared.arrived.wait_while(guard, |known| known.len() < requests).unwrap());
    }

    /// Waits until its requests, in the order of arrival, fulfil a condition.
    pub fn wait_until(&self, holds: impl Fn(&[Request]) -> bool) {
        let guard = self.shared.requests.lock().unwrap();
        drop(self.shared.arrived.wait_while(guard, |known| !holds(known)).unwrap());
    }

    /// Waits until it has read everything from closed connections: the last bytes of a killed process may still
    /// be on their way. Nobody may be connected.
    pub fn wait_until_read(&self) {
        // Connections are served in their order: when this one ends, all before it were served.
        let mut last = TcpStream::connect(self.address).expect("it listens");
        last.shutdown(Shutdown::Write).expect("it is open");
        last.read_to_end(&mut Vec::new()).expect("it ends");
        let guard = self.shared.requests.lock().unwrap();
        let all_over = || self.shared.ended.load(Ordering::SeqCst) == self.connections();
        drop(self.shared.arrived.wait_while(guard, |_| !all_over()).unwrap());
    }

    /// The number of connections.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The number of body bytes that it could pass to the network.
    pub fn sent(&self) -> usize {
        self.shared.sent.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        for socket in self.shared.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, socket: TcpStream) {
        let number = self.connections.fetch_add(1, Ordering::SeqCst);
        let _ = socket.set_nodelay(true);
        if let Ok(known) = socket.try_clone() {
            self.sockets.lock().unwrap().push(known);
        }
        let here = Arc::clone(self);
        std::thread::spawn(move || {
            // Either the test breaks the connection on purpose, or the other side does.
            let _ = here.serve(&socket, number);
            let guard = here.requests.lock().unwrap();
            here.ended.fetch_add(1, Ordering::SeqCst);
            here.arrived.notify_all();
            drop(guard);
            let _ = socket.shutdown(Shutdown::Both);
        });
    }

    fn serve(&self, socket: &TcpStream, connection: usize) -> std::io::Result<()> {
        // No byte more than needed is read: closing a connection with unread bytes resets it.
        let mut reader = BufReader::with_capacity(1, socket.try_clone()?);
        while let Some(mut request) = head(&mut reader, connection)? {
            let number = self.requests.lock().unwrap().len();
            if self.reads_first {
                request.body = body(&mut reader, &request)?;
            }
            let answer = (self.handler)(number, &request);
            if !self.reads_first && !matches!(answer.body, Body::Reset) {
                request.body = body(&mut reader, &request)?;
            }
            self.requests.lock().unwrap().push(request);
            self.arrived.notify_all();
            if let Some(gate) = &answer.gate {
                gate.wait();
            }
            if !self.answer(socket, &answer)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends an answer; `true` when the connection can be used again.
    fn answer(&self, mut socket: &TcpStream, answer: &Answer) -> std::io::Result<bool> {
        let mut head = format!("HTTP/1.1 {} Test\r\n", answer.status);
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if answer.close {
            head.push_str("connection: close\r\n");
        }
        let length = match &answer.body {
            Body::Reset | Body::Closed => return Ok(false),
            Body::Raw(bytes) => {
                socket.write_all(bytes)?;
                return Ok(false);
            }
            Body::Sized(body) => Some(body.len()),
            Body::Cut(_, whole) => Some(*whole),
            Body::Chunked(_) | Body::ChunkedCut(_) | Body::ChunkedStall(_) | Body::Endless(_) => None,
        };
        head.push_str(&length.map_or_else(
            || "transfer-encoding: chunked\r\n\r\n".to_owned(),
            |length| format!("content-length: {length}\r\n\r\n"),
        ));
        match &answer.body {
            Body::Sized(body) => {
                self.send(socket, answer, &[head.as_bytes(), body].concat())?;
                Ok(!answer.close)
            }
            Body::Cut(body, _) => {
                self.send(socket, answer, &[head.as_bytes(), body].concat())?;
                Ok(false)
            }
            Body::Chunked(pieces) | Body::ChunkedCut(pieces) | Body::ChunkedStall(pieces) => {
                socket.write_all(head.as_bytes())?;
                for (number, piece) in pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty()) {
                    answer.gates.iter().filter(|(at, _)| *at == number).for_each(|(_, gate)| gate.wait());
                    self.send(socket, answer, &chunk(piece))?;
                }
                if matches!(answer.body, Body::ChunkedStall(_)) {
                    // Until the other side closes.
                    let _ = socket.read(&mut [0]);
                }
                let whole = matches!(answer.body, Body::Chunked(_));
                if whole {
                    socket.write_all(b"0\r\n\r\n")?;
                }
                Ok(whole && !answer.close)
            }
            Body::Endless(piece) => {
                socket.write_all(head.as_bytes())?;
                let piece = chunk(piece);
                loop {
                    self.send(socket, answer, &piece)?;
                }
            }
            Body::Reset | Body::Closed | Body::Raw(_) => Ok(false),
        }
    }

    fn send(&self, mut socket: &TcpStream, answer: &Answer, bytes: &[u8]) -> std::io::Result<()> {
        if let Some(pause) = answer.pause {
            std::thread::sleep(pause);
        }
        socket.write_all(bytes)?;
        self.sent.fetch_add(bytes.len(), Ordering::SeqCst);
        Ok(())
    }
}

fn chunk(piece: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()
}

/// Reads the head of a request; none when the connection is closed.
fn head(reader: &mut impl BufRead, connection: usize) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    Ok(Some(Request { method, path, headers, body: Vec::new(), connection }))
}

/// Reads a request's body, by its length or in chunks.
fn body(reader: &mut impl BufRead, request: &Request) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if let Some(length) = request.header("content-length") {
        body.resize(length.parse().unwrap_or(0), 0);
        reader.read_exact(&mut body)?;
    } else if request.header("transfer-encoding").is_some() {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            let mut piece = vec![0; length + 2];
            reader.read_exact(&mut piece)?;
            if length == 0 {
                break;
            }
            piece.truncate(length);
            body.append(&mut piece);
        }
    }
    Ok(body)
}
