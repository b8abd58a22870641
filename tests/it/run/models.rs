//! Models behind real connections: what is sent, what is tried again, and what is taken back.

use serde_json::{Value, json};

use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, Ran, answering, complete, look, with};
use crate::run::workflows;

/// A place whose loop has its model at the server.
fn place(properties: Value) -> Place {
    answering(&properties, "{\"seen\":1}")
}

fn run(place: &Place, server: &Server, more: &[&str]) -> Ran {
    let mut args = vec!["run", "loop.json", "--output", "json", "--store", "memory"];
    if !more.contains(&"--model") {
        args.extend(["--model", "test-model"]);
    }
    args.extend(more);
    place.call_with(
        &args,
        &[("OPENAI_BASE_URL", &format!("{}/v1", server.url())), ("OPENAI_API_KEY", "key-of-the-test")],
    )
}

fn says(reply: &Value) -> Answer {
    Answer::openai(&reply.to_string())
}

fn finish() -> Answer {
    says(&complete(json!("done")))
}

/// The messages of a request as the bytes that were sent.
fn messages(request: &Request) -> String {
    let text = request.text();
    let (_, messages) = text.split_once("\"messages\":[").expect("messages");
    messages.strip_suffix("]}").expect("messages come last").to_owned()
}

/// Connections are used again. On a busy machine the client may open a second one while the first is
/// still on its way back to the pool.
fn kept(server: &Server) {
    assert!(server.connections() <= 2, "{} connections", server.connections());
}

#[test]
fn a_run_speaks_over_one_connection_and_every_request_begins_with_the_one_before() {
    let steps = 12;
    let server = Server::with(
        move |number, _| if number < steps { says(&look(&format!("place {number} ü\"\n"))) } else { finish() },
    );
    let place = place(json!({ "max_iterations": 50 }));
    let ran = run(&place, &server, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let seen = server.requests();
    assert_eq!(seen.len(), steps + 1);
    kept(&server);
    for pair in seen.windows(2) {
        let (before, after) = (messages(&pair[0]), messages(&pair[1]));
        assert!(after.starts_with(&format!("{before},")), "{before}\n{after}");
        let count = |request: &Request| request.json()["messages"].as_array().map(Vec::len);
        assert_eq!(count(&pair[0]).map(|count| count + 2), count(&pair[1]));
        let head = |request: &Request| request.text().split("\"messages\":[").next().map(str::to_owned);
        assert_eq!(head(&pair[0]), head(&pair[1]));
    }
    let first = &seen[0];
    assert_eq!((first.method.as_str(), first.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(first.header("authorization"), Some("Bearer key-of-the-test"));
    assert_eq!(first.header("content-type"), Some("application/json"));
    let body = first.json();
    assert_eq!((&body["model"], &body["max_tokens"]), (&json!("test-model"), &json!(4096)));
    let result = ran.json();
    assert_eq!(result["result"]["answer"], "done");
    let metadata = &result["metadata"];
    assert_eq!((&metadata["rounds"], &metadata["tool_calls_made"]), (&json!(steps + 1), &json!(steps)), "{metadata:#}");
    assert_eq!(
        (&result["usage"]["input_tokens"], &result["usage"]["output_tokens"]),
        (&json!(130), &json!(65)),
        "{metadata:#}"
    );
}

#[test]
fn prompt_prints_the_bytes_that_the_server_then_gets() {
    let server = Server::new(vec![finish()]);
    let place = place(json!({ "objective": "Look at {{input.what}} — \u{1F600} \"quoted\"" }));
    let args = ["prompt", "loop.json", "--model", "m", "--input", "what=a\u{1}b", "--output", "json"];
    let url = server.url();
    let shown = place.call_with(&args, &[("OPENAI_BASE_URL", &url)]);
    assert_eq!((shown.code, server.connections()), (0, 0), "{shown:#?}");
    let ran = run(&place, &server, &["--input", "what=a\u{1}b", "--model", "m"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(shown.stdout, format!("{}\n", server.requests()[0].text()));
}

#[test]
fn a_workflow_has_no_prompt_and_prompt_says_so() {
    let place = workflows::place();
    workflows::steps(&place, json!([{ "type": "a" }]));
    let shown = place.call(&["prompt", "loop.json"]);
    assert_eq!((shown.code, shown.stdout.as_str()), (2, ""), "{shown:#?}");
    let why = "error: the workflow `w` asks no model itself, so it has no prompt: give a loop of mode `react`";
    assert_eq!(shown.stderr.trim_end(), why);
}

#[test]
fn a_failure_that_passes_is_tried_again_and_counted() {
    let refuse = |status: u16| Answer::json("{\"error\":{\"message\":\"later\"}}").status(status);
    let cases: Vec<(&str, Answer)> = vec![
        ("408", refuse(408)),
        ("409", refuse(409)),
        ("429", refuse(429).header("retry-after-ms", "1")),
        ("500", refuse(500)),
        ("502 html", Answer::new("text/html", "<html>bad gateway</html>").status(502)),
        ("529", refuse(529)),
        ("reset", Answer::reset()),
        ("closed", Answer::closed()),
        ("cut", Answer::openai("half").cut()),
        ("200 html", Answer::new("text/html", "<!doctype html><html><body>Sign in</body></html>")),
        ("empty body", Answer::new("application/json", "")),
        ("no choices", Answer::json("{\"choices\":[]}")),
        ("an error in a success", Answer::json("{\"error\":{\"message\":\"overloaded\"}}")),
        ("noise", Answer::raw("no HTTP at all\r\n\r\n")),
        ("compressed", Answer::json("x").header("content-encoding", "gzip")),
    ];
    assert!(cases.len() >= 15);
    for (name, answer) in cases {
        let server = Server::new(vec![answer, finish()]);
        let ran = run(&place(json!({})), &server, &[]);
        assert_eq!(ran.code, 0, "{name}: {ran:#?}");
        let seen = server.requests();
        assert_eq!(seen.len(), 2, "{name}");
        assert!(seen[0].body.is_empty() || seen[0].body == seen[1].body, "{name}: the same bytes are sent again");
        assert_eq!(ran.json()["metadata"]["model_retries"], 1, "{name}: {:#}", ran.json());
    }
}

#[test]
fn a_failure_that_stays_is_not_tried_again_and_says_what_to_do() {
    for (status, word) in
        [(400, "400"), (401, "key"), (403, "key"), (404, "base_url"), (422, "422"), (302, "redirects")]
    {
        let refusal = Answer::json("{\"error\":{\"message\":\"no such thing\"}}").status(status);
        let refusal = refusal.header("location", "http://127.0.0.1:1/");
        let server = Server::with(move |_, _| refusal.clone());
        let ran = run(&place(json!({})), &server, &[]);
        // What the server does not take as it is written is sent once more, without the schema of a turn.
        let requests = if matches!(status, 400 | 422) { 2 } else { 1 };
        assert_eq!((ran.code, server.requests().len()), (1, requests), "{status}: {ran:#?}");
        let result = ran.json();
        assert_eq!(result["termination"], "model_error", "{status}");
        let text = result.to_string();
        assert!(text.contains(word) && !text.contains("key-of-the-test"), "{status}: {text}");
    }
}

#[test]
fn retries_end_and_the_run_says_so() {
    let server = Server::with(|_, _| Answer::json("{}").status(503));
    let ran = run(&place(json!({ "retry": { "attempts": 3, "base_ms": 1, "max_ms": 2 } })), &server, &[]);
    assert_eq!((ran.code, server.requests().len()), (1, 3), "{ran:#?}");
    assert!(ran.json().to_string().contains("after 3 attempts"), "{:#}", ran.json());
}

#[test]
fn an_empty_reply_is_asked_for_again_and_a_page_of_html_as_a_reply_is_an_observation() {
    let replies = vec![Answer::openai(""), Answer::openai("<html><body>hello</body></html>"), finish()];
    let server = Server::new(replies);
    let ran = run(&place(json!({})), &server, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let metadata = ran.json()["metadata"].clone();
    assert_eq!((&metadata["invalid_replies"], &metadata["model_retries"]), (&json!(1), &json!(1)));
    let last = server.requests()[2].json();
    let texts: Vec<&str> =
        last["messages"].as_array().expect("messages").iter().filter_map(|m| m["content"].as_str()).collect();
    assert!(texts.iter().all(|text| !text.is_empty()), "no provider takes an empty message: {texts:?}");
}

#[test]
fn a_reply_of_20_mb_is_bounded_and_the_run_goes_on() {
    let server = Server::with(|number, _| match number {
        0 => Answer::openai(&"x".repeat(20 << 20)),
        _ => finish(),
    });
    let ran = run(&place(json!({})), &server, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["metadata"]["invalid_replies"], 1);
    let again = &server.requests()[1];
    assert!(again.body.len() < 10 << 20, "{} bytes are sent back", again.body.len());
}

#[test]
fn a_reply_without_end_is_cut_off() {
    let server = Server::with(|_, _| Answer::endless("application/json", vec![b' '; 1 << 20]));
    let ran = run(&place(json!({ "retry": { "attempts": 1 } })), &server, &[]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("larger than 64 MiB"), "{}", ran.stdout);
    assert!(server.sent() < 100 << 20, "{}", server.sent());
}

#[test]
fn the_price_is_summed_and_the_budget_ends_the_run() {
    let server = Server::with(|number, _| says(&look(&number.to_string())));
    let place = place(json!({ "max_iterations": 50, "budget": { "cost_usd": 0.001 } }));
    let priced = json!({ "allow": { "commands": ["echo"] }, "models": { "dear": { "provider": "openai",
        "base_url": server.url(), "model": "real-id", "price": { "input": 10.0, "output": 40.0 } } } });
    place.json("loopctl.json", &priced);
    let ran = run(&place, &server, &["--model", "dear"]);
    let result = ran.json();
    assert_eq!((ran.code, &result["termination"]), (1, &json!("budget")), "{result:#}");
    // A call costs 10 * 10 / 1e6 + 5 * 40 / 1e6 = 0.0003: the fourth goes over, and no call more is made.
    assert_eq!(server.requests().len(), 4);
    let cost = result["usage"]["cost_usd"].as_f64().expect("a price");
    assert!((cost - 0.0012).abs() < 1e-9, "{cost}");
    assert_eq!(server.requests()[0].json()["model"], "real-id");
}

#[test]
fn a_key_of_the_environment_goes_to_no_address_that_only_a_project_names() {
    let server = Server::with(|_, _| finish());
    let place = place(json!({}));
    let project = |more: Value| {
        let model = with(json!({ "provider": "openai", "base_url": server.url() }), more);
        json!({ "allow": { "commands": ["echo"] }, "models": { "local": model } })
    };
    let env = [("OPENAI_API_KEY", "key-of-the-test"), ("MY_KEY", "own-key")];
    let args = ["run", "loop.json", "--model", "local", "--store", "memory"];
    place.json("loopctl.json", &project(json!({})));
    assert_eq!(place.call_with(&args, &env).code, 0);
    place.json("loopctl.json", &project(json!({ "api_key": "env:MY_KEY" })));
    assert_eq!(place.call_with(&args, &env).code, 0);
    let seen = server.requests();
    assert_eq!(seen[0].header("authorization"), None);
    assert_eq!(seen[1].header("authorization"), Some("Bearer own-key"));
}

#[test]
fn the_next_model_is_asked_when_the_first_one_has_failed_for_good() {
    let first = Server::with(|_, _| Answer::json("{}").status(500));
    let second = Server::with(|_, _| finish());
    let place = place(json!({ "fallback_models": ["second"] }));
    let model = |server: &Server| json!({ "provider": "openai", "base_url": server.url() });
    let models = json!({ "first": model(&first), "second": model(&second) });
    place.json("loopctl.json", &json!({ "models": models, "allow": { "commands": ["echo"] } }));
    let ran = run(&place, &first, &["--model", "first"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!((first.requests().len(), second.requests().len()), (2, 1));
    assert_eq!(messages(&first.requests()[0]), messages(&second.requests()[0]), "both are asked the same");
    assert_eq!(second.requests()[0].json()["model"], "second");
}

#[test]
fn anthropics_protocol_carries_a_run_to_its_end() {
    let server = Server::with(|number, _| {
        let reply = if number < 2 { look(&number.to_string()) } else { complete(json!({ "found": 1 })) };
        Answer::anthropic(&reply.to_string())
    });
    let place = place(json!({}));
    let model =
        json!({ "provider": "anthropic", "base_url": server.url(), "api_key": "env:A_KEY", "model": "claude-x" });
    place.json("loopctl.json", &json!({ "models": { "claude": model }, "allow": { "commands": ["echo"] } }));
    let args = ["run", "loop.json", "--output", "json", "--store", "memory", "--model", "claude"];
    let ran = place.call_with(&args, &[("A_KEY", "anthropic-key")]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let result = ran.json();
    assert_eq!(result["result"]["answer"], json!({ "found": 1 }));
    assert_eq!(result["usage"]["input_tokens"], 30, "{result:#}");
    let seen = server.requests();
    assert_eq!(seen.len(), 3);
    kept(&server);
    for request in &seen {
        assert_eq!(request.path, "/messages");
        assert_eq!(request.header("x-api-key"), Some("anthropic-key"));
        assert!(request.header("anthropic-version").is_some() && request.header("authorization").is_none());
        let body = request.json();
        assert!(body["system"].to_string().contains("Find out what is wrong."), "{body:#}");
        let roles: Vec<&str> = body["messages"]
            .as_array()
            .expect("messages")
            .iter()
            .filter_map(|message| message["role"].as_str())
            .collect();
        let expected: Vec<&str> = ["user", "assistant"].into_iter().cycle().take(roles.len()).collect();
        assert_eq!(roles, expected, "roles change, the first is the user's");
    }
    let history = |request: &Request| request.json()["messages"].as_array().expect("messages").clone();
    for pair in seen.windows(2) {
        let (before, after) = (history(&pair[0]), history(&pair[1]));
        let text = |message: &Value| message.to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        for (one, other) in before.iter().zip(&after) {
            assert_eq!(text(one), text(other));
        }
    }
}

#[test]
fn a_proxy_of_the_environment_does_not_see_what_models_are_asked() {
    let (server, proxy) = (Server::with(|_, _| finish()), Server::with(|_, _| finish()));
    let place = place(json!({}));
    let (url, by) = (server.url(), proxy.url());
    let env = [("OPENAI_BASE_URL", url.as_str()), ("http_proxy", &by), ("HTTP_PROXY", &by), ("ALL_PROXY", &by)];
    let ran = place.call_with(&["run", "loop.json", "--model", "m", "--store", "memory"], &env);
    assert_eq!((ran.code, server.requests().len(), proxy.connections()), (0, 1, 0), "{ran:#?}");
}

#[test]
fn a_model_that_is_not_there_is_said_before_anything_is_kept() {
    let place = place(json!({}));
    let ran = place.call(&["run", "loop.json", "--model", "gpt-x"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("OPENAI_API_KEY"), "{}", ran.stderr);
    let unreachable = [("OPENAI_BASE_URL", "http://127.0.0.1:1")];
    let ran = place.call_with(&["run", "loop.json", "--model", "m", "--store", "memory"], &unreachable);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("connection refused by 127.0.0.1:1"), "{}", ran.stderr);
}

#[test]
fn a_run_survives_a_server_that_refuses_constrained_replies_and_nothing_of_it_is_kept() {
    let server = Server::reading(|_, request| match request.json()["response_format"].is_null() {
        true => Answer::openai(&complete(json!("done")).to_string()),
        false => Answer::json(r#"{"error":{"message":"unknown field response_format"}}"#).status(400),
    });
    let ran = run(&place(json!({})), &server, &[]);
    let result = ran.json();
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("done")), "{ran:#?}");
    assert_eq!((server.requests().len(), &result["metadata"]["model_retries"]), (2, &json!(0)), "{result:#}");
    assert!(result["attempts"].as_array().is_none_or(Vec::is_empty), "{result:#}");
}
