//! `/metrics`: what is counted is what happened.

use loopctl::engine::outcome::{Status, Termination};
use loopctl::journal::{Append, Created, Journal, NewRun, StatusRecord, Ticket};
use serde_json::{Value, json};

use crate::common::{complete, look, think};
use crate::serve::client::{Serving, place, scripted};

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
        ("loopctl_runs_started_total{loop=\"test\"}", 2.0),
        ("loopctl_runs_ended_total{loop=\"test\",org=\"\",status=\"completed\",termination=\"complete\"}", 1.0),
        ("loopctl_runs_ended_total{loop=\"test\",org=\"\",status=\"cancelled\",termination=\"cancelled\"}", 1.0),
        ("loopctl_pauses_total{loop=\"test\",kind=\"human\"}", 2.0),
        ("loopctl_iterations_total{loop=\"test\"}", 5.0),
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
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/observe.md")).unwrap();
    let place = place(json!({}), &[]);
    let token = |name: &str, more: &[&str]| {
        let made = place.call(&[&["token", name, "--scope", "read"], more].concat());
        let (begin, end) = (made.stderr.find('{').unwrap(), made.stderr.rfind('}').unwrap());
        (made.stdout.trim().to_owned(), serde_json::from_str::<Value>(&made.stderr[begin..=end]).unwrap())
    };
    let (ops, acme) = (token("ops", &["--scope", "metrics"]), token("acme", &["--org", "acme"]));
    scripted(&place, &[], json!({ "serve": { "tokens": [ops.1, acme.1] } }));
    let server = Serving::start(&place, &[]);
    assert_eq!(server.get("/metrics").status, 401);
    let with = |token: &str| server.send("GET", "/metrics", &[("authorization", &format!("Bearer {token}"))], b"");
    assert_eq!(with(&acme.0).code(), "forbidden");
    let exported = with(&ops.0);
    assert_eq!(exported.status, 200, "{exported:?}");
    let exported = String::from_utf8(exported.body).unwrap();
    let names = exported.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    for (name, kind) in names {
        let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        assert!(page.contains(&format!("`{name}`")), "docs/observe.md: {name}");
    }
}

/// A run of the store that waits since so many milliseconds.
fn waits(journal: &dyn Journal, id: &str, name: &str, [now_ms, age_ms]: [i64; 2], termination: Termination) {
    let wait = |ticket: Ticket<()>| block(ticket).unwrap();
    let created = block(journal.create(NewRun {
        run_id: id.to_owned(),
        loop_name: name.to_owned(),
        session: None,
        org: None,
        token: None,
        callback_url: None,
        parent_run_id: id.contains('.').then(|| "parent".to_owned()),
        identity: id.to_owned(),
        start_key: None,
        at_ms: now_ms - age_ms,
        event: "{}".to_owned(),
        texts: Vec::new(),
        scheduled: None,
        status_record: None,
        search_text: None,
        title: None,
        audit: None,
        line: None,
    }));
    let Ok(Created::New(lease)) = created else { panic!("it is new: {created:?}") };
    let status = Status::Paused;
    let record = StatusRecord {
        status,
        termination: Some(termination),
        iterations: 1,
        at_ms: now_ms - age_ms,
        ..StatusRecord::new(Status::Running, 0)
    };
    let event = Append::new(id.to_owned(), lease.fence, 1, "{}".to_owned());
    wait(journal.append(Append { status_record: Some(record), ..event }));
    wait(journal.release(id, lease.fence));
}

fn block<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn waiting_runs_are_counted_by_loop_and_age_and_strangers_make_no_series() {
    const MINUTE: i64 = 60_000;
    let place = place(json!({}), &[think("__pause_for_human__", json!({ "question": "?" }))]);
    let path = place.path().join("runs.db");
    let journal = loopctl::journal::open("sqlite:runs.db", place.path()).unwrap();
    let now = loopctl::drive::clock::wall_ms();
    for (id, name, age) in [
        ("a", "test", 6 * MINUTE),
        ("b", "test", 59 * MINUTE - 30_000),
        ("c", "test", 2 * 60 * MINUTE),
        ("d", "test", 25 * 60 * MINUTE),
        ("e", "no_such_loop_0042", 25 * 60 * MINUTE),
        ("f", "test", -10 * 60 * MINUTE),
        ("parent.1.0", "test", 25 * 60 * MINUTE),
    ] {
        waits(&*journal, id, name, [now, age], Termination::Human);
    }
    waits(&*journal, "away", "test", [now, 25 * 60 * MINUTE], Termination::ModelError);
    drop(journal);
    assert!(path.is_file());
    let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    assert_eq!(run["status"], "paused", "{run:#}");
    let exported = String::from_utf8(server.get("/metrics").body).unwrap();
    for (name, age, count) in [
        // Now, and by a clock that was ahead.
        ("test", "under_5m", 2.0),
        ("test", "under_1h", 2.0),
        ("test", "under_1d", 1.0),
        ("test", "over_1d", 1.0),
        ("other", "under_5m", 0.0),
        ("other", "over_1d", 1.0),
    ] {
        let series = format!("loopctl_runs_waiting{{loop=\"{name}\",age=\"{age}\"}}");
        assert_eq!(value(&exported, &series), Some(count), "{series}\n{exported}");
    }
    assert!(!exported.contains("no_such_loop_0042"), "{exported}");
    let agent = format!("/agents/{}", run["agent_run_id"].as_str().unwrap());
    assert_eq!(server.send("DELETE", &agent, &[], b"").status, 200);
    let exported = String::from_utf8(server.get("/metrics").body).unwrap();
    assert_eq!(value(&exported, "loopctl_runs_waiting{loop=\"test\",age=\"under_5m\"}"), Some(1.0), "it waits no more");
}

#[test]
fn steps_and_items_are_counted_by_workflow_type_and_status() {
    use crate::common::server::{Answer, Server};
    let tools = Server::reading(|_, request| match request.json()["id"].as_u64() {
        Some(2) => Answer::json(&json!({})).status(500),
        _ => Answer::json(&json!({ "done": true })),
    });
    let settings = json!({ "failure_strategy": "continue_on_error" });
    let above = json!({ "greaterThan": ["@one", 0] });
    let steps = json!([crate::serve::workflows::act("@one", Some(above))]);
    let definition = json!({ "actions": [crate::serve::workflows::each(settings, steps)] });
    let place = crate::serve::workflows::place(&tools, definition);
    let server = Serving::start(&place, &[]);
    let run = server.post("/workflows/pay/execute", &json!({ "input": { "items": [0, 1, 2, 3] } })).json();
    assert_eq!(run["status"], "completed", "{run:#}");
    let exported = String::from_utf8(server.get("/metrics").body).unwrap();
    for (series, count) in [
        ("loopctl_steps_total{workflow=\"pay\",type=\"act\",status=\"completed\"}", 2.0),
        ("loopctl_steps_total{workflow=\"pay\",type=\"act\",status=\"failed\"}", 1.0),
        ("loopctl_steps_total{workflow=\"pay\",type=\"loop\",status=\"completed\"}", 1.0),
        ("loopctl_step_seconds_count{workflow=\"pay\",type=\"act\"}", 3.0),
        ("loopctl_items_total{workflow=\"pay\",status=\"completed\"}", 2.0),
        ("loopctl_items_total{workflow=\"pay\",status=\"failed\"}", 1.0),
        ("loopctl_items_total{workflow=\"pay\",status=\"skipped\"}", 1.0),
        ("loopctl_tool_seconds_count{tool=\"act\",success=\"true\"}", 2.0),
    ] {
        assert_eq!(value(&exported, series), Some(count), "{series}\n{exported}");
    }
}
