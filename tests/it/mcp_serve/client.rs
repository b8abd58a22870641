//! A client over the standard streams: it holds every line of the server to be a message.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::common::Place;

/// A client, and the server that it started.
pub struct StdioClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What came and was not asked for yet.
    seen: Vec<Value>,
}

impl StdioClient {
    /// Starts the server in a folder, with a log of everything.
    pub fn start(place: &Place, more: &[&str]) -> Self {
        let mut child = place
            .command(&[&["mcp", "serve", "."], more].concat())
            .env("LOOPCTL_LOG", "trace")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(place.path().join("log.txt")).unwrap())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || stdout.lines().try_for_each(|line| sender.send(line.unwrap())));
        let stdin = child.stdin.take();
        Self { child, stdin, lines, seen: Vec::new() }
    }

    /// The same, with the older way to open.
    pub fn open(place: &Place, more: &[&str]) -> Self {
        let mut client = Self::start(place, more);
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t" } });
        let opened = client.ask("open", "initialize", params);
        assert_eq!(opened["result"]["protocolVersion"], "2025-11-25", "{opened}");
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// Writes bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string().as_bytes());
    }

    pub fn send(&mut self, id: &str, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string().as_bytes());
    }

    /// The answer to a request.
    pub fn ask(&mut self, id: &str, method: &str, params: Value) -> Value {
        self.send(id, method, params);
        self.answer(&json!(id))
    }

    /// The result of a call of a tool.
    pub fn call(&mut self, id: &str, name: &str, arguments: Value) -> Value {
        let answer = self.ask(id, "tools/call", json!({ "name": name, "arguments": arguments }));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// The answer to the request of this id.
    pub fn answer(&mut self, id: &Value) -> Value {
        self.first(|message| message["id"] == *id && message.get("id").is_some())
    }

    /// The first message that is so, of those that were not taken yet.
    pub fn first(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.seen.iter().position(&is_wanted) {
            return self.seen.remove(at);
        }
        loop {
            let message = self.next().expect("the server answers");
            if is_wanted(&message) {
                return message;
            }
            self.seen.push(message);
        }
    }

    fn next(&mut self) -> Option<Value> {
        let line = self.lines.recv().ok()?;
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        Some(message)
    }

    /// Ends the server at once, as nothing that it could notice.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the input.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the server; what it sent that was not taken.
    pub fn end(mut self) -> Vec<Value> {
        self.close();
        while let Some(message) = self.next() {
            self.seen.push(message);
        }
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        self.seen
    }
}
