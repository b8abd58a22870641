//! `/metrics`: what is counted is what happened.

use serde_json::{Value, json};

use crate::client::{Serving, place, scripted};
use crate::common::{complete, look, think};

/// The value of a series.
fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn runs_replies_calls_and_tokens_are_counted_and_strangers_make_no_series() {
    let ask = think("__pause_for_human__", json!({ "question": "?" }));
    let replies = [think("no_such_tool_0042", json!({})), ask, complete(json!("ok"))];
    let place = place(json!({}), &replies);
    let server = Serving::start(&place, &["--max-concurrent-runs", "1"]);
    let text = || String::from_utf8(server.get("/metrics").body).unwrap();
    assert_eq!(value(&text(), "loopctl_runs_started_total"), Some(0.0));
    let run = server.execute("", json!({ "loop": "test" })).json();
    let other = server.execute("", json!({ "loop": "test" })).json();
    let agent = |run: &Value| format!("/agents/{}", run["agent_run_id"].as_str().unwrap());
    assert_eq!(
        server.post(&format!("{}/resume", agent(&run)), &json!({ "answer": "a" })).json()["status"],
        "completed"
    );
    assert_eq!(server.send("DELETE", &agent(&other), &[], b"").status, 200);
    let exported = text();
    for (series, count) in [
        ("loopctl_runs_started_total", 2.0),
        ("loopctl_runs_ended_total{status=\"completed\",termination=\"complete\"}", 1.0),
        ("loopctl_runs_ended_total{status=\"cancelled\",termination=\"cancelled\"}", 1.0),
        ("loopctl_pauses_total{kind=\"human\"}", 2.0),
        ("loopctl_iterations_total", 5.0),
        ("loopctl_model_seconds_count", 5.0),
        ("loopctl_runs_driven", 0.0),
        ("loopctl_runs_queued", 0.0),
    ] {
        assert_eq!(value(&exported, series), Some(count), "{series}\n{exported}");
    }
    assert!(!exported.contains("no_such_tool_0042"), "a model makes no series: {exported}");
    assert!(exported.ends_with("# EOF\n"));
}

#[test]
fn calls_of_tools_are_counted_by_tool_and_outcome() {
    use crate::common::server::{Answer, Server};
    let tools = Server::new(vec![Answer::json(&json!(1)), Answer::json(&json!(2)).status(404)]);
    let replies = [look("a"), look("b"), complete(json!("ok"))];
    let place = place(json!({}), &replies);
    let mut document = crate::common::document(&json!({}));
    document["actions"][0]["url"] = json!(format!("{}/{{{{at}}}}", tools.url()));
    place.json("loop.json", &document);
    scripted(&place, &replies, json!({}));
    let server = Serving::start(&place, &[]);
    server.execute("", json!({ "loop": "test" }));
    let exported = String::from_utf8(server.get("/metrics").body).unwrap();
    for success in ["true", "false"] {
        let series = format!("loopctl_tool_seconds_count{{tool=\"look\",success=\"{success}\"}}");
        assert_eq!(value(&exported, &series), Some(1.0), "{exported}");
    }
}

#[test]
fn every_series_is_on_the_page_and_a_token_of_one_organisation_sees_none() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/serve.md")).unwrap();
    let place = place(json!({}), &[]);
    let token = |name: &str, more: &[&str]| {
        let made = place.call(&[&["token", name, "--scope", "read"], more].concat());
        let (begin, end) = (made.stderr.find('{').unwrap(), made.stderr.rfind('}').unwrap());
        (made.stdout.trim().to_owned(), serde_json::from_str::<Value>(&made.stderr[begin..=end]).unwrap())
    };
    let (ops, acme) = (token("ops", &[]), token("acme", &["--org", "acme"]));
    scripted(&place, &[], json!({ "serve": { "tokens": [ops.1, acme.1] } }));
    let server = Serving::start(&place, &[]);
    assert_eq!(server.get("/metrics").status, 401);
    let with = |token: &str| server.send("GET", "/metrics", &[("authorization", &format!("Bearer {token}"))], b"");
    assert_eq!(with(&acme.0).code(), "forbidden");
    let exported = String::from_utf8(with(&ops.0).body).unwrap();
    let names = exported.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    for (name, kind) in names {
        let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        assert!(page.contains(&format!("`{name}`")), "docs/serve.md: {name}");
    }
}
