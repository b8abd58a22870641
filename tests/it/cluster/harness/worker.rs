//! A worker: a process of `loopctl serve`, signals to it, and requests that may fail.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::start_body;
use crate::common::Place;
use crate::serve::client::{Reply, Serving, parse};

/// How long a request waits for its answer.
const ANSWERED_IN: Duration = Duration::from_secs(30);

/// What is done to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signals {
    Kill,
    Stop,
    Continue,
    Terminate,
}

/// A worker; it is killed with the test.
pub struct Worker {
    serving: Serving,
    pub address: SocketAddr,
    /// The file by which its clock is moved.
    clock: std::path::PathBuf,
}

impl Worker {
    pub fn start(place: &Place, store: &str, slots: usize) -> Self {
        let clock = tempfile::NamedTempFile::new_in(place.path()).unwrap().into_temp_path().keep().unwrap();
        let slots = slots.to_string();
        let more = ["--store", store, "--max-concurrent-runs", &slots];
        let serving = Serving::start_with(place, &more, &[("LOOPCTL_CLOCK", clock.to_str().unwrap())]);
        Self { address: serving.address, serving, clock }
    }

    pub fn signal(&self, what: Signals) {
        let signal = match what {
            Signals::Kill => Signal::SIGKILL,
            Signals::Stop => Signal::SIGSTOP,
            Signals::Continue => Signal::SIGCONT,
            Signals::Terminate => Signal::SIGTERM,
        };
        kill(Pid::from_raw(i32::try_from(self.serving.pid()).unwrap()), signal).unwrap();
    }

    /// Moves its clock: it reads the machine's, and adds this.
    pub fn clock_ahead(&self, by: i64) {
        std::fs::write(&self.clock, by.to_string()).unwrap();
    }

    /// Ends in order; its exit code.
    pub fn leave(self) -> Option<i32> {
        self.signal(Signals::Terminate);
        self.serving.ended()
    }

    /// Starts the run of this number, and does not wait for it.
    pub fn begin(&self, number: usize) -> Option<Reply> {
        let key = format!("job {number}");
        let body = start_body(number).to_string();
        self.ask("POST", "/agents/execute?async=true", &[("idempotency-key", &key)], body.as_bytes())
    }

    pub fn get(&self, target: &str) -> Option<Reply> {
        self.ask("GET", target, &[], b"")
    }

    /// A request; none when nobody answers, or only a part of an answer comes.
    pub fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Reply> {
        ask(self.address, method, target, headers, body)
    }
}

/// A request to an address; none when nobody answers, or only a part of an answer comes.
pub fn ask(address: SocketAddr, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Reply> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(ANSWERED_IN)).ok()?;
    let mut head = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\nhost: {address}\r\n");
    if method == "POST" {
        head.push_str(&format!("content-length: {}\r\ncontent-type: application/json\r\n", body.len()));
    }
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    stream.write_all(&[head.as_bytes(), b"\r\n", body].concat()).ok()?;
    parse(&read_all(&mut stream)).filter(|reply| reply.whole)
}

/// All that comes until the connection ends in whichever way.
pub fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let (mut answer, mut piece) = (Vec::new(), [0; 8192]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return answer,
            Ok(count) => answer.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return answer,
        }
    }
}
