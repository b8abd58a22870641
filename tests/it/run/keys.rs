//! Keys of models and secrets of tools: they expire, and are read again.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, answering, complete, look, with};

fn says(reply: Value) -> Answer {
    Answer::openai(&reply.to_string())
}

fn refuses(status: u16) -> Answer {
    Answer::json("{\"error\":{\"message\":\"token expired\"}}").status(status)
}

/// A place whose model `m` has its key in `MODEL_KEY`.
fn place(server: &Server, properties: &Value) -> Place {
    let retry = json!({ "retry": { "attempts": 3, "base_ms": 1, "max_ms": 1 } });
    let place = answering(&with(retry, properties.clone()), "{\"seen\":1}");
    let model = json!({ "provider": "openai", "base_url": server.url(), "api_key": "env:MODEL_KEY" });
    place.json("loopctl.json", &json!({ "allow": { "commands": ["echo"] }, "model": "m", "models": { "m": model } }));
    place
}

fn call(place: &Place, key: &str, args: &[&str]) -> Ran {
    place.call_with(&[args, &["--output", "json"]].concat(), &[("MODEL_KEY", key)])
}

#[test]
fn a_run_whose_key_expired_goes_on_where_it_was_once_the_key_is_good() {
    for (status, more) in [(401, json!({})), (402, json!({})), (403, json!({ "on_model_outage": "pause" }))] {
        let server = Server::with(move |number, request| {
            let is_new = request.header("authorization") == Some("Bearer the-second-key");
            match number {
                0 => says(look("a")),
                1 => says(look("b")),
                _ if is_new => says(complete(json!("done"))),
                _ => refuses(status),
            }
        });
        let place = place(&server, &more);
        let waits = more.get("on_model_outage").is_some();
        let failed = call(&place, "the-first-key", &["run", "loop.json", "--run-id", "r"]);
        let result = failed.json();
        assert_eq!(failed.code, if waits { 3 } else { 1 }, "{failed:#?}");
        assert_eq!((&result["termination"], server.requests().len()), (&json!("model_error"), 3), "{result:#}");
        if !waits {
            let error = &result["error"];
            assert_eq!((&error["code"], &error["retryable"]), (&json!("model_refused"), &json!(true)), "{result:#}");
        }
        // With the old key it fails as before, and nothing is lost.
        let again = call(&place, "the-first-key", &["retry", "r"]);
        assert_eq!(again.code, failed.code, "{again:#?}");
        let how = if waits { ["resume", "r"] } else { ["retry", "r"] };
        let done = call(&place, "the-second-key", &how);
        let result = done.json();
        assert_eq!((done.code, &result["result"]["answer"]), (0, &json!("done")), "{done:#?}");
        assert_eq!(result["metadata"]["tool_calls_made"], 2, "{result:#}");
        for ran in [&failed, &again, &done] {
            assert!(!format!("{ran:?}").contains("-key\""), "{ran:#?}");
        }
    }
}

#[test]
fn a_workflow_whose_step_lacks_a_good_key_goes_on_with_that_step() {
    let server = Server::with(|number, request| match request.header("authorization") {
        Some("Bearer the-second-key") => Answer::openai("second"),
        _ if number == 0 => Answer::openai("first"),
        _ => refuses(401),
    });
    let place = place(&server, &json!({}));
    let ask =
        |name: &str| json!({ "action_name": name, "kind": "llm", "description": "Asks.", "template": "Say {{n}}." });
    place.json("actions/ask.json", &json!([ask("one"), ask("two")]));
    let step = |name: &str| json!({ "type": name, "properties": { "n": 1 } });
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [step("one"), step("two")] } }));
    let failed = call(&place, "the-first-key", &["run", "loop.json", "--run-id", "r"]);
    let error = failed.json()["error"].clone();
    assert_eq!((failed.code, &error["retryable"]), (1, &json!(true)), "{failed:#?}");
    let done = call(&place, "the-second-key", &["retry", "r"]);
    assert_eq!(
        (done.code, &done.json()["result"]["answer"]),
        (0, &json!({ "one": "first", "two": "second" })),
        "{done:#?}"
    );
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_summary_that_only_lacks_a_good_key_is_written_once_the_key_is_good() {
    let history = json!({ "history": { "max_messages": 5, "keep_last": 1, "summarize": true } });
    let server = Server::reading(|_, request| {
        let messages = request.json()["messages"].clone();
        let text = messages.to_string();
        match request.header("authorization") {
            Some("Bearer the-second-key") if text.contains("Write the notes now") => Answer::openai("NOTES-OF-THE-RUN"),
            _ if text.contains("Write the notes now") => refuses(401),
            _ if text.contains("NOTES-OF-THE-RUN") => says(complete(json!("done"))),
            // Without the notes.
            _ if text.contains("are not shown any more") => says(complete(json!("lost"))),
            _ => says(look(&format!("place {}", messages.as_array().map_or(0, Vec::len)))),
        }
    });
    let place = place(&server, &history);
    let failed = call(&place, "the-first-key", &["run", "loop.json", "--run-id", "r"]);
    assert_eq!((failed.code, &failed.json()["error"]["retryable"]), (1, &json!(true)), "{failed:#?}");
    let done = call(&place, "the-second-key", &["retry", "r"]);
    assert_eq!((done.code, &done.json()["result"]["answer"]), (0, &json!("done")), "{done:#?}");
}

/// A place whose model `m` has these fields beside its address; the program `sh` is allowed.
fn with_model(server: &Server, more: Value) -> Place {
    let retry = json!({ "retry": { "attempts": 3, "base_ms": 1, "max_ms": 1 } });
    let place = answering(&retry, "{\"seen\":1}");
    let model = with(json!({ "provider": "openai", "base_url": server.url() }), more);
    let allow = json!({ "commands": ["echo", "sh"] });
    place.json("loopctl.json", &json!({ "allow": allow, "model": "m", "models": { "m": model } }));
    place
}

fn run(place: &Place, env: &[(&str, &str)]) -> Ran {
    place.call_with(&["run", "loop.json", "--run-id", "r", "--output", "json"], env)
}

/// A program that prints what a line of the shell prints, and notes that it was started.
fn program(place: &Place, line: &str) -> Value {
    place.file("key.sh", format!("echo started >> started.txt\nn=$(grep -c started started.txt)\n{line}\n"));
    json!({ "command": ["sh", "key.sh"], "ttl_s": 3000 })
}

fn started(place: &Place) -> usize {
    std::fs::read_to_string(place.path().join("started.txt")).unwrap_or_default().lines().count()
}

/// Nothing that is shown or kept has one of these texts, but for the files that were there before.
fn hidden(place: &Place, ran: &Ran, secrets: &[&str]) {
    let shown = format!("{}{}", ran.stdout, ran.stderr);
    let trace: Vec<String> = ["text", "json", "html"]
        .iter()
        .map(|form| format!("{:?}", place.call(&["trace", "r", "--format", form])))
        .chain([format!("{:?}", place.call(&["explain", "r"]))])
        .collect();
    for secret in secrets {
        assert!(!shown.contains(secret), "{secret}: {shown}");
        assert!(trace.iter().all(|trace| !trace.contains(secret)), "{secret}: {trace:#?}");
        for (path, bytes) in place.files().into_iter().filter(|(path, _)| path.to_string_lossy().contains(".loopctl")) {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} is in {}", path.display());
        }
    }
}

fn bearer(key: &str) -> Option<String> {
    Some(format!("Bearer {key}"))
}

fn sent(server: &Server, header: &str) -> Vec<Option<String>> {
    server.requests().iter().map(|request| request.header(header).map(str::to_owned)).collect()
}

#[test]
fn a_key_comes_from_a_program_which_is_asked_once_for_its_time() {
    for printed in ["echo the-key-$n", "echo '{\"access_token\": \"the-key-1\", \"expires_in\": 3599}'"] {
        let server = Server::new(vec![says(look("a")), says(look("b")), says(complete(json!("done")))]);
        let place = with_model(&server, json!({}));
        let key = program(&place, printed);
        let place = keyed(place, &server, key);
        let ran = run(&place, &[]);
        assert_eq!((ran.code, started(&place)), (0, 1), "{ran:#?}");
        assert_eq!(sent(&server, "authorization"), vec![bearer("the-key-1"); 3]);
        hidden(&place, &ran, &["the-key-1"]);
    }
}

/// The same place with this key.
fn keyed(place: Place, server: &Server, key: Value) -> Place {
    let model = json!({ "provider": "openai", "base_url": server.url(), "api_key": key });
    let allow = json!({ "commands": ["echo", "sh"], "private_addresses": true });
    place.json("loopctl.json", &json!({ "allow": allow, "model": "m", "models": { "m": model } }));
    place
}

#[test]
fn a_refused_key_is_asked_for_again_once_and_that_is_no_attempt() {
    // A server that takes the second key only, and repeats what it refuses.
    let server = Server::with(|number, request| match request.header("authorization") {
        Some("Bearer the-key-2") if number < 3 => says(look("a")),
        Some("Bearer the-key-2") => says(complete(json!("done"))),
        other => Answer::json(&format!("{{\"error\":{{\"message\":\"no {other:?}\"}}}}").replace('"', "'")).status(401),
    });
    let place = with_model(&server, json!({}));
    let key = program(&place, "echo the-key-$n");
    let place = keyed(place, &server, key);
    let ran = run(&place, &[]);
    let result = ran.json();
    assert_eq!((ran.code, started(&place)), (0, 2), "{ran:#?}");
    assert_eq!((&result["metadata"]["model_retries"], result.get("attempts")), (&json!(0), None), "{result:#}");
    hidden(&place, &ran, &["the-key-1", "the-key-2"]);
    // One that stays the same is not sent again, and the run may be retried.
    let refused = Server::with(|_, request| {
        Answer::json(&json!({ "error": { "message": format!("no {:?}", request.headers) } })).status(401)
    });
    let place = with_model(&refused, json!({}));
    let key = program(&place, "echo the-same-key");
    let place = keyed(place, &refused, key);
    let ran = run(&place, &[]);
    assert_eq!((ran.code, refused.requests().len(), started(&place)), (1, 1, 2), "{ran:#?}");
    assert_eq!(ran.json()["error"]["retryable"], json!(true), "{ran:#?}");
    hidden(&place, &ran, &["the-same-key"]);
}

#[test]
fn a_program_that_gives_no_key_ends_the_run_as_one_that_may_be_retried_and_shows_no_secret() {
    let long = "yes the-secret-key | head -c 200000";
    for (line, words) in [
        ("echo 'no account; last token the-secret-key' >&2; echo the-secret-key; exit 3", "status 3"),
        ("echo 'token sk-proj-abcdefghij0123456789abcdefghij' >&2; exit 1", "[hidden]"),
        ("printf 'the-secret-key\\nthe-secret-key\\n'", "more than one line"),
        ("printf '\\377\\376the-secret-key'", "not UTF-8"),
        ("printf 'the-secret\\033[0m-key'", "control characters"),
        ("true", "printed nothing"),
        (long, "64 KiB"),
        ("yes the-secret-key", "too large"),
        ("echo '{\"accessToken\": \"the-secret-key\"}'", "access_token"),
    ] {
        let server = Server::new(vec![says(complete(json!("done")))]);
        let place = with_model(&server, json!({}));
        let key = program(&place, line);
        let place = keyed(place, &server, key);
        let ran = run(&place, &[]);
        let error = ran.json()["error"].clone();
        assert_eq!((ran.code, server.requests().len()), (1, 0), "{line}: {ran:#?}");
        assert!(error["message"].as_str().unwrap().contains(words), "{line}: {error:#}");
        assert_eq!((&error["code"], &error["retryable"]), (&json!("model_refused"), &json!(true)), "{line}");
        hidden(&place, &ran, &["the-secret-key", "abcdefghij0123456789"]);
        // Once the program gives one, the run goes on.
        program(&place, "echo the-good-key");
        let done = place.call(&["retry", "r", "--output", "json"]);
        assert_eq!((done.code, &done.json()["result"]["answer"]), (0, &json!("done")), "{line}: {done:#?}");
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_program_that_never_ends_is_killed_with_its_children() {
    let server = Server::new(vec![]);
    let place = with_model(&server, json!({}));
    let key = program(&place, "sleep 1000 &\necho $! > child.txt\nwait");
    let place = keyed(place, &server, key);
    let ran = run(&place, &[("LOOPCTL_FAIL", "time:1500:secret_program")]);
    let error = ran.json()["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("it took longer than 1.5 s"), "{ran:#?}");
    let child = std::fs::read_to_string(place.path().join("child.txt")).unwrap();
    assert!(crate::common::gone(child.trim()), "{child}");
}

#[test]
fn a_program_is_started_directly_with_a_bare_environment_and_only_if_it_is_allowed() {
    let server = Server::new(vec![says(complete(json!("done")))]);
    let place = with_model(&server, json!({}));
    place.file("key.sh", "env > env.txt\necho \"$1\" > arg.txt\necho the-key-1\n");
    let place = keyed(place, &server, json!({ "command": ["sh", "key.sh", "$(touch made.txt); a b"] }));
    let ran = run(&place, &[("SECRET_OF_OURS", "the-other-secret")]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    assert_eq!(read("arg.txt"), "$(touch made.txt); a b\n");
    assert!(!read("env.txt").contains("SECRET_OF_OURS") && !place.path().join("made.txt").exists());
    place.json(
        "loopctl.json",
        &json!({ "model": "m", "models": { "m": { "provider": "openai",
        "base_url": server.url(), "api_key": { "command": ["sh", "key.sh"] } } } }),
    );
    let refused = run(&place, &[]);
    assert!(refused.code == 2 && refused.stderr.contains("L110"), "{refused:#?}");
}

#[test]
fn checks_tests_and_prompts_start_no_program() {
    let server = Server::new(vec![]);
    let place = with_model(&server, json!({}));
    let key = program(&place, "echo the-key-$n");
    let place = keyed(place, &server, key);
    place.json(
        "loop.test.json",
        &json!({ "document": "loop.json", "scenarios": [{ "name": "ends", "replies": [complete(json!("done"))], "expect": { "status": "completed" } }] }),
    );
    for args in [&["check", "loop.json"][..], &["check", "--env", "loop.json"], &["test"], &["prompt", "loop.json"]] {
        let ran = place.call(args);
        assert_eq!((ran.code, started(&place)), (0, 0), "{args:?}: {ran:#?}");
    }
}

#[test]
fn a_key_file_is_read_again_within_a_run_and_both_texts_stay_hidden() {
    for refuses in [false, true] {
        let place = std::sync::Arc::new(with_model(&Server::new(vec![]), json!({})));
        let path = place.file("key.txt", "the-first-key\n");
        let server = Server::with(move |number, request| {
            let key = request.header("authorization").unwrap_or_default().to_owned();
            if number == 1 {
                std::fs::write(&path, "the-other-key\n").unwrap();
            }
            match number {
                0 => says(look(&key)),
                // The new key is there now, so the same request is made again with it.
                1 if refuses => Answer::json("{\"error\":{\"message\":\"expired\"}}").status(401),
                1 => says(look("b")),
                _ => says(complete(json!(format!("the keys were the-first-key and {key}")))),
            }
        });
        let model = json!({ "provider": "openai", "base_url": server.url(), "api_key": "file:key.txt" });
        place.json(
            "loopctl.json",
            &json!({ "allow": { "commands": ["echo"] }, "model": "m", "models": { "m": model } }),
        );
        let ran = run(&place, &[]);
        let result = ran.json();
        assert_eq!((ran.code, result.get("attempts")), (0, None), "{ran:#?}");
        assert_eq!(
            sent(&server, "authorization"),
            [bearer("the-first-key"), bearer("the-first-key"), bearer("the-other-key")]
        );
        hidden(&place, &ran, &["the-first-key", "the-other-key"]);
    }
}

#[test]
fn headers_of_a_model_are_sent_with_every_request_of_every_protocol_and_stay_hidden() {
    for (provider, answer) in [
        ("openai", Answer::openai(&complete(json!("done")).to_string())),
        ("anthropic", Answer::anthropic(&complete(json!("done")).to_string())),
    ] {
        let server = Server::with(move |number, request| {
            let echoed = json!({ "error": { "message": format!("busy: {:?}", request.headers) } });
            if number == 0 { Answer::json(&echoed).status(503) } else { answer.clone() }
        });
        let place = with_model(&server, json!({}));
        place.file("team.txt", "team-4471\n");
        let headers = json!({ "X-Org": "env:TEAM_KEY", "X-File": "file:team.txt", "X-Title": "Orders",
            "X-Shared": "orgconfig:shared", "X-Program": program(&place, "echo program-4471") });
        let model = json!({ "provider": provider, "base_url": server.url(), "headers": headers });
        let project = json!({ "allow": { "commands": ["echo", "sh"] }, "orgconfig": { "shared": "env:SHARED" },
            "model": "m", "models": { "m": model } });
        place.json("loopctl.json", &project);
        let unset = run(&place, &[("SHARED", "shared-4471")]);
        assert!(unset.code == 2 && unset.stderr.contains("TEAM_KEY") && unset.stderr.contains("X-Org"), "{unset:#?}");
        assert!(server.requests().is_empty());
        let ran = run(&place, &[("TEAM_KEY", "t-4471"), ("SHARED", "shared-4471")]);
        assert_eq!((ran.code, server.requests().len()), (0, 2), "{ran:#?}");
        for (header, value) in [
            ("x-org", "t-4471"),
            ("x-file", "team-4471"),
            ("x-title", "Orders"),
            ("x-shared", "shared-4471"),
            ("x-program", "program-4471"),
        ] {
            assert_eq!(sent(&server, header), vec![Some(value.to_owned()); 2], "{header}");
        }
        assert!(sent(&server, "authorization").iter().chain(&sent(&server, "x-api-key")).all(Option::is_none));
        assert!(ran.stdout.contains("[secret"), "the server repeated them: {ran:#?}");
        hidden(&place, &ran, &["t-4471", "team-4471", "shared-4471", "program-4471"]);
    }
}

#[test]
fn the_key_is_sent_as_auth_says_and_a_header_of_the_project_takes_its_place() {
    let key = json!("env:MODEL_KEY");
    for (more, header, value) in [
        (
            json!({ "auth": "bearer", "api_key": key, "provider": "anthropic" }),
            "authorization",
            Some("Bearer the-key-1"),
        ),
        (json!({ "auth": "x-api-key", "api_key": key }), "x-api-key", Some("the-key-1")),
        (json!({ "auth": "api-key", "api_key": key }), "api-key", Some("the-key-1")),
        (json!({ "auth": "none" }), "authorization", None),
        (json!({ "headers": { "Authorization": key } }), "authorization", Some("the-key-1")),
    ] {
        let is_claude = more["provider"] == "anthropic";
        let text = complete(json!("done")).to_string();
        let answer = if is_claude { Answer::anthropic(&text) } else { Answer::openai(&text) };
        let server = Server::with(move |_, _| answer.clone());
        let place = with_model(&server, more.clone());
        let ran = run(&place, &[("MODEL_KEY", "the-key-1"), ("OPENAI_API_KEY", "not-for-this-server")]);
        assert_eq!(ran.code, 0, "{more}: {ran:#?}");
        assert_eq!(sent(&server, header), [value.map(str::to_owned)], "{more}");
        let names: Vec<String> = server.requests()[0].headers.iter().map(|(name, _)| name.to_lowercase()).collect();
        let keys = names.iter().filter(|name| ["authorization", "x-api-key", "api-key"].contains(&name.as_str()));
        assert_eq!(keys.count(), usize::from(value.is_some()), "{more}: {names:?}");
    }
}

#[test]
fn a_key_that_was_pasted_with_more_than_the_key_is_sent_as_the_key() {
    for text in ["Bearer the-secret-key", "bearer the-secret-key\r\n", "\u{feff}the-secret-key\n", " the-secret-key "] {
        let server = Server::with(|_, _| says(complete(json!("done"))));
        let place = with_model(&server, json!({ "api_key": "file:model.key" }));
        place.file("model.key", text);
        assert_eq!(run(&place, &[]).code, 0, "{text:?}");
        assert_eq!(sent(&server, "authorization"), [bearer("the-secret-key")], "{text:?}");
    }
    let server = Server::with(|_, _| says(complete(json!("done"))));
    let place = with_model(&server, json!({ "api_key": "env:MODEL_KEY" }));
    let ran = run(&place, &[("MODEL_KEY", " \t")]);
    assert_eq!((ran.code, server.requests().len()), (2, 0), "{ran:#?}");
    assert!(ran.stderr.contains("the key of the model \"m\" is empty"), "{ran:#?}");
}

#[test]
fn the_id_of_a_model_stays_within_the_address_of_its_server() {
    for (id, path) in [
        ("models/gemini-x", Some("/v1/models/gemini-x:generateContent")),
        ("../../x", None),
        ("a/%2e%2e/b", Some("/v1/models/a/%252e%252e/b:generateContent")),
    ] {
        let server = Server::with(|_, _| Answer::json(&json!({ "candidates": [] })));
        let base = format!("{}/v1", server.url());
        let place = with_model(&server, json!({ "provider": "gemini", "base_url": base, "model": id }));
        let ran = run(&place, &[]);
        assert_ne!(ran.code, 0, "{ran:#?}");
        let asked = server.requests().into_iter().next().map(|request| request.path);
        assert_eq!(asked.as_deref(), path, "{id}: {ran:#?}");
    }
}

#[test]
fn the_address_of_a_model_comes_from_the_environment() {
    let server = Server::new(vec![says(complete(json!("done")))]);
    let place = with_model(&server, json!({ "base_url": "env:GATEWAY_URL" }));
    let unset = run(&place, &[]);
    assert!(unset.code == 2 && unset.stderr.contains("GATEWAY_URL"), "{unset:#?}");
    let wrong = run(&place, &[("GATEWAY_URL", "not/an/address-4471")]);
    assert!(wrong.code == 2 && !wrong.stderr.contains("4471"), "{wrong:#?}");
    let url = format!("{}/gate/v1?x=1", server.url());
    let ran = run(&place, &[("GATEWAY_URL", &url), ("OPENAI_API_KEY", "not-for-this-server")]);
    assert_eq!((ran.code, server.requests()[0].path.as_str()), (0, "/gate/v1/chat/completions?x=1"), "{ran:#?}");
    assert_eq!(sent(&server, "authorization"), [None]);
}

#[test]
fn the_secret_of_a_tool_comes_from_a_program_and_is_asked_for_again_when_it_is_refused() {
    let web = Server::with(|_, request| match request.header("authorization") {
        Some("Bearer tool-key-2") => Answer::json("{\"seen\":\"tool-key-1 and tool-key-2\"}"),
        _ => Answer::json("{\"error\":\"expired\"}").status(401),
    });
    let place = Place::new();
    let command = program(&place, "echo tool-key-$n");
    place.actions(
        &[web_action(&web)],
        &json!({ "allow": { "commands": ["sh"], "private_addresses": true }, "orgconfig": { "orders": command } }),
    );
    let observed = place
        .calls(&[json!({ "action": "look", "action_input": {} }), json!({ "action": "look", "action_input": {} })]);
    let said = json!({ "seen": "[secret orders] and [secret orders]" });
    for entry in &observed[..2] {
        assert_eq!((&entry["observation"], &entry["success"]), (&said, &json!(true)), "{entry:#}");
    }
    // The second call has the key that was asked for again.
    assert_eq!((web.requests().len(), started(&place)), (3, 2));
    let failing = program(&place, "exit 4");
    place.actions(
        &[web_action(&web)],
        &json!({ "allow": { "commands": ["sh"], "private_addresses": true }, "orgconfig": { "orders": failing } }),
    );
    let observed = place.calls(&[json!({ "action": "look", "action_input": {} })]);
    assert!(crate::common::observed(&observed[0]).contains("secret not available"), "{observed:#?}");
}

fn web_action(web: &Server) -> Value {
    json!({ "action_name": "look", "kind": "http", "description": "Looks.", "http_method": "GET",
        "url": format!("{}/look", web.url()), "headers": { "Authorization": "Bearer orgconfig:orders" } })
}
