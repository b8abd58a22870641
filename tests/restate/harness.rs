//! A Restate server and `loopctl-restate` on free ports. Both can be killed and started again.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Reply, parse, read_until_closed};
use crate::common::Place;

/// The server's program: on the PATH, or named by a variable.
pub fn program() -> Option<PathBuf> {
    #![allow(clippy::disallowed_methods, reason = "the environment says where the server is")]
    let named = std::env::var_os("RESTATE_SERVER").map(PathBuf::from);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|path| path.join("restate-server")).find(|path| path.is_file());
    let program = named.or(found);
    if program.is_none() {
        println!("skipped: no restate-server on the PATH");
    }
    program
}

/// Four free ports, all different.
fn free() -> [SocketAddr; 4] {
    let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("an address"))
}

/// Both processes; they end with the test.
pub struct Restate {
    program: PathBuf,
    data: Place,
    ingress: SocketAddr,
    admin: SocketAddr,
    node: SocketAddr,
    endpoint: SocketAddr,
    server: Option<Child>,
    service: Option<Child>,
    /// Further options of the service.
    options: Vec<String>,
}

impl Restate {
    /// Starts both for a folder, and registers the folder.
    pub fn start(program: PathBuf, place: &Place) -> Self {
        Self::with_options(program, place, &[])
    }

    /// The same; the service has these options too.
    pub fn with_options(program: PathBuf, place: &Place, options: &[&str]) -> Self {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let (data, server, service) = (Place::new(), None, None);
        let [ingress, admin, node, endpoint] = free();
        let mut restate = Self { program, data, ingress, admin, node, endpoint, server, service, options };
        restate.start_server();
        restate.start_service(place);
        let registered = restate.until(restate.admin, "/deployments", &json!({ "uri": restate.uri() }));
        assert!(registered.status < 300, "{registered:?}");
        restate
    }

    fn uri(&self) -> String {
        format!("http://{}", self.endpoint)
    }

    pub fn start_server(&mut self) {
        let mut command = Command::new(&self.program);
        command.arg("--base-dir").arg(self.data.path()).args(["--node-name", "n"]).env_clear();
        command.env("RESTATE_INGRESS__BIND_ADDRESS", self.ingress.to_string());
        command.env("RESTATE_ADMIN__BIND_ADDRESS", self.admin.to_string());
        command.env("RESTATE_BIND_ADDRESS", self.node.to_string());
        command.env("RESTATE_ADVERTISED_ADDRESS", format!("http://{}", self.node));
        command.env("RESTATE_DEFAULT_NUM_PARTITIONS", "2").env("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "256MB");
        command.env("RESTATE_DISABLE_TELEMETRY", "true").env("DO_NOT_TRACK", "1").env("HOME", self.data.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(command.spawn().expect("the server starts"));
    }

    pub fn start_service(&mut self, place: &Place) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loopctl-restate"));
        command.args(["serve", ".", "--listen", &self.endpoint.to_string()]).args(&self.options);
        command.current_dir(place.path()).env_clear();
        command.env("HOME", place.path()).env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the service starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("it reads");
        assert_eq!(line.trim(), self.uri());
        self.service = Some(child);
    }

    /// kill -9.
    pub fn kill_service(&mut self) {
        kill(&mut self.service);
    }

    /// Stands where the service was, and closes so many connections of the server: it waits longer after each.
    pub fn fail_attempts(&self, attempts: usize) {
        let listener = TcpListener::bind(self.endpoint).expect("the service is gone");
        listener.incoming().take(attempts).for_each(drop);
    }

    /// kill -9.
    pub fn kill_server(&mut self) {
        kill(&mut self.server);
    }

    /// Begins a run of the loop `test`.
    pub fn begin(&self, run_id: &str, input: &Value) {
        self.begin_invocation(run_id, input);
    }

    /// The same; returns the invocation.
    pub fn begin_invocation(&self, run_id: &str, input: &Value) -> String {
        let body = json!({ "loop": "test", "input": input });
        let reply = self.until(self.ingress, &format!("/loopctl/{run_id}/run/send"), &body);
        assert!(reply.status < 300, "{reply:?}");
        reply.json()["invocationId"].as_str().expect("an invocation").to_owned()
    }

    /// `cancel` or `kill` of an invocation, by Restate's own interface.
    pub fn end_invocation(&self, invocation: &str, how: &str) {
        let reply = request("PATCH", self.admin, &format!("/invocations/{invocation}/{how}"), &Value::Null);
        assert!(reply.as_ref().is_some_and(|reply| reply.status < 300), "{reply:?}");
    }

    /// Calls a handler of a run.
    pub fn call(&self, run_id: &str, handler: &str, body: &Value) -> Reply {
        self.call_service("loopctl", run_id, handler, body)
    }

    /// Calls a handler of a workflow.
    pub fn call_service(&self, service: &str, key: &str, handler: &str, body: &Value) -> Reply {
        self.until(self.ingress, &format!("/{service}/{key}/{handler}"), body)
    }

    /// The status of a run.
    pub fn status(&self, run_id: &str) -> Value {
        let reply = self.until(self.ingress, &format!("/loopctl/{run_id}/status"), &Value::Null);
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    /// The status of a run, once it is another one than `running`.
    pub fn settled(&self, run_id: &str) -> Value {
        for _ in 0..1_200 {
            let status = self.status(run_id);
            if status["status"] != "running" {
                return status;
            }
            pause();
        }
        panic!("{run_id} does not settle");
    }

    /// Posts until there is an answer: the server may not be there yet.
    fn until(&self, to: SocketAddr, path: &str, body: &Value) -> Reply {
        for _ in 0..1_200 {
            match post(to, path, body) {
                Some(reply) if !matches!(reply.status, 500 | 502..=504) => return reply,
                _ => pause(),
            }
        }
        panic!("no answer to {path}");
    }
}

impl Drop for Restate {
    fn drop(&mut self) {
        self.kill_service();
        self.kill_server();
    }
}

fn kill(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// What is waited for has no event that a test could wait for: it is in another process.
pub fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

/// One request; none when there is no answer.
pub fn post(to: SocketAddr, path: &str, body: &Value) -> Option<Reply> {
    request("POST", to, path, body)
}

fn request(method: &str, to: SocketAddr, path: &str, body: &Value) -> Option<Reply> {
    let mut stream = TcpStream::connect(to).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(120))).ok()?;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n{kind}content-length: {length}\r\n\r\n{body}"
    )
    .ok()?;
    parse(&read_until_closed(&mut stream)).filter(|reply| reply.whole)
}
