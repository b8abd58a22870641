//! The services of the Compose file as processes of this machine: PostgreSQL with its roles, the step that makes the
//! tables, three workers, and HAProxy before them.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete};
use crate::packaging::compose::{compose, services, texts};
use crate::packaging::{read, root};
use crate::serve::client::{Reply, parse, read_until_closed};
use crate::test_server;

/// So many runs; the first ones are under way when a worker is killed.
const RUNS: usize = 24;
const HELD: usize = 6;

/// A process that is killed with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Process {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.0.id()).unwrap()), signal).unwrap();
    }
}

/// What the services read: the folder of the loops with a token and a model of the test's own, and the secrets.
struct Setting {
    place: Place,
    token: String,
}

impl Setting {
    fn of(model: &Server, database: &str) -> Self {
        let place = Place::new();
        for name in ["loops/service-health.json", "loops/actions/service_status.json"] {
            place.file(name, read(&format!("packaging/compose/{name}")));
        }
        let created = place.call(&["token", "ci", "--scope", "run", "--scope", "read"]);
        let entry = created.stderr.lines().find(|line| line.starts_with('{')).unwrap();
        let mut project: Value = serde_json::from_str(&read("packaging/compose/loops/loopctl.json")).unwrap();
        project["serve"]["tokens"] = json!([serde_json::from_str::<Value>(entry).unwrap()]);
        project["models"]["main"]["base_url"] = json!(format!("{}/v1", model.url()));
        project["models"]["main"]["api_key"] =
            json!(format!("file:{}", place.path().join("secrets/model_key").display()));
        place.json("loops/loopctl.json", &project);
        for (name, text) in [("model_key", "a-key"), ("owner_password", "it's 1"), ("worker_password", "a \"2\"")] {
            place.file(&format!("secrets/{name}"), text);
        }
        // As the comments in the Compose file have them, with the socket of the test's server.
        for line in read("packaging/compose/compose.yaml").lines() {
            let Some((_, address)) = line.split_once("# postgres://") else { continue };
            let (role, rest) = address.split_once(":PASSWORD@database/loops").unwrap();
            let name = if role == "loopctl_owner" { "store_owner" } else { "store" };
            // Shorter than 15 s, so that the test does not wait for it.
            let more = if name == "store_owner" { "&lease_ms=1500" } else { "" };
            let url = format!("postgres://{role}@{}/loops{rest}{more}\n", database.replace('/', "%2F"));
            place.file(&format!("secrets/{name}"), url);
        }
        Self { place, token: created.stdout.trim().to_owned() }
    }

    /// The command of a service here, at this address.
    fn command(&self, service: &Value, address: &str) -> Command {
        let here = self.place.path().display();
        let words = texts(&service["command"]).into_iter().map(|word| {
            let word = word.replace("/run/secrets", &format!("{here}/secrets"));
            if word == "/loops" { format!("{here}/loops") } else { word.replace("0.0.0.0:3009", address) }
        });
        let words: Vec<String> = words.collect();
        let mut command = self.place.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
        command.stderr(Stdio::null());
        command
    }

    fn worker(&self, service: &Value, address: &str) -> (Process, SocketAddr) {
        let mut child = self.command(service, address).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").and_then(|at| at.parse().ok());
        (Process(child), address.unwrap_or_else(|| panic!("no address: {line:?}")))
    }

    /// One request (its method and target) to this address; none when the answer does not come whole.
    fn send(&self, address: SocketAddr, request: &str, more: &[(&str, &str)], body: &str) -> Option<Reply> {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut head = format!("{request} HTTP/1.1\r\nhost: loops.example.com\r\nconnection: close\r\n");
        head.push_str(&format!("authorization: Bearer {}\r\ncontent-length: {}\r\n", self.token, body.len()));
        for (name, value) in more {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).ok()?;
        parse(&read_until_closed(&mut stream)).filter(|reply| reply.whole)
    }

    /// Starts a run as a client does that repeats a request with its key until it is answered.
    fn run(&self, address: SocketAddr, number: usize) -> Value {
        let headers = [("content-type", "application/json"), ("idempotency-key", &*format!("run-{number}"))];
        let body = r#"{"loop":"service-health","input":{"service":"checkout"}}"#;
        // A worker that stops answers 503 until the load balancer has noticed it, for two seconds.
        for _ in 0..50_000 {
            match self.send(address, "POST /agents/execute?wait_ms=30000", &headers, body) {
                Some(reply) if reply.status == 200 => return reply.json(),
                Some(reply) => assert!([202, 502, 503, 504].contains(&reply.status), "{reply:?}"),
                None => {}
            }
        }
        panic!("run {number} was not answered");
    }
}

/// The port of a listener that has gone.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// HAProxy with the packaged file, and these workers; its address and that of its own state.
fn balancer(folder: &Path, workers: &[(&String, SocketAddr)]) -> Option<(Process, SocketAddr, SocketAddr)> {
    let (port, state) = (free_port(), free_port());
    let mut config = read("packaging/compose/haproxy.cfg");
    for (name, address) in workers {
        config = config.replace(&format!("{name} {name}:3009"), &format!("{name} {address}"));
    }
    config = config
        .replace("bind :3009", &format!("bind 127.0.0.1:{port}"))
        .replace("127.0.0.1:3010", &format!("127.0.0.1:{state}"));
    config = config.replace(" resolvers docker init-addr last,libc,none", "");
    let file = folder.join("haproxy.cfg");
    fs::write(&file, config).unwrap();
    let mut command = Command::new("haproxy");
    command.env("PATH", "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin:/bin").arg("-db").arg("-f").arg(&file);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
    Some((Process(child), at(port), at(state)))
}

/// Makes the database and its roles, as the image of PostgreSQL does.
fn database(folder: &str, secrets: &Path) {
    let psql = |command: &mut Command| {
        let output = command.env("PGHOST", folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    psql(Command::new("psql").args(["-qX", "-U", "loopctl", "-d", "postgres", "-c", "CREATE DATABASE loops"]));
    let mut script = Command::new("sh");
    script.arg(root().join("packaging/compose/database.sh")).env("SECRETS", secrets);
    psql(script.env("POSTGRES_USER", "loopctl").env("POSTGRES_DB", "loops"));
}

#[test]
#[ignore = "needs PostgreSQL and HAProxy, and takes seconds: `just nightly`"]
fn a_worker_that_is_killed_or_upgraded_fails_no_request_of_a_client_that_repeats_it() {
    let test = "a_worker_that_is_killed_or_upgraded_fails_no_request_of_a_client_that_repeats_it";
    let Some(postgres) = test_server::server(test) else { return };
    let gate = Gate::default();
    let held = gate.clone();
    let model = Server::with(move |number, _| {
        let answer = Answer::openai(&complete(json!("checkout is healthy")).to_string());
        if number < HELD { answer.behind(&held) } else { answer }
    });
    let setting = Setting::of(&model, &postgres.folder);
    database(&postgres.folder, &setting.place.path().join("secrets"));
    let compose = compose();
    // The workers' role can't make the tables: the step before them does.
    let workers = services(&compose, "serve");
    assert_eq!(setting.command(workers[0].1, "127.0.0.1:0").output().unwrap().status.code(), Some(2));
    let migration = setting.command(services(&compose, "store")[0].1, "").status().unwrap();
    assert!(migration.success(), "{migration}");
    let mut processes: Vec<(Process, SocketAddr)> =
        workers.iter().map(|(_, service)| setting.worker(service, "127.0.0.1:0")).collect();
    let named: Vec<(&String, SocketAddr)> =
        workers.iter().zip(&processes).map(|((name, _), (_, address))| (*name, *address)).collect();
    let Some((_balancer, address, state)) = balancer(setting.place.path(), &named) else {
        writeln!(std::io::stderr(), "skipped: {test}: there is no HAProxy on this machine").unwrap();
        return;
    };
    while setting.send(state, "GET /ready", &[], "").is_none_or(|reply| reply.status != 200) {
        crate::common::wait_poll_interval();
    }
    let setting = &setting;
    let runs: Vec<Value> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..RUNS).map(|number| scope.spawn(move || setting.run(address, number))).collect();
        model.wait_for(HELD);
        processes[0].0.signal(Signal::SIGKILL);
        gate.open();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(runs.iter().all(|run| run["status"] == "completed"), "{runs:?}");
    assert!(model.requests().len() > RUNS, "what the killed worker asked of the model was asked again");
    let mut ids: Vec<&str> = runs.iter().map(|run| run["agent_run_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), RUNS, "each key is one run");

    // One worker after the other ends in order and is started again at its address, while clients go on.
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|client| {
                scope.spawn(move || {
                    (0..20).map(|number| setting.run(address, 1000 + client * 100 + number)).collect::<Vec<_>>()
                })
            })
            .collect();
        for (process, service) in processes.iter_mut().zip(&workers) {
            let at = process.1;
            process.0.signal(Signal::SIGTERM);
            drop(process.0.0.wait());
            *process = setting.worker(service.1, &at.to_string());
        }
        for client in clients {
            assert!(client.join().unwrap().iter().all(|run| run["status"] == "completed"));
        }
    });
    let listed = setting.send(address, "GET /agents?limit=500", &[], "").unwrap().json();
    assert_eq!(listed["agents"].as_array().unwrap().len(), RUNS + 80);
}
