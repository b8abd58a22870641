//! Traces over more than one run and process: sub-runs, requests to tools, traces of others, servers; and metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};

use super::subloops;
use super::telemetry::{attributes, named, spans};
use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think, web};
use crate::serve::client::{Serving, scripted};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn collector() -> Server {
    Server::with(|_, _| Answer::new("application/x-protobuf", ""))
}

fn parent() -> String {
    format!("00-{TRACE}-{CALLER}-01")
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The place of a span, as a request below it carries it.
fn carried(span: &Span) -> String {
    format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id))
}

/// A loop `test` whose tool `find` asks this server, and whose tool `show` prints what its program gets of the trace.
fn place(tools: &Server, headers: Value) -> Place {
    let place = Place::new();
    let find = web("find", &format!("{}/find", tools.url()), json!({ "headers": headers }));
    let show = json!({ "action_name": "show", "kind": "command", "description": "Shows.", "program": "printenv",
        "args": ["TRACEPARENT"] });
    let names: Vec<Value> = ["find", "show"].iter().map(|name| json!({ "type": "action", "name": name })).collect();
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "test", "actions": [find, show],
            "properties": { "mode": "react", "objective": "Find it.", "tools": names } }),
    );
    let replies = [think("find", json!({})), think("show", json!({})), complete(json!("done"))];
    scripted(&place, &replies, json!({ "allow": { "private_addresses": true, "commands": ["printenv"] } }));
    place
}

const RUN: [&str; 8] = ["run", "loop.json", "--output", "json", "--run-id", "r", "--store", "memory"];

#[test]
fn the_runs_and_calls_of_a_sub_run_are_spans_below_its_call() {
    let collector = collector();
    let place = subloops::place();
    subloops::script(
        &place,
        &[subloops::call(), complete(json!("done"))],
        &[think("look", json!({})), complete(json!("helped"))],
    );
    let args = [&RUN[..], &["--script", "script.json"]].concat();
    let ran = place.call_with(&args, &[(ENDPOINT, &collector.url())]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let spans = spans(&collector);
    let mut names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    let chat = "chat script";
    let expected = ["execute_tool helper", "execute_tool look", "invoke_agent boss", "invoke_agent helper"];
    assert_eq!(names, [&[chat; 4][..], &expected[..]].concat());
    let (call, helper) = (named(&spans, "execute_tool helper"), named(&spans, "invoke_agent helper"));
    assert_eq!(call.parent_span_id, named(&spans, "invoke_agent boss").span_id);
    assert_eq!(helper.parent_span_id, call.span_id);
    assert_eq!(named(&spans, "execute_tool look").parent_span_id, helper.span_id);
    assert_eq!(spans.iter().filter(|span| span.name == chat && span.parent_span_id == helper.span_id).count(), 2);
    assert!(spans.iter().all(|span| span.trace_id == call.trace_id));
    let of_helper = attributes(helper);
    assert_eq!(of_helper["loopctl.status"], "completed");
    assert!(of_helper["gen_ai.conversation.id"].as_str().is_some_and(|id| id.starts_with("r.")), "{of_helper:?}");
    // No model was asked: a script took its place.
    assert_eq!(of_helper["gen_ai.provider.name"], "script");
}

#[test]
fn a_run_is_a_step_of_the_trace_of_its_process_and_its_tools_are_steps_of_it() {
    let (collector, tools) = (collector(), Server::with(|_, _| Answer::json("{}")));
    let place = place(&tools, json!({}));
    let env = [(ENDPOINT, collector.url()), ("TRACEPARENT", parent()), ("TRACESTATE", "vendor=1".to_owned())];
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let ran = place.call_with(&RUN, &env);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let spans = spans(&collector);
    let run = named(&spans, "invoke_agent test");
    assert_eq!((hex(&run.trace_id), hex(&run.parent_span_id)), (TRACE.to_owned(), CALLER.to_owned()));
    let [asked] = &tools.requests()[..] else { panic!("one request") };
    assert_eq!(asked.header("traceparent"), Some(carried(named(&spans, "execute_tool find")).as_str()));
    assert_eq!(asked.header("tracestate"), Some("vendor=1"));
    let shown = carried(named(&spans, "execute_tool show"));
    assert!(ran.stdout.contains(&shown), "{shown} is not in {}", ran.stdout);
    // The provider's own id of the model, and not its name in the project.
    assert_eq!(attributes(named(&spans, "chat m"))["gen_ai.request.model"], "m");
}

#[test]
fn what_is_no_trace_context_starts_a_trace_and_a_declared_one_is_kept() {
    for wrong in ["", "no context", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-\u{e9}", "ff"] {
        let (collector, tools) = (collector(), Server::with(|_, _| Answer::json("{}")));
        let place = place(&tools, json!({ "traceparent": "mine" }));
        let ran = place.call_with(&RUN, &[(ENDPOINT, &collector.url()), ("TRACEPARENT", wrong)]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(named(&spans(&collector), "invoke_agent test").parent_span_id.is_empty(), "{wrong}");
        assert_eq!(tools.requests()[0].header("traceparent"), Some("mine"));
        assert_eq!(tools.requests()[0].header("tracestate"), None);
    }
}

#[test]
fn a_state_that_no_header_can_have_fails_no_call() {
    let (collector, tools) = (collector(), Server::with(|_, _| Answer::json("{}")));
    let place = place(&tools, json!({}));
    let within = parent();
    let env = [(ENDPOINT, collector.url()), ("TRACEPARENT", within), ("TRACESTATE", "vendor=a\tb".to_owned())];
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let ran = place.call_with(&RUN, &env);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let [asked] = &tools.requests()[..] else { panic!("one request: {ran:#?}") };
    assert!(asked.header("traceparent").is_some_and(|parent| parent.contains(TRACE)), "{asked:?}");
    assert_eq!(asked.header("tracestate"), None);
}

#[test]
fn without_a_collector_no_request_has_a_trace() {
    let tools = Server::with(|_, _| Answer::json("{}"));
    let place = place(&tools, json!({}));
    let ran = place.call_with(&RUN, &[("TRACEPARENT", &parent())]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(tools.requests()[0].header("traceparent"), None);
}

#[test]
fn a_model_is_named_by_its_own_id_also_after_a_resume_and_when_a_fallback_replies() {
    let collector = collector();
    let replies = AtomicUsize::new(0);
    let model = Server::reading(move |_, request| {
        if request.text().contains("\"first-1\"") {
            return Answer::json("{\"error\": {\"message\": \"no\"}}").status(503);
        }
        let said = match replies.fetch_add(usize::from(request.method == "POST"), Ordering::SeqCst) {
            0 => think("__pause_for_human__", json!({ "question": "Which one?" })),
            _ => complete(json!("done")),
        };
        Answer::json(&json!({ "choices": [{ "message": { "role": "assistant", "content": said.to_string() },
            "finish_reason": "stop" }], "usage": { "prompt_tokens": 7, "completion_tokens": 3 } }))
    });
    let place = Place::new();
    let of = |id: &str| json!({ "provider": "openai", "base_url": format!("{}/v1", model.url()), "model": id, "constrain": "off" });
    place.json(
        "loopctl.json",
        &json!({ "model": "main", "allow": { "private_addresses": true },
            "models": { "main": of("first-1"), "spare": of("second-1") } }),
    );
    let retry = json!({ "attempts": 2, "base_ms": 1, "max_ms": 1 });
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "test", "properties": { "mode": "react", "objective": "Find it.", "tools": [],
            "dialect": "json", "retry": retry, "fallback_models": ["spare"] } }),
    );
    let url = collector.url();
    let args = ["run", "loop.json", "--output", "json", "--run-id", "r"];
    let ran = place.call_with(&args, &[(ENDPOINT, &url)]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let ran = place.call_with(&["resume", "r", "--answer", "it", "--output", "json"], &[(ENDPOINT, &url)]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let spans = spans(&collector);
    let chats: Vec<_> = spans.iter().filter(|span| span.name.starts_with("chat")).collect();
    assert_eq!(chats.iter().map(|chat| chat.name.as_str()).collect::<Vec<_>>(), ["chat second-1"; 2]);
    for chat in chats {
        let attributes = attributes(chat);
        let facts = ["gen_ai.request.model", "gen_ai.provider.name"].map(|name| attributes[name].clone());
        assert_eq!(facts, [json!("second-1"), json!("openai")]);
        assert!(chat.events.iter().any(|event| event.name == "retry"), "{chat:#?}");
    }
    let runs: Vec<_> = spans.iter().filter(|span| span.name == "invoke_agent test").map(attributes).collect();
    assert_eq!(runs.iter().map(|run| run["loopctl.status"].clone()).collect::<Vec<_>>(), ["paused", "completed"]);
    assert!(runs.iter().all(|run| run["gen_ai.request.model"] == "first-1"), "{runs:#?}");
}

/// The sums of the histograms of tokens, by kind and model, and how many durations there are.
fn measured(collector: &Server) -> (BTreeMap<(String, String), f64>, u64) {
    let (mut tokens, mut durations) = (BTreeMap::new(), 0);
    let requests = collector.requests();
    let read = requests.iter().filter(|request| request.path == "/v1/metrics");
    let read = read.map(|request| ExportMetricsServiceRequest::decode(&*request.body).expect("a request of OTLP"));
    let metrics = read.flat_map(|request| request.resource_metrics).flat_map(|resource| resource.scope_metrics);
    for metric in metrics.flat_map(|scope| scope.metrics) {
        let Some(Data::Histogram(histogram)) = metric.data else { panic!("{}", metric.name) };
        for point in histogram.data_points {
            let of: BTreeMap<String, String> = point
                .attributes
                .iter()
                .map(|pair| (pair.key.clone(), format!("{:?}", pair.value.clone().unwrap().value.unwrap())))
                .collect();
            match metric.name.as_str() {
                "gen_ai.client.token.usage" => {
                    let key = (of["gen_ai.token.type"].clone(), of["gen_ai.request.model"].clone());
                    *tokens.entry(key).or_default() += point.sum.unwrap();
                }
                "gen_ai.client.operation.duration" => durations += point.count,
                other => panic!("{other}"),
            }
            assert!(of.contains_key("gen_ai.provider.name") && of.contains_key("gen_ai.operation.name"));
        }
    }
    (tokens, durations)
}

#[test]
fn tokens_and_durations_are_metrics_and_equal_what_the_run_used() {
    let (collector, tools) = (collector(), Server::with(|_, _| Answer::json("{}")));
    let place = place(&tools, json!({}));
    let ran = place.call_with(&RUN, &[(ENDPOINT, &collector.url())]);
    let result = ran.json();
    let (tokens, durations) = measured(&collector);
    assert_eq!(durations, 3);
    let sum: f64 = tokens.values().sum();
    let used = &result["usage"];
    let expected = ["input_tokens", "output_tokens"].iter().filter_map(|name| used[name].as_f64()).sum::<f64>();
    assert!(expected > 0.0, "{result:#}");
    assert!((sum - expected).abs() < 0.5, "{tokens:?}, and {used:#}");
}

#[test]
fn a_step_that_was_approved_has_the_span_of_its_call_in_the_part_that_makes_it() {
    let (collector, tools) = (collector(), Server::with(|_, _| Answer::json("{}")));
    let place = Place::new();
    let pay = web("pay", &format!("{}/pay", tools.url()), json!({ "http_method": "POST", "requires_approval": true }));
    place.json("actions/pay.json", &json!([pay]));
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
        "item_variable_name": "one", "actions_to_execute": [{ "id": "pay", "type": "pay", "properties": {} }] } });
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [each] } }));
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    let url = collector.url();
    let env = [(ENDPOINT, url.as_str())];
    let ran = place.call_with(&["run", "loop.json", "--run-id", "r", "--input", "items=[1]", "--output", "json"], &env);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let paused = spans(&collector);
    assert_eq!(attributes(named(&paused, "question each.0.pay"))["loopctl.status"], "paused");
    assert!(paused.iter().all(|span| !span.name.starts_with("execute_tool")), "nothing was called");
    let ran = place.call_with(&["resume", "r", "--at", "each.0.pay", "--approve", "--output", "json"], &env);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let all = spans(&collector);
    let resumed = &all[paused.len()..];
    let run = named(resumed, "invoke_workflow w");
    let call = named(resumed, "execute_tool pay");
    assert_eq!(attributes(call)["gen_ai.tool.call.id"], "each.0.pay");
    assert_eq!(tools.requests().len(), 1);
    for span in resumed {
        assert!(span.start_time_unix_nano >= run.start_time_unix_nano, "{} begins before its run", span.name);
        assert!(span.end_time_unix_nano <= run.end_time_unix_nano, "{} ends after its run", span.name);
    }
}

#[test]
fn a_fork_measures_the_requests_alone_that_it_made() {
    let (collector, tools) = (collector(), Server::with(|_, _| Answer::json("{}")));
    let place = place(&tools, json!({}));
    let ran = place.call(&["run", "loop.json", "--run-id", "r", "--output", "json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let ran = place.call_with(&["fork", "r", "--at", "2", "--output", "json"], &[(ENDPOINT, &collector.url())]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let chats = spans(&collector).iter().filter(|span| span.name.starts_with("chat")).count();
    assert_eq!(measured(&collector).1, u64::try_from(chats).unwrap());
    assert!(chats > 0 && chats < 3, "{chats}");
}

#[test]
fn settings_that_can_not_be_followed_are_reported_and_nothing_is_sent() {
    let tools = Server::with(|_, _| Answer::json("{}"));
    for (variable, value, said) in [
        ("OTEL_TRACES_EXPORTER", "console", "OTEL_TRACES_EXPORTER is `console`: write `otlp` or `none`"),
        ("OTEL_TRACES_SAMPLER", "bogus", "OTEL_TRACES_SAMPLER is `bogus`: write one of always_on"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0", "OTEL_METRIC_EXPORT_INTERVAL is 0"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem", "OTEL_EXPORTER_OTLP_CERTIFICATE is not supported"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://x", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is no address"),
        (
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
            "https://user:S3cretPw@collector example/",
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is no address",
        ),
    ] {
        let (collector, place) = (collector(), place(&tools, json!({})));
        let ran = place.call_with(&RUN, &[(ENDPOINT, &collector.url()), (variable, value)]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(ran.stderr.contains(&format!("warning: no spans are sent: {said}")), "{}", ran.stderr);
        assert!(!ran.stderr.contains("S3cretPw"));
        assert!(collector.requests().is_empty(), "{variable}");
    }
}

#[test]
fn what_is_sent_follows_no_redirect_to_another_collector() {
    let (other, tools) = (collector(), Server::with(|_, _| Answer::json("{}")));
    let to = other.url();
    let collector = Server::with(move |_, request| {
        Answer::json("{}").status(307).header("location", &format!("{to}{}", request.path))
    });
    let place = place(&tools, json!({}));
    let env = [(ENDPOINT, collector.url()), ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=S3cretHdr".to_owned())];
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(place.call_with(&RUN, &env).code, 0);
    assert!(!collector.requests().is_empty() && other.requests().is_empty());
}

#[test]
fn a_signal_that_is_switched_off_is_not_sent() {
    let tools = Server::with(|_, _| Answer::json("{}"));
    for (variable, value, sent) in [
        ("OTEL_TRACES_EXPORTER", "NONE", ["/v1/metrics"].as_slice()),
        ("OTEL_METRICS_EXPORTER", "none", &["/v1/traces"]),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", &[]),
    ] {
        let (collector, place) = (collector(), place(&tools, json!({})));
        let ran = place.call_with(&RUN, &[(ENDPOINT, &collector.url()), (variable, value)]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let paths: Vec<String> = collector.requests().into_iter().map(|request| request.path).collect();
        assert_eq!(paths, sent, "{variable}");
        assert_eq!(ran.stderr.contains("loopctl sends http/protobuf only"), value == "grpc", "{}", ran.stderr);
    }
}

#[test]
fn the_service_has_the_name_of_the_environment() {
    let tools = Server::with(|_, _| Answer::json("{}"));
    for (variable, value, name) in [
        ("OTEL_RESOURCE_ATTRIBUTES", "team=a,service.name=triage-bot", "triage-bot"),
        ("OTEL_SERVICE_NAME", "by-name", "by-name"),
        ("OTEL_RESOURCE_ATTRIBUTES", "team=a", "loopctl"),
    ] {
        let (collector, place) = (collector(), place(&tools, json!({})));
        place.call_with(&RUN, &[(ENDPOINT, &collector.url()), (variable, value)]);
        let requests = collector.requests();
        let traces = requests.iter().find(|request| request.path == "/v1/traces").expect("spans");
        let sent = ExportTraceServiceRequest::decode(&*traces.body).expect("a request of OTLP");
        let resource = format!("{:?}", sent.resource_spans[0].resource);
        assert!(resource.contains(&format!("StringValue(\"{name}\")")), "{variable}: {resource}");
    }
}

#[test]
fn a_server_sends_the_spans_of_its_runs_below_those_of_the_requests() {
    let (collector, tools) = (collector(), Server::with(|_, _| Answer::json("{}")));
    let place = place(&tools, json!({}));
    let server = Serving::start_with(&place, &["--store", "memory"], &[(ENDPOINT, &collector.url())]);
    let body = json!({ "loop": "test" }).to_string();
    let within = parent();
    let traced = server.send("POST", "/agents/execute", &[("traceparent", within.as_str())], body.as_bytes());
    assert_eq!(traced.json()["status"], "completed", "{traced:?}");
    let alone = server.send("POST", "/agents/execute", &[("traceparent", "no context")], body.as_bytes());
    assert_eq!(alone.json()["status"], "completed", "{alone:?}");
    // What is left is sent when the server stops.
    kill(Pid::from_raw(i32::try_from(server.pid()).unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(server.ended(), Some(0));
    let spans = spans(&collector);
    let of = |run: &Value| {
        let is_it =
            |span: &&Span| span.name == "invoke_agent test" && attributes(span)["gen_ai.conversation.id"] == *run;
        spans.iter().find(is_it).unwrap_or_else(|| panic!("{run} has no span"))
    };
    let first = of(&traced.json()["agent_run_id"]);
    assert_eq!((hex(&first.trace_id), hex(&first.parent_span_id)), (TRACE.to_owned(), CALLER.to_owned()));
    assert!(of(&alone.json()["agent_run_id"]).parent_span_id.is_empty());
    assert_eq!(spans.iter().filter(|span| span.name.starts_with("chat")).count(), 6);
    let carried: Vec<String> = spans.iter().filter(|span| span.name == "execute_tool find").map(carried).collect();
    for request in tools.requests() {
        assert!(carried.iter().any(|one| request.header("traceparent") == Some(one)), "{carried:?}");
    }
}
