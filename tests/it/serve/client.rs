//! A server of its own for a test, and a client that sends exactly the given bytes.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout};
use std::sync::Arc;
use std::time::Duration;

use loopctl::journal::Journal;
use loopctl::serve::app::{App, AppParts, BodyLimits};
use loopctl::serve::authorizer::Authorizer;
use loopctl::serve::folder::Folder;
use loopctl::serve::middleware::HostNames;
use serde_json::{Value, json};

use crate::common::{Place, complete, think};

/// A running `loopctl serve`; it is killed with the test.
pub struct Serving {
    pub address: SocketAddr,
    child: Child,
    _stdout: BufReader<ChildStdout>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether the body came to its own end: one that was cut is shorter than its length, or lacks the last chunk.
    pub whole: bool,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// The code of a problem.
    pub fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], self.status);
        body["code"].as_str().expect("a code").to_owned()
    }
}

impl Serving {
    /// Serves a place on a free port.
    pub fn start(place: &Place, more: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", place, more)
    }

    /// Serves a place at an address: that of a server before it.
    pub fn start_at(address: &str, place: &Place, more: &[&str]) -> Self {
        Self::start_folder(".", address, place, more)
    }

    /// The same of a folder that is named.
    pub fn start_folder(folder: &str, address: &str, place: &Place, more: &[&str]) -> Self {
        let mut args = vec!["serve", folder, "--listen", address];
        args.extend(more);
        Self::started(place.command(&args))
    }

    /// Serves a place on a free port, with these variables.
    pub fn start_with(place: &Place, more: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = place.command(&[&["serve", ".", "--listen", "127.0.0.1:0"], more].concat());
        command.envs(env.iter().copied());
        Self::started(command)
    }

    /// The same, under a limit of the shell's `ulimit`.
    pub fn start_limited(place: &Place, limit: &str, more: &[&str]) -> Self {
        let line = format!("ulimit {limit}; exec \"$@\"");
        let mut command = place.command(&[]);
        let program = command.get_program().to_owned();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &line, "sh"]).arg(program).args(["serve", ".", "--listen", "127.0.0.1:0"]).args(more);
        shell.current_dir(place.path()).stdin(std::process::Stdio::null()).env_clear();
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command = shell;
        Self::started(command)
    }

    /// Serves a place on a free port, and writes the log to a file.
    pub fn start_logged(place: &Place, more: &[&str], log: &std::path::Path) -> Self {
        let mut command = place.command(&[&["serve", ".", "--listen", "127.0.0.1:0"], more].concat());
        command.env("LOOPCTL_LOG", "info");
        Self::started_with(command, std::fs::File::create(log).expect("a file").into())
    }

    /// Serves a place on a free port, with these variables alone, and writes the log to a file.
    pub fn start_logged_with(place: &Place, more: &[&str], log: &std::path::Path, env: &[(&str, &str)]) -> Self {
        let mut command = place.command(&[&["serve", ".", "--listen", "127.0.0.1:0"], more].concat());
        command.envs(env.iter().copied());
        Self::started_with(command, std::fs::File::create(log).expect("a file").into())
    }

    /// Runs this command, whose stderr is a pipe that nobody reads.
    pub fn started_unread(command: std::process::Command) -> Self {
        Self::started_with(command, std::process::Stdio::piped())
    }

    fn started(command: std::process::Command) -> Self {
        Self::started_with(command, std::process::Stdio::null())
    }

    fn started_with(mut command: std::process::Command, stderr: std::process::Stdio) -> Self {
        command.stdout(std::process::Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().expect("it starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("it reads");
        let address = line.trim().strip_prefix("http://").and_then(|at| at.parse().ok());
        Self { address: address.unwrap_or_else(|| panic!("no address: {line:?}")), child, _stdout: stdout }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it ends by itself; its exit code.
    pub fn ended(mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.pid()).expect("an id"));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it is there");
    }

    /// Ends the server in order; its whole log. A server that is killed, and one that is still up, may owe the log its
    /// last lines: they are written behind the answers.
    pub fn whole_log(self, log: &std::path::Path) -> String {
        self.terminate();
        assert_eq!(self.ended(), Some(0));
        std::fs::read_to_string(log).expect("a log")
    }

    /// The memory that the server has, in KB.
    pub fn memory(&self) -> usize {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("a process");
        let line = text.lines().find(|line| line.starts_with("VmRSS")).expect("a line");
        line.split_whitespace().nth(1).and_then(|size| size.parse().ok()).expect("a number")
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a deadline");
        stream
    }

    /// Sends bytes as they are; all that is answered until the other side closes, or breaks the connection.
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        // The other side may close before it has read all.
        let _ = stream.write_all(bytes);
        read_until_closed(&mut stream)
    }

    pub fn send(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let reply = self.raw(&self.request(method, target, headers, body));
        parse(&reply).unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&reply)))
    }

    /// As [`Serving::send`]; none when the other side goes away.
    pub fn try_send(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Reply> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).ok()?;
        stream.write_all(&self.request(method, target, headers, body)).ok()?;
        parse(&read_until_closed(&mut stream)).filter(|reply| reply.whole)
    }

    fn request(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let mut head = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("host: {}\r\n", self.address));
        }
        if method == "POST" {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                head.push_str("content-type: application/json\r\n");
            }
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        [head.as_bytes(), b"\r\n", body].concat()
    }

    /// Begins to read a run's events.
    pub fn reader(&self, id: &str) -> TcpStream {
        let mut stream = self.connect();
        ask_for_events(&mut stream, self.address, id);
        stream
    }

    pub fn get(&self, target: &str) -> Reply {
        self.send("GET", target, &[], b"")
    }

    pub fn post(&self, target: &str, body: &Value) -> Reply {
        self.send("POST", target, &[], body.to_string().as_bytes())
    }

    /// Starts the loop `test` and waits for its end.
    pub fn execute(&self, query: &str, body: Value) -> Reply {
        self.post(&format!("/agents/execute{query}"), &body)
    }

    /// The status of a run when it is not under way any more.
    pub fn settled(&self, run_id: &str) -> Value {
        loop {
            let run = self.get(&format!("/agents/{run_id}/status")).json();
            if run["status"] != "running" && run["status"] != "queued" {
                return run;
            }
            crate::common::wait_poll_interval();
        }
    }

    /// The events of a run until the stream ends, with these headers.
    pub fn events(&self, run_id: &str, headers: &[(&str, &str)]) -> Vec<(String, Value)> {
        let reply = self.send("GET", &format!("/agents/{run_id}/events"), headers, b"");
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("content-type"), Some("text/event-stream"));
        assert!(reply.whole, "the stream was cut after {:?}", String::from_utf8_lossy(&reply.body).lines().last());
        stream(&String::from_utf8(reply.body).expect("text"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The events of a stream, read as a browser does: line by line.
pub fn stream(text: &str) -> Vec<(String, Value)> {
    let mut events = Vec::new();
    let (mut id, mut data) = (String::new(), Vec::new());
    for line in text.lines() {
        match line.split_once(':') {
            None if line.is_empty() && !data.is_empty() => {
                events.push((id.clone(), serde_json::from_str(&data.join("\n")).expect("JSON")));
                data.clear();
            }
            Some(("id", value)) => id = value.trim_start().to_owned(),
            Some(("data", value)) => data.push(value.trim_start().to_owned()),
            Some(("", _)) | None => {}
            Some((other, _)) => panic!("an unknown field {other}: {line}"),
        }
    }
    events
}

/// All that comes until the other side closes the connection or breaks it. A signal to this process (a stop,
/// the end of a child) interrupts a read that has a deadline: that is no end.
pub fn read_until_closed(stream: &mut impl Read) -> Vec<u8> {
    let mut answer = Vec::new();
    let mut piece = [0; 8192];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return answer,
            Ok(count) => answer.extend_from_slice(&piece[..count]),
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => return answer,
                _ => panic!("nothing more came: {error}"),
            },
        }
    }
}

/// Reads the first answer of what came.
pub fn parse(bytes: &[u8]) -> Option<Reply> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let value = |name: &str| headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    let body = &bytes[end + 4..];
    let (body, whole) = if value("transfer-encoding").is_some_and(|value| value == "chunked") {
        unchunked(body)
    } else {
        let length = value("content-length").and_then(|length| length.parse().ok());
        (body.to_vec(), length.is_none_or(|length: usize| body.len() >= length))
    };
    Some(Reply { status, headers, body, whole })
}

/// The body of chunks, and whether the last chunk came.
fn unchunked(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(&String::from_utf8_lossy(&bytes[..end]), 16).expect("a chunk's length");
        let start = end + 2;
        if length == 0 {
            return (body, true);
        }
        if bytes.len() < start + length + 2 {
            break;
        }
        body.extend_from_slice(&bytes[start..start + length]);
        bytes = &bytes[start + length + 2..];
    }
    (body, false)
}

/// A place with the loop `test` over the tools `look` and `act`, and a script for its model.
pub fn place(properties: Value, replies: &[Value]) -> Place {
    let place = Place::new();
    place.json("loop.json", &crate::common::document(&properties));
    scripted(&place, replies, json!({}));
    place
}

/// Makes the script the model, with more in the project file.
pub fn scripted(place: &Place, replies: &[Value], more: Value) {
    place.json("script.json", &json!({ "replies": replies }));
    let project = json!({
        "model": "m", "models": { "m": { "provider": "script", "script": "script.json" } },
        "allow": { "private_addresses": true }
    });
    place.json("loopctl.json", &crate::common::with(project, more));
}

/// Asks for a run's events.
pub fn ask_for_events(stream: &mut TcpStream, address: SocketAddr, id: &str) {
    write!(stream, "GET /agents/{id}/events HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
}

/// Reads until this text has come.
pub fn until(stream: &mut TcpStream, what: &str) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    while !text.contains(what) {
        let count = match stream.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read.unwrap(),
        };
        assert_ne!(count, 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    text
}

/// What a server of a place knows, in this process, without anything that listens.
pub fn served(place: &Place, journal: Arc<dyn Journal>) -> Arc<App> {
    let folder = Folder::read(place.path()).unwrap_or_else(|_| panic!("it is sound"));
    Arc::new(App::new(AppParts {
        host: None,
        authorizer: Authorizer::new(&folder.project.serve).unwrap(),
        names: HostNames::new("127.0.0.1".parse().unwrap(), &[]),
        body: BodyLimits { bytes: 1 << 20, time: Duration::from_secs(30) },
        max_concurrent_runs: 1,
        callback_key: Some("s3cret-of-the-hook".to_owned().into()),
        meters: None,
        folder,
        journal,
    }))
}

/// A loop with one call of `act`, which is idempotent, at this server.
pub fn acting(url: &str, calls: usize, delay_ms: u64) -> Place {
    let place = Place::new();
    let action = json!({ "action_name": "act", "kind": "http", "description": "Acts.", "url": format!("{url}/{{{{input.n}}}}/{{{{at}}}}"),
        "http_method": "POST", "idempotent": true,
        "parameters": { "type": "object", "properties": { "at": { "type": "integer" } }, "required": ["at"] } });
    place.json("loop.json", &json!({ "type": "loop", "name": "test", "actions": [action],
        "input": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] },
        "properties": { "mode": "react", "objective": "Act for {{input.n}}.", "tools": [{ "type": "action", "name": "act" }] } }));
    let said = |reply: Value| json!({ "delay_ms": delay_ms, "text": reply.to_string() });
    let mut replies: Vec<Value> = (0..calls).map(|at| said(think("act", json!({ "at": at })))).collect();
    replies.push(said(complete(json!("ok"))));
    scripted(&place, &replies, json!({}));
    place
}
