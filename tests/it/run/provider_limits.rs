//! What providers say when a limit is reached: of the model's window, of an account, or of requests in some time.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::streams::{PROVIDERS, streamed};
use crate::common::{Place, Ran, answering, complete, look, with};

/// A loop whose model `m` is of this provider at this server, and is asked again after a millisecond.
fn place(server: &Server, provider: &str, properties: Value) -> Place {
    let retry = json!({ "retry": { "for_ms": 60_000, "base_ms": 1, "max_ms": 1 } });
    let place = answering(&with(retry, properties), "{\"seen\":1}");
    place.json("loopctl.json", &project(server, provider));
    place
}

fn project(server: &Server, provider: &str) -> Value {
    let model = json!({ "provider": provider, "base_url": format!("{}/v1", server.url()), "model": "fake-1" });
    json!({ "allow": { "commands": ["echo"] }, "model": "m", "models": { "m": model } })
}

/// A run, whose replies come in pieces or not, and its result.
fn run(place: &Place, in_pieces: bool) -> (Ran, Value) {
    let form: &[&str] = if in_pieces { &["--output", "ndjson", "--deltas"] } else { &["--output", "json"] };
    let ran = place.call(&[&["run", "loop.json", "--run-id", "r"], form].concat());
    let last = if in_pieces { ran.stdout.lines().last().expect("a line") } else { &ran.stdout };
    let result = serde_json::from_str(last).unwrap_or_else(|_| panic!("{ran:#?}"));
    (ran, result)
}

/// A whole reply of a provider, or one in pieces.
fn says(provider: &str, text: &str, in_pieces: bool) -> Answer {
    if in_pieces {
        return Answer::events(streamed(provider, &[text]));
    }
    Answer::json(&match provider {
        "openai" => json!({ "choices": [{ "index": 0, "message": { "content": text }, "finish_reason": "stop" }] }),
        "anthropic" => {
            json!({ "type": "message", "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn" })
        }
        "gemini" => json!({ "candidates": [{ "content": { "parts": [{ "text": text }] }, "finishReason": "STOP" }] }),
        _ => json!({ "status": "completed", "error": null,
            "output": [{ "type": "message", "content": [{ "type": "output_text", "text": text }] }] }),
    })
}

/// A stream of a provider that begins, and ends with this error.
fn broken(provider: &str, error: &Value) -> Answer {
    let error = match provider {
        "anthropic" => json!({ "type": "error", "error": error }),
        "openai-responses" => {
            json!({ "type": "response.failed", "response": { "status": "failed", "error": error, "output": [] } })
        }
        _ => json!({ "error": error }),
    };
    Answer::events([streamed(provider, &["Let me"]).remove(0), error.to_string()])
}

/// Refusals of a request that is too long: of this protocol, with this status, in the words of one provider.
fn too_long() -> Vec<(&'static str, u16, Value)> {
    let message = |words: &str| json!({ "error": { "message": words, "type": "invalid_request_error" } });
    let bad = |words: &str| ("openai", 400, message(words));
    vec![
        bad("Invalid request: Your request exceeded model token limit: 131072 (requested: 150000)"),
        (
            "openai",
            400,
            json!({ "code": "Client specified an invalid argument",
                "error": "This model's maximum prompt length is 131072 but the request contains 150000 tokens." }),
        ),
        (
            "openai",
            400,
            json!({ "error": { "message": "prompt token count of 150000 exceeds the limit of 128000",
                "code": "model_max_prompt_tokens_exceeded" } }),
        ),
        ("openai", 400, json!({ "error": { "code": "1261", "message": "Prompt 超长" } })),
        ("openai", 400, json!({ "error": "prompt too long; exceeded max context length by 4 tokens" })),
        ("openai", 500, message("the input length exceeds the context length")),
        (
            "openai",
            400,
            json!({ "error": "The number of tokens to keep from the initial prompt is greater than the context length. \
                Try to load the model with a larger context length, or provide a shorter input" }),
        ),
        (
            "openai",
            422,
            json!({ "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. Given: 30000 \
                `inputs` tokens and 4096 `max_new_tokens`", "error_type": "validation" }),
        ),
        (
            "openai",
            400,
            message("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]"),
        ),
        (
            "openai",
            400,
            json!({ "message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5310. \
                Try using a shorter prompt." }),
        ),
        (
            "openai",
            500,
            json!({ "error": { "message": "Requested input length 99009 exceeds maximum input length 8192" } }),
        ),
        ("openai", 400, message("Total tokens of image and text exceed max message tokens.")),
        ("openai", 400, message("Please reduce the length of the messages or completion.")),
        (
            "openai",
            413,
            json!({ "error": { "message": "Request too large for model `m` on tokens per minute (TPM): Limit 12000, \
                Requested 14137, please reduce your message size", "type": "tokens", "code": "rate_limit_exceeded" } }),
        ),
        (
            "openai",
            400,
            json!({ "error": { "message": "Provider returned error", "code": 400, "metadata": {
                "raw": "{\"error\":{\"message\":\"Input length 203743 exceeds the maximum length 202752\"}}" } } }),
        ),
        ("openai", 400, message("max_tokens must be at least 1, got -7584. (parameter=max_tokens, value=-7584)")),
        ("openai", 400, message("exceeded the model's maximum number of input tokens")),
        ("openai", 400, message("Total length of prompt and completion is over the model's context")),
        ("openai-responses", 400, message("Your input exceeds the context window of this model.")),
        ("anthropic", 400, message("prompt is too long: 208310 tokens > 200000 maximum")),
        (
            "anthropic",
            413,
            json!({ "type": "error", "error": { "type": "request_too_large", "message": "Request exceeds the maximum size" } }),
        ),
        (
            "gemini",
            400,
            json!({ "error": { "code": 400, "status": "INVALID_ARGUMENT",
                "message": "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)." } }),
        ),
    ]
}

/// A run that looks three times, is then refused so, and is answered.
fn refused_once(provider: &'static str, refusal: &Answer, in_pieces: bool) -> (Value, usize) {
    let refusal = refusal.clone();
    let server = Server::with(move |number, _| match number {
        0..=2 => says(provider, &look(&number.to_string()).to_string(), in_pieces),
        3 => refusal.clone(),
        _ => says(provider, &complete(json!("done")).to_string(), in_pieces),
    });
    let (ran, result) = run(&place(&server, provider, json!({ "history": { "summarize": false } })), in_pieces);
    assert_eq!(ran.code, 0, "{provider}: {ran:#?}");
    (result, server.requests().len())
}

#[test]
fn the_history_is_trimmed_whatever_words_a_server_has_for_a_full_window() {
    for (nth, (provider, status, body)) in too_long().into_iter().enumerate() {
        // Whole and in pieces in turn; at night, each in both.
        for in_pieces in
            [false, true].into_iter().filter(|pieces| crate::common::is_nightly() || *pieces == (nth % 2 == 0))
        {
            let (result, requests) = refused_once(provider, &Answer::json(&body).status(status), in_pieces);
            assert_eq!((&result["iterations"], requests), (&json!(4), 5), "{body}: {result:#}");
            assert!(result["metadata"]["messages_trimmed"].as_u64() > Some(0), "{body}: {result:#}");
        }
    }
    for provider in PROVIDERS {
        let error = json!({ "code": "context_length_exceeded", "message": "Your input exceeds the context window." });
        let (result, requests) = refused_once(provider, &broken(provider, &error), true);
        assert_eq!((&result["iterations"], requests), (&json!(4), 5), "{provider}: {result:#}");
        assert!(result["metadata"]["messages_trimmed"].as_u64() > Some(0), "{provider}: {result:#}");
    }
}

#[test]
fn another_refusal_of_something_too_large_stays_a_refusal() {
    for (provider, words, code) in [
        (
            "openai",
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
            "invalid_value",
        ),
        (
            "openai",
            "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got a \
             string with length 1500 instead.",
            "string_above_max_length",
        ),
        ("anthropic", "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens", "invalid"),
        ("gemini", "The name of the tool is too long: at most 64 letters", "INVALID_ARGUMENT"),
    ] {
        let refusal = json!({ "error": { "message": words, "code": code, "type": "invalid_request_error" } });
        let server = Server::with(move |number, _| match number {
            0 => says(provider, &look("a").to_string(), false),
            _ => Answer::json(&refusal).status(400),
        });
        let (ran, result) = run(&place(&server, provider, json!({})), false);
        assert_eq!((ran.code, &result["error"]["code"]), (1, &json!("model_refused")), "{words}: {ran:#?}");
        assert_eq!(result["error"]["retryable"], json!(false), "{words}");
        assert_eq!(result["metadata"]["messages_trimmed"], json!(0), "{words}: {result:#}");
    }
}

/// Refusals for an account with nothing left: of this protocol, with this status, in the words of one provider.
fn spent() -> Vec<(&'static str, u16, Value)> {
    let error = |code: &str, message: &str| json!({ "message": message, "type": code, "code": code });
    let quota = "You exceeded your current quota, please check your plan and billing details.";
    let a_day = json!({ "code": 429, "message": format!("{quota} Please retry in 38s."), "status": "RESOURCE_EXHAUSTED", "details": [
        { "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{ "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier" }] },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38s" } ] });
    vec![
        ("openai", 429, error("insufficient_quota", quota)),
        ("openai-responses", 429, error("insufficient_quota", quota)),
        ("openai", 400, error("billing_hard_limit_reached", "Billing hard limit has been reached")),
        ("openai", 402, error("invalid_request_error", "Insufficient Balance")),
        ("openai", 429, error("exceeded_current_quota_error", "Your account is suspended due to insufficient balance")),
        ("openai", 429, error("1113", "余额不足或无可用资源包,请充值。")),
        ("openai", 400, error("Arrearage", "Access denied, please make sure your account is in good standing.")),
        (
            "openai",
            429,
            json!("Your team has either used all available credits or reached its monthly spending limit."),
        ),
        (
            "openai",
            412,
            error("PRECONDITION_FAILED", "Account a is suspended, possibly due to failure to pay past invoices."),
        ),
        ("openai", 500, error("api_error", "insufficient balance (1008)")),
        (
            "anthropic",
            400,
            error("invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        ),
        ("anthropic", 400, error("invalid_request_error", "You have reached your specified API usage limits.")),
        ("gemini", 429, a_day),
        ("openai", 429, json!({ "message": "Monthly quota exceeded" })),
        ("openai", 429, json!("You are using a Trial key, which is limited to 1000 API calls / month.")),
        (
            "openai",
            429,
            json!({ "message": "you have used up your daily free allocation of 10,000 neurons", "code": 4006 }),
        ),
        (
            "gemini",
            429,
            json!({ "code": 429, "message": "Quota exceeded for quota metric 'Generate requests per day'",
                "status": "RESOURCE_EXHAUSTED" }),
        ),
    ]
}

#[test]
fn a_spent_quota_is_not_waited_for_and_the_run_goes_on_once_there_is_more() {
    for (provider, status, error) in spent() {
        for in_stream in [false, true] {
            let refusal = if in_stream {
                broken(provider, &error)
            } else {
                Answer::json(&json!({ "error": error })).status(status).header("retry-after", "1")
            };
            let server = Server::with(move |number, _| match number {
                0 => says(provider, &look("a").to_string(), in_stream),
                1 => refusal.clone(),
                _ => says(provider, &complete(json!("done")).to_string(), false),
            });
            let place = place(&server, provider, json!({}));
            let (ran, result) = run(&place, in_stream);
            assert_eq!((ran.code, server.requests().len()), (1, 2), "{error}: {ran:#?}");
            let failed = &result["error"];
            assert_eq!((&failed["code"], &failed["retryable"]), (&json!("model_refused"), &json!(true)), "{error}");
            let done = place.call(&["retry", "r", "--output", "json"]);
            assert_eq!((done.code, &done.json()["result"]["answer"]), (0, &json!("done")), "{error}: {done:#?}");
            assert_eq!(server.requests().len(), 3, "{error}: what was done is not done again");
        }
    }
}

#[test]
fn the_fallback_is_asked_at_once_when_the_quota_is_spent() {
    let unbounded = json!({ "for_ms": 60_000, "base_ms": 60_000, "max_ms": 60_000 });
    for (provider, status, error) in spent() {
        let refusal = Answer::json(&json!({ "error": error })).status(status);
        let first = Server::with(move |_, _| refusal.clone());
        let second = Server::with(|_, _| says("openai", &complete(json!("done")).to_string(), false));
        let place = place(&first, provider, json!({ "fallback_models": ["other"], "retry": unbounded }));
        let mut project = project(&first, provider);
        project["models"]["other"] = json!({ "provider": "openai", "base_url": second.url() });
        place.json("loopctl.json", &project);
        let (ran, result) = run(&place, false);
        assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("done")), "{error}: {ran:#?}");
        assert_eq!((first.requests().len(), second.requests().len()), (1, 1), "{error}");
    }
}

#[test]
fn a_run_whose_quota_is_spent_pauses_where_the_document_says_so() {
    let refusal = json!({ "error": { "code": "insufficient_quota", "message": "You exceeded your current quota." } });
    let server = Server::with(move |number, _| match number {
        0 => Answer::json(&refusal).status(429),
        _ => says("openai", &complete(json!("done")).to_string(), false),
    });
    let place = place(&server, "openai", json!({ "on_model_outage": "pause" }));
    let (ran, result) = run(&place, false);
    assert_eq!((ran.code, &result["termination"], server.requests().len()), (3, &json!("model_error"), 1), "{ran:#?}");
    let done = place.call(&["resume", "r", "--output", "json"]);
    assert_eq!((done.code, &done.json()["result"]["answer"]), (0, &json!("done")), "{done:#?}");
}

#[test]
fn a_step_of_a_workflow_does_not_wait_for_a_spent_quota_either() {
    for (provider, status, error) in spent() {
        let refusal = Answer::json(&json!({ "error": error })).status(status);
        let server =
            Server::with(move |number, _| if number == 0 { refusal.clone() } else { says(provider, "second", false) });
        let place = place(&server, provider, json!({}));
        let ask = json!({ "action_name": "ask", "kind": "llm", "description": "Asks.", "template": "Say it.",
            "retry": { "for_ms": 60_000, "base_ms": 1, "max_ms": 1 } });
        place.json("actions/ask.json", &json!([ask]));
        let definition = json!({ "actions": [{ "type": "ask", "properties": {} }] });
        place.json("loop.json", &json!({ "name": "w", "definition": definition }));
        let (ran, result) = run(&place, false);
        assert_eq!((ran.code, server.requests().len()), (1, 1), "{error}: {ran:#?}");
        assert_eq!(result["error"]["retryable"], json!(true), "{error}: {result:#}");
        let done = place.call(&["retry", "r", "--output", "json"]);
        assert_eq!((done.code, &done.json()["result"]["answer"]["ask"]), (0, &json!("second")), "{error}: {done:#?}");
    }
}

#[test]
fn a_refusal_for_content_that_comes_as_an_error_goes_to_the_fallback_at_once() {
    let cyber =
        json!({ "code": "cyber_policy_violation", "message": "This was flagged for possible cybersecurity risk." });
    let blocked = json!({ "type": "invalid_request_error", "message": "Output blocked by content filtering policy" });
    let wrong = json!({ "type": "invalid_request_error", "message": "messages.1: a tool_use block has no result" });
    let failed = json!({ "status": "failed", "error": cyber, "output": [] });
    let of_status = |error: Value| Answer::json(&json!({ "error": error })).status(400);
    let for_content = "refused the request for its content";
    for (provider, refusal, words) in [
        ("openai-responses", broken("openai-responses", &cyber), for_content),
        ("openai-responses", Answer::json(&failed), for_content),
        ("anthropic", broken("anthropic", &blocked), for_content),
        ("anthropic", of_status(blocked), for_content),
        (
            "openai",
            of_status(json!({ "code": "SensitiveContentDetected", "message": "Try other words." })),
            for_content,
        ),
        ("openai", of_status(json!({ "code": "1301", "message": "No." })), for_content),
        ("openai", of_status(json!({ "message": "Guardrail intervened" })), for_content),
        // The same request would be refused again, whatever it is for.
        ("anthropic", broken("anthropic", &wrong), "has no result"),
    ] {
        let refused = Server::with(move |_, _| refusal.clone());
        let place = place(&refused, provider, json!({}));
        let (ran, result) = run(&place, true);
        let error = &result["error"];
        assert_eq!((ran.code, refused.requests().len()), (1, 1), "{provider}: {ran:#?}");
        assert_eq!((&error["code"], &error["retryable"]), (&json!("model_refused"), &json!(false)), "{result:#}");
        assert!(error["message"].as_str().unwrap().contains(words), "{result:#}");
        let second = Server::with(|_, _| says("openai", &complete(json!("done")).to_string(), true));
        let mut project = project(&refused, provider);
        project["models"]["other"] = json!({ "provider": "openai", "base_url": second.url() });
        let place = self::place(&refused, provider, json!({ "fallback_models": ["other"] }));
        place.json("loopctl.json", &project);
        let (ran, result) = run(&place, true);
        assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("done")), "{provider}: {ran:#?}");
        assert_eq!((refused.requests().len(), second.requests().len()), (2, 1), "{provider}");
    }
}

/// A rate limit in the words of Gemini, with this delay.
fn exhausted(delay: &str) -> Value {
    json!({ "code": 429, "message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED", "details": [
        { "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{ "quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier" }] },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay } ] })
}

#[test]
fn a_rate_limit_is_waited_for_as_long_as_the_server_asks_for() {
    let limit = json!({ "error": { "message": "Rate limit reached", "code": "rate_limit_exceeded" } });
    let answer = |name: &str, value: &str| Answer::json(&limit).status(429).header(name, value);
    let in_words = json!({ "error": { "message": "Rate limit reached. Please try again in 23ms. Visit us.",
        "type": "requests", "code": "rate_limit_exceeded" } });
    for (provider, refusal) in [
        ("openai", answer("retry-after-ms", "23.7")),
        ("openai", answer("retry-after", "0.023s")),
        ("anthropic", answer("retry-after", "0.023")),
        ("openai", answer("x-ratelimit-reset-tokens", "23ms").header("x-ratelimit-remaining-tokens", "0")),
        ("openai", Answer::json(&in_words).status(429)),
        ("gemini", Answer::json(&json!({ "error": exhausted("0.023s") })).status(429)),
        ("gemini", Answer::json(&json!([{ "error": exhausted("0.023s") }])).status(429)),
        ("gemini", broken("gemini", &exhausted("0.023s"))),
        ("openai-responses", broken("openai-responses", &in_words["error"])),
    ] {
        let server = Server::with(move |number, _| match number {
            0 => refusal.clone(),
            _ => says(provider, &complete(json!("done")).to_string(), true),
        });
        let (ran, result) = run(&place(&server, provider, json!({})), true);
        assert_eq!((ran.code, server.requests().len()), (0, 2), "{provider}: {ran:#?}");
        assert_eq!(result["attempts"][0]["delay_ms"], json!(23), "{provider}: {result:#}");
    }
}

#[test]
fn no_wait_that_a_server_asks_for_lasts_longer_than_the_retries() {
    let limit = json!({ "error": { "message": "Rate limit reached", "code": "rate_limit_exceeded" } });
    for (name, value) in [
        ("retry-after", "86400"),
        ("retry-after", "-1"),
        ("retry-after", "NaN"),
        ("retry-after", "1e308"),
        ("retry-after", "0"),
        ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ("retry-after-ms", "1e300"),
        ("x-ratelimit-reset-requests", "9999-12-31T23:59:59Z"),
        ("x-ratelimit-reset", "99999999999999999999"),
        ("anthropic-ratelimit-tokens-reset", "9999-12-31T23:59:59Z"),
    ] {
        let answer = Answer::json(&limit).status(429).header(name, value);
        let server = Server::with(move |_, _| answer.clone());
        let place = place(&server, "openai", json!({ "retry": { "for_ms": 30, "base_ms": 10, "max_ms": 1_000 } }));
        let (ran, result) = run(&place, false);
        let error = &result["error"];
        assert_eq!((ran.code, &error["retryable"]), (1, &json!(true)), "{name}: {value}: {ran:#?}");
        let waits = result["attempts"].as_array().unwrap().iter().filter_map(|attempt| attempt["delay_ms"].as_u64());
        assert!(waits.sum::<u64>() <= 30, "{name}: {value}: {result:#}");
    }
}
