//! Spending limits at a server: a run that waits for room takes no slot and continues by itself, and the limits are shown.

use serde_json::{Value, json};

use crate::common::complete;
use crate::common::server::{Answer, Gate, Server};
use crate::serve::client::{Serving, place, scripted};
use crate::serve::reloads::{hangup, until};

const DAY_MS: u128 = 24 * 3_600_000;

#[test]
fn a_run_that_waits_for_room_takes_no_slot_and_continues_when_the_day_is_over() {
    let said = json!({ "text": complete(json!("done")).to_string(), "usage": { "input": 290, "output": 10 } });
    let place = place(json!({ "max_tokens": 100 }), &[]);
    let limit = json!({ "every": "day", "tokens": 1_000, "on_limit": "wait" });
    // Two that have the same words, and one whose day begins at another time.
    let (full, empty) = (
        json!({ "per": "loop", "every": "day", "tokens": 1_500 }),
        json!({ "loop": "test", "every": "day", "tokens": 99_000 }),
    );
    let berlin = json!({ "every": "day", "timezone": "Europe/Berlin", "tokens": 90_000 });
    scripted(&place, &[said], json!({ "limits": [limit, full, empty, berlin] }));
    // Noon.
    let now_ms = u128::try_from(loopctl::drive::clock::wall_ms()).unwrap();
    let noon_ms = DAY_MS + DAY_MS / 2 - now_ms % DAY_MS;
    place.file("clock", noon_ms.to_string());
    let clock = place.path().join("clock").to_str().unwrap().to_owned();
    let server = Serving::start_with(&place, &["--max-concurrent-runs", "1"], &[("LOOPCTL_CLOCK", &clock)]);
    let run = |words: &str| server.execute(words, json!({ "loop": "test" })).json();
    // 300 tokens each, and a request reserves more than 400.
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let started = run("?async=true");
        let id = started["agent_run_id"].as_str().unwrap().to_owned();
        let settled = server.settled(&id);
        if settled["status"] == "paused" {
            assert_eq!(settled["result"]["termination"], "spending_limit", "{settled:#}");
            waiting.push(id);
        }
    }
    assert_eq!(waiting.len(), 2, "two had room");
    let listed = server.get("/agents?status=paused").json();
    assert_eq!(listed["agents"][0]["waiting"], Value::Null, "no human is asked: {listed:#}");
    let report = server.get("/usage?journals=0&by=model").json();
    let limits = &report["limits"];
    assert_eq!((&limits[0]["of"], &limits[0]["every"]), (&json!("all runs"), &json!("a day")), "{report:#}");
    assert_eq!(
        (&limits[0]["tokens"], &limits[0]["reserved_tokens"], &limits[0]["used"]),
        (&json!(600), &json!(0), &json!(0.6)),
        "{report:#}"
    );
    let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
    let line = r#"loopctl_limit_used_ratio{of="all runs",every="a day"} 0.6"#;
    assert!(metrics.lines().any(|of| of == line), "{metrics}");
    for line in [
        "loopctl_limit_used_ratio{of=\"the loop `test`\",every=\"a day\"} 0.4",
        "loopctl_limit_used_ratio{of=\"all runs\",every=\"a day of Europe/Berlin\"} 0.00",
    ] {
        assert!(metrics.lines().any(|of| of.starts_with(line)), "{line}: {metrics}");
    }
    place.file("clock", (noon_ms + DAY_MS).to_string());
    for id in &waiting {
        while server.get(&format!("/agents/{id}/status")).json()["status"] != "completed" {
            crate::common::wait_poll_interval();
        }
    }
}

#[test]
fn steps_that_wait_for_room_take_no_slot_and_look_again_when_the_limit_is_raised() {
    let said = json!({ "text": "Yes.", "usage": { "input": 290, "output": 10 } });
    let place = place(json!({ "max_tokens": 100 }), &[]);
    let judge = json!({ "action_name": "judge", "kind": "llm", "description": "Judges.", "template": "Is it covered?",
        "parameters": { "type": "object" }, "max_tokens": 100 });
    place.json("actions/all.json", &json!([judge]));
    let step = json!({ "type": "judge", "properties": {} });
    place.json("workflows/w.json", &json!({ "name": "w", "definition": { "actions": [step] } }));
    let limited = |tokens: u64| {
        let limit = json!({ "loop": "w", "every": "month", "tokens": tokens, "on_limit": "wait" });
        scripted(&place, std::slice::from_ref(&said), json!({ "limits": [limit] }));
    };
    limited(350);
    let server = Serving::start(&place, &["--max-concurrent-runs", "1"]);
    let run = || {
        let started = server.execute("?async=true", json!({ "loop": "w" })).json();
        let id = started["agent_run_id"].as_str().unwrap().to_owned();
        (server.settled(&id), id)
    };
    let (first, _) = run();
    assert_eq!(first["status"], "completed", "{first:#}");
    let waiting = [run(), run()].map(|(run, id)| {
        assert_eq!((&run["status"], &run["result"]["termination"]), (&json!("paused"), &json!("spending_limit")));
        id
    });
    let bulk = json!({ "action": "retry", "loop": "w" });
    let dry = server.post("/agents/bulk", &crate::common::with(bulk.clone(), json!({ "dry_run": true }))).json();
    let done = server.post("/agents/bulk", &bulk).json();
    assert_eq!(dry["done"].as_array().map(Vec::len), Some(2), "{dry:#}");
    assert_eq!((&done["done"], &done["failed"]), (&dry["done"], &json!([])), "{done:#}");
    for id in &waiting {
        assert_eq!(server.settled(id)["status"], "paused", "there is no room");
    }
    limited(9_000);
    let limits = server.get("/usage?journals=0").json()["limits"][0]["most_tokens"].clone();
    assert_eq!(limits, 350);
    hangup(&server);
    for id in &waiting {
        while server.get(&format!("/agents/{id}/status")).json()["status"] != "completed" {
            crate::common::wait_poll_interval();
        }
    }
    // Before the next request too.
    limited(99_000);
    hangup(&server);
    until(|| server.get("/usage?journals=0").json()["limits"][0]["most_tokens"] == 99_000);
}

#[test]
fn a_cancelled_request_counts_and_a_tenant_reads_nothing_of_what_others_spent() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = Server::with(move |_, _| Answer::openai(&complete(json!("done")).to_string()).behind(&held));
    let place = place(json!({ "model": "main", "max_tokens": 1_000 }), &[]);
    let token = |name: &str| {
        let made =
            place.call(&["token", name, "--scope", "run", "--scope", "read", "--scope", "cancel", "--org", name]);
        let (begin, end) = (made.stderr.find('{').unwrap(), made.stderr.rfind('}').unwrap());
        let entry: Value = serde_json::from_str(&made.stderr[begin..=end]).unwrap();
        (format!("Bearer {}", made.stdout.trim()), entry)
    };
    let ((acme, of_acme), (beta, of_beta)) = (token("acme"), token("beta"));
    let main = json!({ "provider": "openai", "base_url": model.url(), "api_key": "env:PATH" });
    let limits = json!([{ "every": { "hours": 8784 }, "tokens": 2_500 }]);
    let serve = json!({ "tokens": [of_acme, of_beta] });
    place.json("loopctl.json", &json!({ "models": { "main": main }, "limits": limits, "serve": serve }));
    let server = Serving::start(&place, &[]);
    let body = json!({ "loop": "test" }).to_string();
    let run = |by: &str, query: &str| {
        server.send("POST", &format!("/agents/execute{query}"), &[("Authorization", by)], body.as_bytes()).json()
    };
    let started = run(&acme, "?async=true");
    model.wait_for(1);
    let at = format!("/agents/{}", started["agent_run_id"].as_str().unwrap());
    assert_eq!(server.send("DELETE", &at, &[("Authorization", &acme)], b"").status, 202);
    let status =
        || server.send("GET", &format!("{at}/status"), &[("Authorization", &acme)], b"").json()["status"].clone();
    while status() != "cancelled" {
        crate::common::wait_poll_interval();
    }
    gate.open();
    let refused = run(&beta, "");
    let error = &refused["result"]["error"];
    assert_eq!(error["code"], "spending_limit", "{refused:#}");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("the spending limit in 8784 hours for all runs is reached until 20"), "{message}");
    assert!(message.contains("Z: this call may spend ") && !message.contains("spent"), "{message}");
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn agent_requests_make_no_accounts_by_the_names_of_models() {
    let model = Server::with(|_, _| Answer::openai(&complete(json!("done")).to_string()));
    let place = place(json!({ "model": "main" }), &[]);
    let main = json!({ "provider": "openai", "base_url": format!("{}/v1", model.url()), "model": "m1" });
    place.json(
        "loopctl.json",
        &json!({ "models": { "main": main }, "allow": { "private_addresses": true },
            "limits": [{ "per": "model", "every": "month", "tokens": 50_000 }] }),
    );
    let base_url = format!("{}/v1", model.url());
    let env = [("OPENAI_BASE_URL", base_url.as_str()), ("OPENAI_API_KEY", "k")];
    let server = Serving::start_with(&place, &[], &env);
    assert_eq!(server.execute("", json!({ "loop": "test" })).json()["status"], "completed");
    let long = "x".repeat(3_000);
    for name in ["main", "gpt-one", "gpt-two", long.as_str()] {
        let config = json!({ "model": name, "max_tokens": 500 });
        let run = server.execute("", json!({ "objective": "Say hi.", "tools": [], "config": config })).json();
        assert_eq!(run["status"], "completed", "{run:#}");
    }
    let report = server.get("/usage?journals=0").json();
    let mut accounts: Vec<&str> =
        report["limits"].as_array().unwrap().iter().map(|limit| limit["of"].as_str().unwrap()).collect();
    accounts.sort_unstable();
    assert_eq!(accounts, ["the model `main`", "the model `other`"], "{report:#}");
}
