//! Native tool calls against a server: several a turn, and what providers do differently.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::dialects::{Says, answers, calls, comparable, message_of};
use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, Ran, observed, web};

/// A loop whose model and tools are at one server.
struct Wired {
    place: Place,
    server: Arc<Server>,
}

/// Model requests go to `model` with their number, all others to `tool`.
fn wired(
    properties: &Value,
    names: &[&str],
    model: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
    tool: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> Wired {
    let asked = AtomicUsize::new(0);
    let server = Server::with(move |_, request| {
        if request.path.starts_with("/v1") {
            model(asked.fetch_add(1, Ordering::SeqCst), request)
        } else {
            tool(request)
        }
    });
    let place = Place::new();
    let parameters = json!({ "type": "object", "properties": { "n": {} } });
    let action = |(at, name): (usize, &&str)| {
        web(name, &format!("{}/tool/{at}", server.url()), json!({ "parameters": parameters }))
    };
    let actions: Vec<Value> = names.iter().enumerate().map(action).collect();
    let model = json!({ "provider": "openai", "base_url": format!("{}/v1", server.url()) });
    place.actions(&actions, &json!({ "allow": { "private_addresses": true }, "models": { "m": model }, "model": "m" }));
    let path = place.path().join("loop.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("JSON");
    document["properties"]["dialect"] = json!("tool_calls");
    for (name, value) in properties.as_object().expect("an object") {
        document["properties"][name] = value.clone();
    }
    place.json("loop.json", &document);
    Wired { place, server: Arc::new(server) }
}

impl Wired {
    fn run(&self) -> Value {
        let ran = self.place.call(&["run", "loop.json", "--output", "json", "--store", "memory"]);
        assert!(!ran.stdout.is_empty(), "{ran:#?}");
        ran.json()
    }

    fn asked(&self) -> Vec<Value> {
        let requests = self.server.requests().into_iter();
        requests.filter(|request| request.path.starts_with("/v1")).map(|request| request.json()).collect()
    }

    fn called(&self) -> usize {
        self.server.requests().iter().filter(|request| request.path.starts_with("/tool")).count()
    }
}

fn plays(says: Vec<Says>) -> impl Fn(usize, &Request) -> Answer + Send + Sync {
    move |turn, request| {
        says.get(turn).map_or_else(|| answers("", "done"), Clone::clone).reply("tool_calls", request, turn)
    }
}

/// A tool that answers no call before `calls` of them have come. The bound in time is for a run that is wrong.
fn after_all(calls: usize) -> impl Fn(&Request) -> Answer + Send + Sync {
    let gate = (Mutex::new(0_usize), Condvar::new());
    move |request| {
        let (count, came) = (&gate.0, &gate.1);
        let mut count = count.lock().expect("the lock");
        *count += 1;
        came.notify_all();
        let (count, late) =
            came.wait_timeout_while(count, Duration::from_secs(20), |count| *count < calls).expect("the lock");
        drop(count);
        if late.timed_out() { Answer::json("{}").status(500) } else { Answer::json(&json!({ "n": given(request) })) }
    }
}

/// What a tool was given as `n`, in its query.
fn given(request: &Request) -> String {
    request.path.split_once("n=").map(|(_, n)| n.to_owned()).unwrap_or_default()
}

#[test]
fn eight_calls_of_a_turn_are_all_under_way_at_once_and_reported_in_their_order() {
    let eight: Vec<(&str, Value)> = (0..8).map(|n| ("look", json!({ "n": n }))).collect();
    let wired = wired(&json!({}), &["look"], plays(vec![calls("All.", &eight)]), after_all(8));
    let result = wired.run();
    assert_eq!(result["result"]["answer"], "done", "{result:#}");
    let trace = result["trace"].as_array().expect("a trace");
    for (n, entry) in trace.iter().take(8).enumerate() {
        assert_eq!((&entry["iteration"], &entry["observation"]["n"]), (&json!(1), &json!(n.to_string())), "{entry:#}");
    }
    let messages = wired.asked()[1]["messages"].as_array().expect("messages").clone();
    let tools: Vec<&Value> = messages.iter().filter(|message| message["role"] == "tool").collect();
    for (n, message) in tools.iter().enumerate() {
        assert_eq!(message["tool_call_id"], format!("id_0_{n}"));
        assert_eq!(message["content"], format!("{{\"n\":\"{n}\"}}"));
    }
    assert_eq!(tools.len(), 8);
}

#[test]
fn one_that_fails_touches_no_other_and_too_many_are_not_made() {
    let three = [("look", json!({ "n": 1 })), ("find", json!({})), ("lok", json!({})), ("look", json!({ "n": 2 }))];
    let four: Vec<(&str, Value)> = (0..5).map(|n| ("look", json!({ "n": n }))).collect();
    let tool = |request: &Request| {
        if request.path.starts_with("/tool/1") { Answer::json("{}").status(503) } else { Answer::json("{\"ok\":true}") }
    };
    let says = vec![calls("Some.", &three), calls("Too many.", &four)];
    let wired = wired(&json!({ "max_tool_calls_per_turn": 4 }), &["look", "find"], plays(says), tool);
    let result = wired.run();
    let trace = result["trace"].as_array().expect("a trace");
    let successes: Vec<bool> = trace.iter().map(|entry| entry["success"] == true).collect();
    assert_eq!(successes, [true, false, false, true, false, true], "{result:#}");
    assert!(observed(&trace[1]).contains("503") && observed(&trace[2]).contains("look"), "{result:#}");
    assert!(observed(&trace[4]).contains("at most 4"), "{result:#}");
    assert_eq!((wired.called(), &result["result"]["answer"]), (3, &json!("done")));
}

#[test]
fn a_request_asks_for_one_call_a_turn_exactly_when_the_loop_wants_one() {
    let field = |properties: Value| {
        let wired = wired(&properties, &["look"], plays(vec![]), |_| Answer::json("{}"));
        assert_eq!(wired.run()["result"]["answer"], "done");
        wired.asked()[0].get("parallel_tool_calls").cloned()
    };
    for dialect in ["tool_calls", "final_answer"] {
        let says = |turn: usize, request: &Request| answers("", "done").reply("final_answer", request, turn);
        let one = json!({ "max_tool_calls_per_turn": 1, "dialect": dialect });
        let wired = wired(&one, &["look"], says, |_| Answer::json("{}"));
        drop(wired.run());
        assert_eq!(wired.asked()[0]["parallel_tool_calls"], false, "{dialect}");
    }
    assert_eq!(field(json!({ "max_tool_calls_per_turn": 1 })), Some(json!(false)));
    assert_eq!(field(json!({ "max_tool_calls_per_turn": 2 })), None);
    assert_eq!(field(json!({})), None);
}

#[test]
fn a_name_that_the_provider_does_not_take_goes_there_and_comes_back() {
    let says = vec![calls("I find.", &[("crm_find_2", json!({ "n": 1 })), ("crm_find", json!({}))])];
    let wired = wired(&json!({}), &["crm/find", "crm_find"], plays(says), |request| {
        Answer::json(&json!({ "path": request.path.split('?').next() }))
    });
    let result = wired.run();
    let trace = comparable(&result["trace"]);
    assert_eq!((&trace[0]["action"], &trace[0]["observation"]["path"]), (&json!("crm/find"), &json!("/tool/0")));
    assert_eq!((&trace[1]["action"], &trace[1]["observation"]["path"]), (&json!("crm_find"), &json!("/tool/1")));
    let asked = wired.asked();
    let tools = asked[0]["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().map(|tool| tool["function"]["name"].as_str().expect("a name")).collect();
    assert_eq!(names[..3], ["crm_find_2", "crm_find", "__complete__"]);
    assert_eq!(tools[0]["function"]["description"], "crm/find: Asks.");
    let back = asked[1]["messages"].as_array().expect("messages").iter().find(|said| said["role"] == "assistant");
    assert_eq!(back.expect("a message")["tool_calls"][0]["function"]["name"], "crm_find_2");
    let prompt = wired.place.call(&["prompt", "loop.json"]);
    assert!(prompt.stdout.contains("crm_find_2"), "{prompt:#?}");
}

#[test]
fn what_servers_write_otherwise_is_survived() {
    let function = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let messages = [
        // Arguments as an object, no ids, null as text.
        json!({ "content": null, "tool_calls": [{ "function": function("look", json!({ "n": 1 })) },
            { "function": function("look", json!("{\"n\": 2}")) }] }),
        // Doubled ids, empty text, one that can't be read.
        json!({ "content": "", "tool_calls": [{ "id": "x", "function": function("look", json!("")) },
            { "id": "x", "function": function("look", json!("{\"n\": ")) }] }),
        // An id of an earlier turn.
        json!({ "content": "Again.", "tool_calls": [{ "id": "x", "function": function("look", json!("{\"n\":1E400}")) }] }),
        json!({ "content": "done", "tool_calls": null }),
    ];
    let model = move |turn: usize, _: &Request| message_of(&messages[turn.min(3)]);
    let wired = wired(&json!({}), &["look"], model, |request| Answer::json(&json!({ "n": given(request) })));
    let result = wired.run();
    assert_eq!((&result["result"]["answer"], wired.called()), (&json!("done"), 4), "{result:#}");
    let trace = comparable(&result["trace"]);
    let seen: Vec<&Value> = trace.iter().map(|entry| &entry["observation"]["n"]).collect();
    assert_eq!(seen[..3], [&json!("1"), &json!("2"), &json!("")]);
    assert_eq!((&trace[3]["success"], &trace[3]["action_input"]), (&json!(false), &json!("{\"n\": ")));
    assert_eq!(seen[4], "1E400");
    let last = wired.asked().pop().expect("a request");
    let mut ids = Vec::new();
    for message in last["messages"].as_array().expect("messages") {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            ids.push(call["id"].as_str().expect("an id").to_owned());
            let arguments = call["function"]["arguments"].as_str().expect("a text");
            assert!(serde_json::from_str::<serde_json::Map<String, Value>>(arguments).is_ok(), "{arguments}");
        }
    }
    assert_eq!(ids, ["c00001000", "c00001001", "x", "c00002001", "c00003000"]);
}

#[test]
fn a_stream_of_calls_makes_the_same_run() {
    let piece =
        |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }).to_string();
    let function = |index: u64, name: Option<&str>, arguments: &str| {
        let mut call = json!({ "index": index, "function": { "arguments": arguments } });
        if let Some(name) = name {
            call["id"] = json!(format!("id{index}"));
            call["function"]["name"] = json!(name);
        }
        json!({ "tool_calls": [call] })
    };
    let model = move |turn: usize, _: &Request| {
        let reason = if turn == 0 { "tool_calls" } else { "stop" };
        let end = json!({ "choices": [{ "delta": {}, "finish_reason": reason }] }).to_string();
        let deltas = match turn {
            0 => vec![
                json!({ "role": "assistant", "content": "Both." }),
                function(0, Some("look"), ""),
                function(1, Some("look"), "{\"n"),
                function(0, None, "{\"n\":1}"),
                function(1, None, "\":2}"),
            ],
            _ => vec![json!({ "content": "do" }), json!({ "content": "ne" })],
        };
        Answer::events(deltas.into_iter().map(piece).chain([end, "[DONE]".to_owned()]))
    };
    let wired = wired(&json!({}), &["look"], model, |request| Answer::json(&json!({ "n": given(request) })));
    let result = wired.run();
    let trace = comparable(&result["trace"]);
    assert_eq!((&trace[0]["thought"], &trace[0]["observation"]["n"]), (&json!("Both."), &json!("1")), "{result:#}");
    assert_eq!((&trace[1]["observation"]["n"], &result["result"]["answer"]), (&json!("2"), &json!("done")));
}

#[test]
#[cfg(all(unix, debug_assertions))]
fn a_kill_in_the_middle_of_a_turn_repeats_only_what_was_not_finished() {
    let three: Vec<(&str, Value)> = (0..3).map(|n| ("look", json!({ "n": n }))).collect();
    // Event 0 began the run, 1 is the reply, 2 to 4 are what came of the calls.
    for (event, repeated) in [(2, 2), (3, 1), (4, 0)] {
        let says = plays(vec![calls("All.", &three)]);
        // A resumed process asks the model from where it was: the number of requests goes on.
        // All three have come before the process dies: none of its requests is counted for the one that resumes.
        let wired = wired(&json!({}), &["look"], says, after_all(3));
        let start = ["run", "loop.json", "--output", "json", "--run-id", "r"];
        let killed: Ran = wired.place.call_with(&start, &[("LOOPCTL_FAIL", &format!("journal:{event}:after-sync"))]);
        assert_eq!(killed.code, -1, "{killed:#?}");
        let before = wired.called();
        let ran = wired.place.call(&["resume", "r", "--output", "json"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_eq!(wired.called() - before, repeated, "event {event}");
        let result = ran.json();
        for (n, entry) in result["trace"].as_array().expect("a trace").iter().take(3).enumerate() {
            assert_eq!(entry["observation"]["n"], n.to_string(), "{result:#}");
        }
    }
}
