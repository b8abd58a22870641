//! A history that grows too long: what is trimmed, what stays, and who gets a notice.

use serde_json::{Value, json};

use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, Ran, answering, complete, look};

/// A loop whose tools answer with so many letters, and whose model is at a server.
fn place(properties: Value, letters: usize) -> Place {
    answering(&properties, &"x".repeat(letters))
}

fn run(place: &Place, server: &Server, output: &str) -> Ran {
    let args = ["run", "loop.json", "--output", output, "--run-id", "r", "--model", "m"];
    place.call_with(&args, &[("OPENAI_BASE_URL", &server.url())])
}

fn messages(request: &Request) -> Vec<Value> {
    request.json()["messages"].as_array().expect("messages").clone()
}

fn is_summary(request: &Request) -> bool {
    messages(request)[0]["content"].as_str().is_some_and(|text| text.starts_with("You write the notes of an agent"))
}

/// A reply whose tokens are a quarter of the bytes of its request, as a provider would count them.
fn counted(request: &Request, text: &str) -> Answer {
    let read: usize = messages(request).iter().map(|message| message["content"].as_str().map_or(0, str::len)).sum();
    Answer::json(&json!({
        "choices": [{ "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": read / 4, "completion_tokens": text.len() / 4 },
    }))
}

#[test]
fn cms_orchestrator_over_twenty_messages_the_system_prompt_and_the_last_ten_are_sent() {
    let server = Server::with(|number, _| {
        let reply = if number < 14 { look(&number.to_string()) } else { complete(json!("done")) };
        Answer::openai(&reply.to_string())
    });
    let place = place(json!({ "max_iterations": 15, "history": { "max_messages": 20, "keep_last": 10 } }), 3);
    let ran = run(&place, &server, "json");
    assert_eq!(ran.code, 0, "{ran:#?}");
    let sent: Vec<usize> = server.requests().iter().map(|request| messages(request).len()).collect();
    assert_eq!(sent, [2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 12, 14, 16, 18, 20]);
    let requests = server.requests();
    let (before, after) = (messages(&requests[9]), messages(&requests[10]));
    assert_eq!(before[0], after[0], "the system prompt stays");
    assert_eq!(before[12..], after[2..10], "the last ones are as they were");
    assert_eq!(after[2]["role"], "assistant");
    assert_eq!(ran.json()["metadata"]["messages_trimmed"], 10);
}

#[test]
fn a_history_over_context_tokens_is_summed_up_by_the_model_and_the_run_goes_on() {
    let server = Server::reading(|_, request| {
        if is_summary(request) {
            return counted(request, "Found so far: nothing but x.");
        }
        let asked = messages(request);
        let summed = asked[1]["content"].as_str().is_some_and(|text| text.contains("Found so far"));
        let reply = if summed { complete(json!("done")) } else { look(&asked.len().to_string()) };
        counted(request, &reply.to_string())
    });
    let place = place(json!({ "max_iterations": 30, "history": { "context_tokens": 3_000 } }), 3_000);
    let ran = run(&place, &server, "ndjson");
    assert_eq!(ran.code, 0, "{ran:#?}");
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let trimmed: Vec<&Value> = lines.iter().filter(|line| line["event"] == "history_trimmed").collect();
    assert_eq!(trimmed.len(), 1, "{trimmed:#?}");
    assert_eq!(trimmed[0]["summarized"], true);
    let result = lines.last().unwrap();
    assert_eq!(trimmed[0]["messages"], result["metadata"]["messages_trimmed"]);
    let requests = server.requests();
    let summaries = requests.iter().filter(|request| is_summary(request)).count();
    assert_eq!((summaries, requests.len()), (1, usize::try_from(result["iterations"].as_u64().unwrap()).unwrap() + 1));
    let input: usize = requests
        .iter()
        .map(|request| {
            messages(request).iter().map(|message| message["content"].as_str().map_or(0, str::len)).sum::<usize>() / 4
        })
        .sum();
    assert_eq!(result["usage"]["input_tokens"], json!(input), "the summary's tokens are counted too");
    for request in &requests {
        let roles: Vec<Value> = messages(request).iter().map(|message| message["role"].clone()).collect();
        assert_eq!(roles.iter().filter(|role| *role == "system").count(), 1);
        // The schema that constrains the reply is no part of what the model reads.
        let length = request.text().len() - request.json()["response_format"].to_string().len();
        assert!(length / 4 < 3_600, "no request is much longer than it may be: {length}");
    }
}

#[test]
fn notes_that_were_cut_off_are_marked_for_the_model_and_counted_in_the_result_and_the_trace() {
    let server = Server::reading(|_, request| {
        if is_summary(request) {
            return Answer::json(&json!({
                "choices": [{ "message": { "content": "Order 17 must NOT be" }, "finish_reason": "length" }],
            }));
        }
        let asked = messages(request);
        let is_marked = asked[1]["content"].as_str().is_some_and(|text| {
            text.contains("> Order 17 must NOT be\n[These notes were cut off here: what came after is not known.]")
        });
        let reply = if is_marked { complete(json!("done")) } else { look(&asked.len().to_string()) };
        counted(request, &reply.to_string())
    });
    let place = place(json!({ "max_iterations": 30, "history": { "context_tokens": 3_000 } }), 3_000);
    let ran = run(&place, &server, "ndjson");
    assert_eq!(ran.code, 0, "{ran:#?}");
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let trimmed: Vec<&Value> = lines.iter().filter(|line| line["event"] == "history_trimmed").collect();
    assert_eq!((trimmed.len(), &trimmed[0]["notes_fault"]), (1, &json!("cut_off")), "{trimmed:#?}");
    let metadata = &lines.last().unwrap()["metadata"];
    assert_eq!((&metadata["notes_cut_off"], metadata.get("notes_missing")), (&json!(1), None), "{metadata:#}");
    for format in ["text", "html"] {
        let trace = place.call(&["trace", "r", "--format", format]);
        assert!(trace.stdout.contains("notes of the trimmed history: 1 cut off"), "{trace:#?}");
    }
}

#[test]
fn a_run_that_was_cut_off_after_its_summary_does_not_sum_up_again() {
    let replies = |server: &Server, place: &Place| run(place, server, "json");
    let paused = json!({ "thought": "t", "action": "__pause_for_human__", "action_input": { "question": "Go on?" } });
    let server = Server::reading(move |_, request| {
        if is_summary(request) {
            return counted(request, "Found so far: nothing but x.");
        }
        let asked = messages(request);
        let first = asked[1]["content"].as_str().is_some_and(|text| text.contains("Found so far"));
        let answered =
            asked.iter().any(|message| message["content"].as_str().is_some_and(|text| text.contains("yes, go")));
        let reply = if answered {
            complete(json!("done"))
        } else if first {
            paused.clone()
        } else {
            look(&asked.len().to_string())
        };
        counted(request, &reply.to_string())
    });
    let place = place(json!({ "max_iterations": 30, "history": { "context_tokens": 3_000 } }), 3_000);
    assert_eq!(replies(&server, &place).code, 3);
    let before = server.requests().len();
    let args = ["resume", "r", "--answer", "yes, go on", "--output", "json"];
    let ran = place.call_with(&args, &[("OPENAI_BASE_URL", &server.url())]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let requests = server.requests();
    assert_eq!(requests.iter().filter(|request| is_summary(request)).count(), 1);
    let (last, next) = (messages(&requests[before - 1]), messages(&requests[before]));
    assert_eq!(next[..last.len()], last[..], "the resumed run says the same, notes and all");
}

#[test]
fn without_summing_up_the_oldest_iterations_go_and_nobody_is_asked() {
    let server = Server::reading(|number, request| {
        let reply = if number < 8 { look(&number.to_string()) } else { complete(json!("done")) };
        counted(request, &reply.to_string())
    });
    let history = json!({ "context_tokens": 3_000, "summarize": false });
    let place = place(json!({ "max_iterations": 30, "history": history }), 3_000);
    let ran = run(&place, &server, "json");
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(server.requests().len(), 9);
    assert!(ran.json()["metadata"]["messages_trimmed"].as_u64() > Some(3), "{ran:#?}");
}

#[test]
fn a_provider_that_says_context_length_exceeded_is_asked_again_with_less() {
    let refusal = r#"{"error":{"message":"maximum context length is 1000 tokens","code":"context_length_exceeded"}}"#;
    let server = Server::reading(move |_, request| {
        if is_summary(request) {
            return counted(request, "Notes: all quiet.");
        }
        match messages(request).len() {
            8 => Answer::json(refusal).status(400),
            4 | 6 if request.text().contains("Notes: all quiet.") => {
                Answer::openai(&complete(json!("done")).to_string())
            }
            count => Answer::openai(&look(&count.to_string()).to_string()),
        }
    });
    let place = place(json!({}), 500);
    let ran = run(&place, &server, "json");
    assert_eq!((ran.code, &ran.json()["termination"]), (0, &json!("complete")), "{ran:#?}");
    let stubborn = Server::reading(move |_, request| match messages(request).len() {
        count if count < 8 && !is_summary(request) && !request.text().contains("not shown any more") => {
            Answer::openai(&look(&count.to_string()).to_string())
        }
        _ => Answer::json(refusal).status(400),
    });
    let place = self::place(json!({}), 500);
    let ran = run(&place, &stubborn, "json");
    assert_eq!((ran.code, &ran.json()["termination"]), (1, &json!("context")), "once, and no more: {ran:#?}");
}

#[test]
fn deep_research_at_its_token_limit_one_forced_last_answer() {
    let place = Place::new();
    place.looped(&json!({ "max_iterations": 100, "on_limit": "answer", "history": { "context_tokens": 110_000 } }));
    let full = json!({ "text": look("b").to_string(), "usage": { "input": 111_000, "output": 10 } });
    place.script(&[look("a"), full, complete(json!("the best that is known"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, &result["termination"], &result["limit"]), (0, &json!("forced_answer"), &json!("context")));
}

#[test]
fn a_scripted_run_sums_up_from_its_script_and_resumes_where_it_was() {
    let place = Place::new();
    place.looped(&json!({ "history": { "max_messages": 5, "keep_last": 2, "summarize": true } }));
    let ask = json!({ "thought": "t", "action": "__pause_for_human__", "action_input": { "question": "Go on?" } });
    place.script(&[
        look("a"),
        look("b"),
        json!("Notes: a and b."),
        ask,
        json!("Notes: asked."),
        complete(json!("done")),
    ]);
    let args = ["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "r"];
    let ran = place.call(&args);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let args = ["resume", "r", "--answer", "yes", "--script", "script.json", "--output", "json"];
    let ran = place.call(&args);
    assert_eq!((ran.code, &ran.json()["result"]["answer"]), (0, &json!("done")), "{ran:#?}");
}
