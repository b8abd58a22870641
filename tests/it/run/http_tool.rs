//! The `http` tool: where it may go, and what it sends.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, observed, think, web};

pub fn anywhere() -> Value {
    json!({ "allow": { "private_addresses": true } })
}

fn ok_server() -> Server {
    Server::with(|_, _| Answer::json(&json!({ "ok": true })))
}

/// A loop with the one action `call`, which may go anywhere.
pub fn one(url: &str, more: Value) -> Place {
    let place = Place::new();
    place.actions(&[web("call", url, more)], &anywhere());
    place
}

pub fn call(input: Value) -> Value {
    think("call", input)
}

/// Names and spellings of this machine's loopback, at this port.
fn loopback(port: u16) -> Vec<String> {
    let mut hosts: Vec<String> = [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "017700000001",
        "127.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "0.0.0.0",
        "0",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
    ]
    .map(str::to_owned)
    .to_vec();
    // Names that only the machine's own table knows to be loopback.
    for line in std::fs::read_to_string("/etc/hosts").unwrap_or_default().lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        if words.next() == Some("127.0.0.1") {
            hosts.extend(words.map(str::to_owned));
        }
    }
    hosts.into_iter().map(|host| format!("http://{host}:{port}/")).collect()
}

pub fn call_each(urls: &[String], project: &Value) -> Vec<Value> {
    let place = Place::new();
    let name = |number: usize| format!("call{number}");
    let actions: Vec<Value> = urls.iter().enumerate().map(|(number, url)| web(&name(number), url, json!({}))).collect();
    place.actions(&actions, project);
    let calls: Vec<Value> = (0..urls.len()).map(|number| think(&name(number), json!({}))).collect();
    place.calls(&calls)
}

/// What is said of a call to this address: by the check, or by the guard when it is made.
fn refusal(url: &str, project: &Value) -> String {
    let place = Place::new();
    place.actions(&[web("call", url, json!({}))], project);
    place.json("script.json", &json!({ "replies": [call(json!({})), crate::common::complete(json!("done"))] }));
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--output", "json", "--store", "memory"]);
    if ran.code == 2 {
        return ran.stderr;
    }
    let entry = &ran.json()["trace"][0];
    assert_eq!(entry["success"], false, "{url}: {entry:#}");
    observed(entry)
}

#[test]
fn this_machine_is_never_dialled_in_any_spelling_unless_the_project_allows_it() {
    let server = ok_server();
    let urls = loopback(server.address().port());
    assert!(urls.len() >= 15);
    for url in &urls {
        let message = refusal(url, &json!({}));
        assert!(message.contains("not allowed") || message.contains("L109"), "{url}: {message}");
    }
    // A host that comes with the input is seen by the guard alone.
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "0"] {
        let url = format!("http://{{{{input.host}}}}:{}/", server.address().port());
        let place = Place::new();
        place.actions(&[web("call", &url, json!({}))], &json!({}));
        let trace = place.calls_with(&[call(json!({}))], &["--input", &format!("host=\"{host}\"")], &[]);
        assert!(observed(&trace[0]).contains("not allowed"), "{host}: {:#}", trace[0]);
    }
    assert_eq!(server.connections(), 0);
    // With the guard off the same calls arrive.
    let allowed = call_each(&urls, &anywhere());
    for (url, entry) in urls.iter().zip(&allowed) {
        // Not every machine's table knows the name with its last dot.
        assert!(entry["success"] == true || url.contains("localhost.:"), "{url}: {entry:#}");
    }
    assert!(server.requests().len() + 1 >= urls.len());
}

#[test]
fn the_loopback_of_ipv6_is_not_dialled_unless_the_project_allows_it() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else { return };
    listener.set_nonblocking(true).expect("it can be asked");
    let url = format!("http://[::1]:{}/", listener.local_addr().expect("an address").port());
    let place = Place::new();
    assert!(refusal(&url, &json!({})).contains("L109"));
    assert_eq!(listener.accept().expect_err("nobody comes").kind(), ErrorKind::WouldBlock);
    place.actions(&[web("call", &url, json!({ "timeout_ms": 1_500 }))], &anywhere());
    place.calls(&[call(json!({}))]);
    assert!(listener.accept().is_ok(), "with the guard off it is dialled");
}

#[test]
fn a_list_of_hosts_lets_only_its_hosts_and_ports_through() {
    let (one, two) = (ok_server(), ok_server());
    let project =
        json!({ "allow": { "private_addresses": true, "hosts": [format!("127.0.0.1:{}", one.address().port())] } });
    assert_eq!(call_each(&[one.url()], &project)[0]["success"], true);
    assert!(refusal(&two.url(), &project).contains("L108"));
    assert_eq!((one.requests().len(), two.connections()), (1, 0));
}

#[test]
fn a_proxy_of_the_environment_is_not_used() {
    let proxy = ok_server();
    let place = Place::new();
    place.actions(&[web("call", "http://nobody.invalid/x", json!({}))], &anywhere());
    let names = ["http_proxy", "HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let url = proxy.url();
    let env: Vec<(&str, &str)> = names.iter().map(|name| (*name, url.as_str())).collect();
    let trace = place.calls_with(&[call(json!({}))], &[], &env);
    assert_eq!(trace[0]["success"], false, "{:#}", trace[0]);
    assert_eq!(proxy.connections(), 0);
    // A client that does look at the environment would have been answered.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().proxy(reqwest::Proxy::http(&url).expect("a proxy"));
    let client = client.tls_certs_only([]).build().expect("a client");
    let answer = runtime.block_on(client.get("http://nobody.invalid/x").send()).expect("an answer");
    assert!(answer.status().is_success());
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn redirects_are_followed_inside_the_origin_only() {
    let elsewhere = ok_server();
    let other = elsewhere.url();
    let port = elsewhere.address().port();
    let server = Server::with(move |_, request| {
        let to = match request.path.as_str() {
            "/same" => "/ok".to_owned(),
            "/port" => format!("{other}/x"),
            "/number" => format!("http://2130706433:{port}/x"),
            "/name" => format!("http://localhost:{port}/x"),
            "/relative" => format!("//127.0.0.1:{port}/x"),
            "/user" => format!("http://user:word@127.0.0.1:{port}/x"),
            "/scheme" => "https://127.0.0.1/x".to_owned(),
            "/file" => "file:///etc/passwd".to_owned(),
            "/round" => "/round".to_owned(),
            _ => return Answer::json(&json!({ "arrived": request.path })),
        };
        Answer::new("text/plain", "").status(302).header("location", &to)
    });
    let paths = ["same", "port", "number", "name", "relative", "user", "scheme", "file", "round"];
    let urls: Vec<String> = paths.iter().map(|path| format!("{}/{path}", server.url())).collect();
    let trace = call_each(&urls, &anywhere());
    assert_eq!(trace[0]["observation"], json!({ "arrived": "/ok" }));
    for (path, entry) in paths.iter().zip(&trace).skip(1) {
        assert_eq!(entry["success"], false, "{path}: {entry:#}");
        assert!(!observed(entry).contains("word"), "{path}: {entry:#}");
    }
    assert_eq!(elsewhere.connections(), 0);
    let rounds = server.requests().iter().filter(|request| request.path == "/round").count();
    assert_eq!(rounds, 6, "the first request and five redirects");
}

#[test]
fn a_redirect_to_a_private_address_is_refused_by_the_guard_of_hosts_too() {
    let server = Server::with(|_, request| match request.path.as_str() {
        "/a" => {
            Answer::new("text/plain", "").status(307).header("location", "http://169.254.169.254/latest/meta-data/")
        }
        _ => Answer::json("{}"),
    });
    let trace = call_each(&[format!("{}/a", server.url())], &anywhere());
    assert!(observed(&trace[0]).contains("not followed"), "{:#}", trace[0]);
}

/// Values that try to end a header, a line, or a request.
const BREAKOUTS: [&str; 14] = [
    "a\r\nX-Evil: 1",
    "a\nX-Evil: 1",
    "a\rX-Evil: 1",
    "a\r\n\r\nGET /evil HTTP/1.1\r\nHost: x\r\n\r\n",
    "a\u{0}b",
    "a\u{7f}b",
    "a\u{85}X-Evil: 1",
    "a\u{2028}X-Evil: 1",
    "a\\r\\nX-Evil: 1",
    "a%0d%0aX-Evil: 1",
    "\tX-Evil: 1",
    "嘊嘍X-Evil: 1",
    " HTTP/1.1\r\nX-Evil: 1\r\n\r\n",
    "?x=1#frag ment\r\nX-Evil: 1",
];

#[test]
fn no_value_brings_a_header_or_a_request_of_its_own() {
    let server = ok_server();
    let places = [
        ("header", json!({ "headers": { "X-Note": "{{v}}" } }), "/fixed"),
        ("path", json!({}), "/{{v}}"),
        ("query", json!({ "query": { "q": "{{v}}" } }), "/fixed"),
        ("body", json!({ "http_method": "POST", "body": { "v": "{{v}}" } }), "/fixed"),
        ("text", json!({ "http_method": "POST", "content_type": "text/plain", "body": "v={{v}}" }), "/fixed"),
        (
            "form",
            json!({ "http_method": "POST", "content_type": "application/x-www-form-urlencoded", "body": "v={{v}}&w=1" }),
            "/fixed",
        ),
    ];
    let place = Place::new();
    let actions: Vec<Value> =
        places.iter().map(|(name, more, path)| web(name, &format!("{}{path}", server.url()), more.clone())).collect();
    place.actions(&actions, &anywhere());
    let mut calls = Vec::new();
    for (name, ..) in &places {
        calls.extend(BREAKOUTS.iter().map(|text| think(name, json!({ "v": text }))));
    }
    let trace = place.calls(&calls);
    let made = trace.iter().filter(|entry| entry["success"] == true && entry["action"] != "__complete__").count();
    let seen = server.requests();
    assert_eq!(seen.len(), made, "one request a call that was made, none for one that was refused");
    assert!(made >= BREAKOUTS.len() * 5, "{made} calls tested too little");
    let known = [
        "accept",
        "accept-encoding",
        "content-length",
        "content-type",
        "host",
        "idempotency-key",
        "user-agent",
        "x-note",
    ];
    for request in &seen {
        for (name, _) in &request.headers {
            assert!(known.contains(&name.to_ascii_lowercase().as_str()), "{name} in {request:#?}");
        }
        assert!(
            request.path.starts_with("/fixed") || request.path.starts_with("/%") || request.path.starts_with("/a"),
            "{request:#?}"
        );
    }
    // What has a control character is refused for a header, and said.
    for (entry, text) in trace.iter().zip(BREAKOUTS).take(BREAKOUTS.len()) {
        if text.contains(['\r', '\n', '\0', '\t', '\u{7f}']) {
            assert!(observed(entry).contains("header not allowed"), "{text:?}: {entry:#}");
        }
    }
    for request in
        seen.iter().filter(|request| request.header("content-type") == Some("application/x-www-form-urlencoded"))
    {
        assert!(
            request.text().ends_with("&w=1") && request.text().matches(['&', '=']).count() == 3,
            "{}",
            request.text()
        );
    }
}

#[test]
fn the_counting_server_would_see_a_smuggled_request() {
    let server = ok_server();
    let mut socket = TcpStream::connect(server.address()).expect("it listens");
    let header = BREAKOUTS[3];
    let request = format!("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Note: {header}");
    socket.write_all(request.as_bytes()).expect("it reads");
    server.wait_for(2);
    drop(socket.shutdown(std::net::Shutdown::Write));
    let mut answers = String::new();
    let _ = socket.read_to_string(&mut answers);
    assert_eq!(server.requests()[1].path, "/evil");
}

#[test]
fn what_is_put_into_a_path_stays_one_part_of_it() {
    let server = ok_server();
    let place = one(&format!("{}/items/{{{{id}}}}/end", server.url()), json!({}));
    let cases = [
        ("../admin", "..%2Fadmin"),
        ("a/b", "a%2Fb"),
        ("a?b=c", "a%3Fb%3Dc"),
        ("a#b", "a%23b"),
        ("a b", "a%20b"),
        ("%2e%2e", "%252e%252e"),
        ("%2F", "%252F"),
        ("ü€😀", "%C3%BC%E2%82%AC%F0%9F%98%80"),
        ("a\\b", "a%5Cb"),
        ("a;b=1", "a%3Bb%3D1"),
        ("a\tb", "a%09b"),
        ("a@evil.test:80", "a%40evil.test%3A80"),
        ("-._~", "-._~"),
        ("a'b\"c", "a%27b%22c"),
    ];
    let mut calls: Vec<Value> = cases.iter().map(|(id, _)| call(json!({ "id": id }))).collect();
    let refused = ["..", ".", ""];
    calls.extend(refused.iter().map(|id| call(json!({ "id": id }))));
    let trace = place.calls(&calls);
    let seen: Vec<String> = server.requests().into_iter().map(|request| request.path).collect();
    for (at, (id, encoded)) in cases.iter().enumerate() {
        assert_eq!(seen[at], format!("/items/{encoded}/end"), "{id}");
    }
    for entry in &trace[cases.len()..cases.len() + 2] {
        assert_eq!(entry["success"], false, "{entry:#}");
    }
    assert!(seen[cases.len()..].iter().all(|path| path == "/items//end"), "{seen:?}");
}

#[test]
fn what_the_address_leaves_over_goes_to_the_query_or_the_body() {
    let server = ok_server();
    let url = |path: &str| format!("{}{path}", server.url());
    let post = |more: Value| crate::common::with(json!({ "http_method": "POST" }), more);
    let place = Place::new();
    let open = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"], "additionalProperties": true });
    place.actions(
        &[
            web("get", &url("/{{id}}"), json!({ "parameters": open })),
            web("named", &url("/?fixed=1"), json!({ "query": { "q": "@words", "n": "{{n}}" } })),
            web("post", &url("/{{id}}"), post(json!({ "parameters": open }))),
            web("typed", &url("/"), post(json!({ "body": { "n": "@n", "text": "n is {{n}}", "list": ["@n"] } }))),
            web("form", &url("/"), post(json!({ "content_type": "application/x-www-form-urlencoded" }))),
            web("empty", &url("/"), post(json!({}))),
        ],
        &anywhere(),
    );
    let digits = "12345678901234567890123";
    let exact = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    place.calls(&[
        think("get", exact(&format!(r#"{{"id":"a","n":{digits},"on":true,"none":null,"tags":["x y","z&="]}}"#))),
        think("named", json!({ "words": ["a", "b c"], "n": 2 })),
        think("post", exact(&format!(r#"{{"id":"a","n":{digits},"price":1.10,"text":"ü\"</"}}"#))),
        think("typed", exact(r#"{"n":9007199254740993}"#)),
        think("form", json!({ "a": "x y&b=2", "c": 1 })),
        think("empty", json!({})),
    ]);
    let seen = server.requests();
    assert_eq!(seen[0].path, format!("/a?n={digits}&on=true&tags=x%20y&tags=z%26%3D"));
    assert!(
        ["/?fixed=1&n=2&q=a&q=b%20c", "/?fixed=1&q=a&q=b%20c&n=2"].contains(&seen[1].path.as_str()),
        "{}",
        seen[1].path
    );
    assert_eq!(seen[2].text(), format!(r#"{{"n":{digits},"price":1.10,"text":"ü\"</"}}"#));
    assert_eq!(seen[2].header("content-type"), Some("application/json"));
    assert_eq!(seen[3].text(), r#"{"n":9007199254740993,"text":"n is 9007199254740993","list":[9007199254740993]}"#);
    assert_eq!(seen[4].text(), "a=x%20y%26b%3D2&c=1");
    assert_eq!(seen[5].text(), "{}");
    assert_eq!((seen[0].method.as_str(), seen[2].method.as_str()), ("GET", "POST"));
}

#[test]
fn every_call_has_a_key_of_its_own() {
    let server = ok_server();
    let place = one(&server.url(), json!({ "http_method": "POST", "parameters": { "type": "object" } }));
    let calls: Vec<Value> = (0..5).map(|n| call(json!({ "n": n }))).collect();
    place.calls_with(&calls, &["--run-id", "job 1\u{e4}"], &[]);
    let keys: Vec<String> =
        server.requests().iter().map(|request| request.header("idempotency-key").expect("a key").to_owned()).collect();
    let mut apart = keys.clone();
    apart.dedup();
    assert_eq!(apart.len(), 5);
    assert!(keys.iter().all(|key| key.starts_with("job%201%C3%A4-")), "{keys:?}");
}

#[test]
fn a_format_that_a_body_relies_on_keeps_its_signs_out() {
    for (media, body, value, sent) in [
        ("application/xml", "<o>{{id}}</o>", "0f8fad5b-d9cb-469f-a165-70867728950e", true),
        ("application/xml", "<o>{{id}}</o>", "7</o><o>8", false),
        ("text/csv", "id\n{{id}}\n", "7,8", false),
        ("text/csv", "id\n{{id}}\n", "<7>", true),
        ("application/json", "{\"id\": \"{{id}}\"}", "7</o><o>8", true),
    ] {
        let server = Server::with(|_, _| Answer::json(&json!({ "ok": 1 })));
        let place = Place::new();
        let parameters = json!({ "type": "object", "properties": { "id": { "type": "string", "format": "uuid" } },
            "required": ["id"] });
        let more = json!({ "http_method": "POST", "content_type": media, "body": body, "parameters": parameters });
        place.actions(&[web("order", &server.url(), more)], &json!({ "allow": { "private_addresses": true } }));
        place.json(
            "script.json",
            &json!({ "replies": [think("order", json!({ "id": value })), complete(json!("ok"))] }),
        );
        let (ran, _) = place.run(&["--run-id", "r"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_eq!(server.requests().len(), usize::from(sent), "{media} {value}");
        let trace = place.call(&["trace", "r"]);
        assert_eq!(trace.stdout.contains("is no `uuid`"), !sent, "{trace:#?}");
    }
}

#[test]
fn values_in_the_text_of_a_body_are_escaped_by_the_type_that_is_sent() {
    let form = "application/x-www-form-urlencoded";
    let json_header = json!({ "Content-Type": "application/json" });
    for (body, more, expected) in [
        ("v={{v}}", json!({ "content_type": form }), "v=1%26admin%3D%22yes%22"),
        ("v={{v}}", json!({ "headers": { "content-type": form } }), "v=1%26admin%3D%22yes%22"),
        (r#"{"v":"{{v}}"}"#, json!({ "headers": json_header, "content_type": form }), r#"{"v":"1&admin=\"yes\""}"#),
    ] {
        let server = ok_server();
        let written = crate::common::with(json!({ "http_method": "POST", "body": body }), more.clone());
        let place = one(&format!("{}/x", server.url()), written);
        place.calls(&[call(json!({ "v": "1&admin=\"yes\"" }))]);
        assert_eq!(server.requests()[0].text(), expected, "{more}");
    }
}
