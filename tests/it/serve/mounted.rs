//! The router in a program of one's own: mounted under a prefix in an axum app, with that program's listener.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use loopctl::Engine;
use loopctl::journal::Journal;
use loopctl::journal::memory::MemoryJournal;
use loopctl::serve::{Caller, Folder, RouteGroup, ServerOptions, Service, TokenScope};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::common::{Place, complete};
use crate::serve::client::{Reply, parse, place, read_until_closed, scripted, stream};

/// A program that mounts the router under `/loops/`, beside a route of its own.
struct Host {
    address: SocketAddr,
    service: Service,
    runtime: Runtime,
}

impl Host {
    fn start(place: &Place, journal: &Arc<dyn Journal>, options: &ServerOptions) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let service = Service::new(Folder::read(place.path()).unwrap(), Arc::clone(journal), options).unwrap();
        Self::of(runtime, service)
    }

    fn of(runtime: Runtime, service: Service) -> Self {
        runtime.block_on(service.recover()).unwrap();
        let app = Router::new().route("/", get(async || "the host's own")).nest("/loops/", service.router());
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { address, service, runtime }
    }

    fn send(&self, request: &str, host: &str, body: &str) -> Reply {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        parse(&read_until_closed(&mut stream)).expect("an answer")
    }

    fn get(&self, path: &str) -> Reply {
        self.send(&format!("GET {path}"), "localhost", "")
    }

    fn execute(&self, query: &str) -> Reply {
        let body = json!({ "loop": "test", "input": {} });
        self.send(&format!("POST /loops/agents/execute{query}"), "localhost", &body.to_string())
    }
}

fn memory() -> Arc<dyn Journal> {
    Arc::new(MemoryJournal::default())
}

#[test]
fn a_run_is_started_and_read_under_the_prefix_and_location_and_openapi_have_it() {
    let place = place(json!({}), &[complete(json!("done"))]);
    let host = Host::start(&place, &memory(), &ServerOptions::default());
    assert_eq!(host.service.loops(), ["test"]);
    let reply = host.execute("");
    assert_eq!(reply.status, 200, "{reply:?}");
    let run = reply.json();
    assert_eq!((&run["status"], &run["final_answer"]), (&json!("completed"), &json!("done")));
    let id = run["agent_run_id"].as_str().unwrap();
    let location = reply.header("location").unwrap();
    assert_eq!(location, format!("/loops/agents/{id}/status"));
    assert_eq!(host.get(location).json()["final_answer"], "done");
    let events = host.get(&format!("/loops/agents/{id}/events"));
    assert_eq!(stream(&String::from_utf8(events.body).unwrap()).last().unwrap().1["event"], "result");
    assert_eq!(host.get("/loops/openapi.json").json()["servers"], json!([{ "url": "/loops" }]));
    // The links of the page are relative to the prefix, and the host's own routes stay.
    assert!(String::from_utf8(host.get("/loops/").body).unwrap().contains("href=\"page.css\""));
    assert_eq!(host.get("/loops/page.css").status, 200);
    assert_eq!(host.get("/loops/nothing").code(), "no_such_route");
    assert_eq!(host.get("/").body, b"the host's own");
}

#[test]
fn a_mounted_router_accepts_the_hosts_that_it_was_given_and_no_others() {
    let place = place(json!({}), &[complete(json!("done"))]);
    let options = ServerOptions { hosts: vec!["shop.example".to_owned()], ..ServerOptions::default() };
    let host = Host::start(&place, &memory(), &options);
    assert_eq!(host.send("GET /loops/loops", "shop.example", "").status, 200);
    assert_eq!(host.send("GET /loops/loops", "evil.example", "").code(), "unknown_host");
}

#[test]
fn without_tokens_a_service_for_an_address_that_others_reach_is_refused() {
    let place = place(json!({}), &[complete(json!("done"))]);
    let options = ServerOptions { listen: "0.0.0.0:0".parse().unwrap(), ..ServerOptions::default() };
    let refused = Service::new(Folder::read(place.path()).unwrap(), memory(), &options).err().unwrap();
    assert!(refused.to_string().starts_with("without tokens, everyone who reaches 0.0.0.0 could"), "{refused}");
}

#[test]
fn a_body_may_be_as_long_as_the_options_say() {
    let place = place(json!({}), &[complete(json!("done"))]);
    let options = ServerOptions { max_body_bytes: 4 << 20, ..ServerOptions::default() };
    let host = Host::start(&place, &memory(), &options);
    let body = format!("{}{{}}", " ".repeat((4 << 20) - 2));
    assert_eq!(host.send("POST /loops/check", "localhost", &body).status, 200);
}

#[test]
fn what_a_drained_service_left_is_resumed_by_the_next_one() {
    let text = complete(json!("done")).to_string();
    let place = place(json!({}), &[json!({ "text": text, "delay_ms": 600_000 })]);
    let journal = memory();
    let first = Host::start(&place, &journal, &ServerOptions { max_concurrent_runs: 1, ..ServerOptions::default() });
    first.execute("?async=true");
    let queued = first.execute("?async=true").json()["agent_run_id"].as_str().unwrap().to_owned();
    let ready = first.get("/loops/readyz").json();
    assert_eq!((&ready["status"], &ready["driven"], &ready["queued"]), (&json!("ready"), &json!(1), &json!(1)));
    first.runtime.block_on(first.service.drain(Duration::ZERO));
    assert_eq!(first.get("/loops/readyz").status, 503);
    assert_eq!(first.execute("?async=true").code(), "draining");

    scripted(&place, &[complete(json!("done"))], json!({}));
    let next = Host::start(&place, &journal, &ServerOptions::default());
    let events = next.get(&format!("/loops/agents/{queued}/events"));
    assert_eq!(stream(&String::from_utf8(events.body).unwrap()).last().unwrap().1["status"], "completed");
}

#[test]
fn a_server_that_drains_within_its_shutdown_ends_while_a_reader_follows_a_run() {
    let text = complete(json!("done")).to_string();
    let place = place(json!({}), &[json!({ "text": text, "delay_ms": 600_000 })]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let service = Service::new(Folder::read(place.path()).unwrap(), memory(), &ServerOptions::default()).unwrap();
    runtime.block_on(service.recover()).unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (app, draining) = (Router::new().nest("/loops/", service.router()), service.clone());
    let shutdown = async move {
        stopped.await.unwrap();
        draining.drain(Duration::ZERO).await;
    };
    let served = runtime.spawn(async move { axum::serve(listener, app).with_graceful_shutdown(shutdown).await });

    let host = Host { address, service, runtime };
    let id = host.execute("?async=true").json()["agent_run_id"].as_str().unwrap().to_owned();
    let mut reader = TcpStream::connect(address).unwrap();
    reader.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(reader, "GET /loops/agents/{id}/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    assert_ne!(reader.read(&mut [0; 256]).unwrap(), 0);
    stop.send(()).unwrap();
    host.runtime.block_on(served).unwrap().unwrap();
}

/// Who sends a request says so: a program of one's own has its sessions.
fn sender(parts: &axum::http::request::Parts) -> Option<Caller> {
    let (name, org) = parts.headers.get("x-user")?.to_str().ok()?.split_once('@')?;
    let scopes = match name {
        "reader" => vec![TokenScope::Read],
        _ => vec![TokenScope::Run, TokenScope::Read, TokenScope::Decide],
    };
    let caller = Caller::new(name).scopes(scopes);
    Some(if org == "all" { caller.all_orgs() } else { caller.org(org) })
}

#[test]
fn the_program_around_says_who_calls_and_each_organisation_has_its_own_runs() {
    let place = place(json!({}), &[complete(json!("done"))]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let engine = Engine::builder(Arc::default(), place.path()).build();
    let service = Service::builder(place.path(), &engine).identify(sender).build().unwrap();
    assert!(!service.is_open());
    let host = Host::of(runtime, service);
    let as_user = |user: &str, request: &str| {
        let body = if request.starts_with("POST") {
            json!({ "loop": "test", "input": {} }).to_string()
        } else {
            String::new()
        };
        host.send(request, &format!("localhost\r\nx-user: {user}"), &body)
    };
    assert_eq!(host.get("/loops/agents").status, 401);
    assert_eq!(as_user("ann@no such/org", "GET /loops/agents").status, 401);
    assert_eq!(as_user("reader@acme", "POST /loops/agents/execute").status, 403);
    let run = as_user("ann@acme", "POST /loops/agents/execute");
    assert_eq!(run.status, 200, "{run:?}");
    let id = run.json()["agent_run_id"].as_str().unwrap().to_owned();
    let listed = |user: &str| as_user(user, "GET /loops/agents").json()["agents"].as_array().unwrap().len();
    assert_eq!((listed("ann@acme"), listed("reader@acme"), listed("ann@other"), listed("ann@all")), (1, 1, 0, 1));
    assert_eq!(as_user("ann@other", &format!("GET /loops/agents/{id}/status")).status, 404);
    // What is about all organisations is not for those of one.
    assert_eq!(as_user("ann@acme", "GET /loops/metrics").status, 403);
    assert_eq!(as_user("ann@all", "GET /loops/metrics").status, 200);
    let audited = as_user("ann@acme", "GET /loops/audit").json().to_string();
    assert!(audited.contains("\"ann\""), "{audited}");
}

#[test]
fn a_service_has_the_routes_that_are_chosen() {
    let place = place(json!({}), &[complete(json!("done"))]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let engine = Engine::builder(Arc::default(), place.path()).build();
    let routes = [RouteGroup::Start, RouteGroup::Health];
    let service = Service::builder(place.path(), &engine).routes(routes).build().unwrap();
    let host = Host::of(runtime, service);
    assert_eq!(host.execute("").status, 200);
    assert_eq!(host.get("/loops/healthz").status, 200);
    for path in ["/loops/", "/loops/agents", "/loops/metrics", "/loops/mcp", "/loops/openapi.json", "/loops/loops"] {
        let reply = host.get(path);
        assert_eq!((reply.status, &reply.json()["code"]), (404, &json!("no_such_route")), "{path}");
    }
}
