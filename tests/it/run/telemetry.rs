//! Spans: a local server plays the collector, and reads what it is sent.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, Ran, complete, look, think};

const SWITCH: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// A run with calls that succeed and fail, a retry, and a secret in every place.
fn place() -> Place {
    let place = Place::new();
    place.looped(&json!({})).json(
        "script.json",
        &json!({ "replies": [
            { "thought": "tell {\"password\":\"pw-thought\"}", "action": "act",
              "action_input": { "what": "visible-input", "api_key": "pw-input" } },
            { "http": 503 }, look("a"), think("nothing", json!({ "token": "pw-unknown" })), complete(json!("done"))
        ], "tools": {
            "act": [{ "seen": "visible-result", "password": "pw-result" }],
            "look": [{ "error": "refused: https://user:pw-error@host/?api_key=pw-url" }]
        } }),
    );
    place
}

fn run(place: &Place, env: &[(&str, &str)]) -> Ran {
    let args =
        ["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "r", "--store", "memory"];
    place.call_with(&args, env)
}

/// The spans that a collector got.
pub(super) fn spans(server: &Server) -> Vec<Span> {
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.method == "POST"));
    requests.iter().for_each(|request| assert!(["/v1/traces", "/v1/metrics"].contains(&request.path.as_str())));
    let read = |body: &[u8]| ExportTraceServiceRequest::decode(body).expect("a request of OTLP");
    requests
        .iter()
        .filter(|request| request.path == "/v1/traces")
        .flat_map(|request| read(&request.body).resource_spans)
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans)
        .collect()
}

pub(super) fn attributes(span: &Span) -> BTreeMap<String, Value> {
    let value = |value: &Any| match value {
        Any::StringValue(text) => json!(text),
        Any::IntValue(number) => json!(number),
        other => json!(format!("{other:?}")),
    };
    let pairs =
        span.attributes.iter().filter_map(|pair| Some((pair.key.clone(), value(pair.value.as_ref()?.value.as_ref()?))));
    pairs.collect()
}

pub(super) fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name} is not among {names:?}"))
}

#[test]
fn a_run_is_a_tree_of_spans_by_the_conventions() {
    let (place, server) = (place(), Server::with(|_, _| Answer::new("application/x-protobuf", "")));
    let ran = run(&place, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &server.url())]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let spans = spans(&server);
    let agent = named(&spans, "invoke_agent test");
    assert!(agent.parent_span_id.is_empty());
    let of_agent = attributes(agent);
    for (name, value) in [
        ("gen_ai.operation.name", "invoke_agent"),
        ("gen_ai.agent.name", "test"),
        ("gen_ai.conversation.id", "r"),
        ("loopctl.status", "completed"),
        ("loopctl.termination", "complete"),
    ] {
        assert_eq!(of_agent.get(name), Some(&json!(value)), "{name}");
    }
    let children: Vec<&Span> = spans.iter().filter(|span| span.span_id != agent.span_id).collect();
    for child in &children {
        assert_eq!((&child.parent_span_id, &child.trace_id), (&agent.span_id, &agent.trace_id), "{}", child.name);
        assert!(child.end_time_unix_nano >= child.start_time_unix_nano);
    }
    let chats: Vec<_> = children.iter().filter(|span| span.name.starts_with("chat")).collect();
    assert_eq!(chats.len(), 4);
    for chat in &chats {
        let attribute = attributes(chat);
        assert_eq!(attribute["gen_ai.operation.name"], "chat");
        assert!(attribute["gen_ai.usage.input_tokens"].as_i64().is_some_and(|tokens| tokens > 0), "{attribute:?}");
        assert!(attribute.contains_key("gen_ai.provider.name") && attribute.contains_key("gen_ai.request.model"));
    }
    assert_eq!(
        chats.iter().flat_map(|chat| &chat.events).map(|event| event.name.as_str()).collect::<Vec<_>>(),
        ["retry"]
    );
    let act = attributes(named(&spans, "execute_tool act"));
    assert_eq!((&act["gen_ai.tool.name"], &act["gen_ai.tool.call.id"]), (&json!("act"), &json!("1.0")));
    assert!(!act.contains_key("error.type"));
    let failed = named(&spans, "execute_tool look");
    assert!(attributes(failed).contains_key("error.type"));
    assert_eq!(failed.status.as_ref().map(|status| status.code), Some(2));
    // A call that the engine refused was none.
    assert_eq!(children.len(), 6);
}

#[test]
fn messages_are_exported_only_with_the_switch_and_secrets_never() {
    for on in [false, true] {
        let (place, server) = (place(), Server::with(|_, _| Answer::new("application/x-protobuf", "")));
        let url = server.url();
        let mut env = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str())];
        if on {
            env.push((SWITCH, "true"));
        }
        assert_eq!(run(&place, &env).code, 0);
        let sent: Vec<u8> = server.requests().into_iter().flat_map(|request| request.body).collect();
        let holds = |text: &str| sent.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(holds("execute_tool act"));
        for said in ["visible-input", "visible-result", "Find out what is wrong.", "I call look with"] {
            assert_eq!(holds(said), on, "{said}");
        }
        assert_eq!(holds("refused: https://user"), on, "a fault's own words");
        for secret in ["pw-thought", "pw-input", "pw-result", "pw-error", "pw-url", "pw-unknown"] {
            assert!(!holds(secret), "{secret} with the switch {on}");
        }
    }
}

#[test]
fn a_run_that_fails_says_so_in_its_span() {
    let server = Server::with(|_, _| Answer::new("application/x-protobuf", ""));
    let place = Place::new();
    place.looped(&json!({ "max_iterations": 1 })).script(&[look("a")]);
    assert_eq!(run(&place, &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &format!("{}/v1/traces", server.url()))]).code, 1);
    let spans = spans(&server);
    assert_eq!(attributes(named(&spans, "invoke_agent test"))["error.type"], "max_iterations");
}

#[test]
fn a_collector_that_fails_or_is_not_there_changes_nothing_of_a_run() {
    let refused = Server::with(|_, _| Answer::json("{}")).url();
    let failing = Server::with(|_, _| Answer::json("{\"error\": \"no\"}").status(500));
    let place = place();
    let without = run(&place, &[]);
    for endpoint in [refused.as_str(), &failing.url(), "no url at all", "http://127.0.0.1:1/\u{1b}[2J"] {
        let ran = run(&place, &[("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)]);
        assert_eq!(
            (ran.code, &ran.json()["result"]),
            (without.code, &without.json()["result"]),
            "{endpoint}: {ran:#?}"
        );
        assert!(!ran.stderr.contains('\u{1b}'));
    }
    assert!(!failing.requests().is_empty());
    let gate = Gate::default();
    let hanging = Server::with({
        let gate = gate.clone();
        move |_, _| Answer::json("{}").behind(&gate)
    });
    let ran = run(&place, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &hanging.url())]);
    assert_eq!(ran.code, without.code, "it is given up after a bound: {ran:#?}");
    gate.open();
    let off = run(&place, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &failing.url()), ("OTEL_SDK_DISABLED", "true")]);
    assert_eq!(off.code, 0);
}

#[test]
fn the_steps_of_a_workflow_are_spans_below_that_of_its_run() {
    let collector = Server::with(|_, _| Answer::json("{}"));
    let place = Place::new();
    let action = json!({ "action_name": "pay", "kind": "http", "description": "Pays.", "http_method": "POST",
        "url": "https://tools.example.com/pay", "parameters": { "type": "object" } });
    place.json("actions/pay.json", &json!([action]));
    let think = json!({ "id": "think", "type": "loop",
        "properties": { "mode": "react", "objective": "Think of {{one}}.", "result_key": "thought", "tools": [] } });
    let pay = json!({ "type": "pay", "properties": { "api_key": "pw-input", "of": "@one" } });
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
        "item_variable_name": "one", "failure_strategy": "continue_on_error", "max_failures": 5,
        "actions_to_execute": [think, pay] } });
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [each] } }));
    place.json(
        "script.json",
        &json!({ "replies": [complete(json!("fine"))], "tools": { "pay": [{ "ok": 1 }, { "error": "broken" }] } }),
    );
    let args = [
        "run",
        "loop.json",
        "--script",
        "script.json",
        "--run-id",
        "r",
        "--store",
        "memory",
        "--input",
        "items=[1,2]",
        "--output",
        "json",
    ];
    let ran = place.call_with(&args, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url())]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let spans = spans(&collector);
    let run = named(&spans, "invoke_workflow w");
    let mut names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    let expected = [
        "chat script",
        "chat script",
        "execute_tool pay",
        "execute_tool pay",
        "foreach each",
        "invoke_agent think",
        "invoke_agent think",
        "invoke_workflow w",
    ];
    assert_eq!(names, expected);
    let is_below = |span: &Span, above: &Span| span.parent_span_id == above.span_id && span.trace_id == above.trace_id;
    let thinks: Vec<&Span> = spans.iter().filter(|span| span.name == "invoke_agent think").collect();
    for span in &spans {
        let is_chat = span.name.starts_with("chat ");
        assert!(
            span.name == run.name || is_below(span, run) || is_chat && thinks.iter().any(|think| is_below(span, think)),
            "{span:#?}"
        );
    }
    let mut steps: Vec<_> = thinks.iter().map(|think| attributes(think)).collect();
    steps.sort_by_key(|think| think["gen_ai.conversation.id"].to_string());
    assert_eq!(
        (&steps[1]["gen_ai.conversation.id"], &steps[1]["loopctl.step.at"]),
        (&json!("r.each.1.think"), &json!("each.1.think"))
    );
    let each = attributes(named(&spans, "foreach each"));
    assert_eq!((&each["loopctl.items.completed"], &each["loopctl.items.failed"]), (&json!(1), &json!(1)));
    let calls: Vec<_> = spans.iter().filter(|span| span.name == "execute_tool pay").map(attributes).collect();
    let errors: Vec<_> = calls.iter().filter_map(|call| call.get("error.type")).collect();
    assert_eq!(errors, [&json!("call_failed")]);
    assert!(calls.iter().all(|call| !call.contains_key("gen_ai.tool.call.arguments")));
}
