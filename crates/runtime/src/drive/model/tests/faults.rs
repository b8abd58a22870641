//! What goes wrong: statuses, connections, sizes; retries and fallbacks.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::http::MAX_ANSWER;
use super::*;
use loopctl_engine::event::ModelFaultCode;

fn error(status: u16, body: &str) -> Answer {
    Answer::json(body).status(status)
}

async fn fault_of(answer: Answer, attempts: u32) -> (ModelFault, usize) {
    let server = Server::with(move |_, _| answer.clone());
    let fault = greet(&openai(&server), attempts).await.0.unwrap_err();
    (fault, server.requests().len())
}

#[tokio::test]
async fn transient_statuses_are_tried_as_often_as_said() {
    for status in [408, 409, 424, 425, 429, 498, 500, 502, 503, 504, 529] {
        let (fault, requests) = fault_of(error(status, "{}"), 3).await;
        assert_eq!((fault.code, fault.retryable), (ModelFaultCode::ModelUnreachable, true), "{status}");
        assert_eq!((fault.attempts, requests), (3, 3), "{status}");
        assert!(fault.message.starts_with(&format!("http {status} from 127.0.0.1:")), "{}", fault.message);
    }
}

#[tokio::test]
async fn refusals_are_not_tried_again() {
    for status in [301, 307, 400, 401, 402, 403, 404, 405, 422, 451] {
        let answer =
            error(status, r#"{"error":{"message":"no such thing"}}"#).header("location", "http://127.0.0.1:9/");
        let (fault, requests) = fault_of(answer, 3).await;
        // A key lies outside of the run: once it is renewed, the run may be retried.
        let wants_a_key = (401..=403).contains(&status);
        assert_eq!((fault.code, fault.retryable), (ModelFaultCode::ModelRefused, wants_a_key), "{status}");
        assert_eq!((fault.attempts, requests), (1, 1), "{status}");
        assert!(fault.message.contains("no such thing"), "{}", fault.message);
    }
}

#[tokio::test]
async fn a_key_that_is_refused_in_other_words_than_its_status_lies_outside_of_the_run_too() {
    let stream = |error: &str| {
        let piece = r#"data: {"choices":[{"index":0,"delta":{"content":"Let me"}}]}"#;
        Answer::json(&format!("{piece}\n\ndata: {{\"error\":{error}}}\n\n")).header("content-type", "text/event-stream")
    };
    for answer in [
        error(
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT",
                "details":[{"reason":"API_KEY_INVALID"}]}}"#,
        ),
        error(400, r#"{"error":{"code":400,"message":"API key expired. Please renew the API key."}}"#),
        error(400, r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***12."}"#),
        error(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
        ),
        // A plan that lacks the long window is a matter of the key, not of the request's length.
        error(403, r#"{"error":{"message":"this key may not use the long context window"}}"#),
        error(200, r#"{"error":{"type":"authentication_error","message":"expired"}}"#),
        error(200, r#"{"error":{"code":402,"message":"Insufficient credits"}}"#),
        stream(r#"{"code":401,"message":"User not found."}"#),
    ] {
        let (fault, requests) = fault_of(answer, 3).await;
        assert_eq!((fault.code, fault.retryable), (ModelFaultCode::ModelRefused, true), "{}", fault.message);
        assert_eq!((fault.attempts, requests), (1, 1), "{}", fault.message);
    }
    let other =
        r#"{"error":{"message":"The model `x` does not exist or you have no access","code":"model_not_found"}}"#;
    let (fault, _) = fault_of(error(404, other), 3).await;
    assert_eq!((fault.code, fault.retryable), (ModelFaultCode::ModelRefused, false));
}

#[tokio::test]
async fn models_that_fail_may_answer_later_when_one_of_them_may() {
    for (first, second, retryable) in [(401, 404, true), (404, 401, true), (503, 404, true), (404, 404, false)] {
        let servers = [first, second].map(|status| Server::with(move |_, _| error(status, "{}")));
        let list = servers.each_ref().map(openai);
        let (reply, _) = greet_all(&list, &mut Wire::default(), 1).await;
        assert_eq!(reply.unwrap_err().retryable, retryable, "{first} {second}");
    }
}

#[tokio::test]
async fn a_request_that_is_too_long_has_its_own_code() {
    for (status, body) in [
        (400, r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#),
        (400, r#"{"error":{"message":"This model's Maximum Context Length is 8192 tokens."}}"#),
        (400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#),
        (400, r#"{"error":{"code":400,"message":"too big","type":"exceed_context_size_error"}}"#),
        (413, "<html>too large</html>"),
        (200, r#"{"error":{"message":"the request exceeds the context of the model"}}"#),
    ] {
        let (fault, requests) = fault_of(error(status, body), 3).await;
        assert_eq!((fault.code, fault.retryable, requests), (ModelFaultCode::ContextExceeded, false, 1), "{body}");
    }
}

#[tokio::test]
async fn what_a_server_repeats_of_a_request_says_nothing_about_its_error() {
    for (status, body, code) in [
        (
            422,
            r#"{"detail":[{"msg":"Input should be a string","input":[{"text":"maximum context length is 20 tokens"}]}]}"#,
            ModelFaultCode::ModelRefused,
        ),
        (
            422,
            r#"{"message":[{"msg":"Extra inputs","input":"insufficient_quota, invalid api key, rate limit"}]}"#,
            ModelFaultCode::ModelRefused,
        ),
        (
            400,
            r#"{"error":{"message":"invalid value 'the model\\'s context length is 20 tokens, prompt is too long'"}}"#,
            ModelFaultCode::ModelRefused,
        ),
        (
            400,
            r#"{"error":{"message":"bad arguments: {\"text\": \"insufficient_quota; data_inspection_failed\"}"}}"#,
            ModelFaultCode::ModelRefused,
        ),
        (
            400,
            r#"{"error":{"code":"tool_use_failed","failed_generation":"overloaded: prompt is too long"}}"#,
            ModelFaultCode::ModelProtocol,
        ),
        (
            500,
            r#"{"error":{"message":"Failed to parse input at pos 3: prompt is too long"}}"#,
            ModelFaultCode::ModelUnreachable,
        ),
    ] {
        let (fault, _) = fault_of(error(status, body), 2).await;
        let retryable = code != ModelFaultCode::ModelRefused;
        assert_eq!((fault.code, fault.retryable, fault.window), (code, retryable, None), "{body}");
        assert!(!fault.message.contains("for its content"), "{}", fault.message);
    }
}

#[tokio::test]
async fn a_server_without_a_place_is_waited_for_whatever_its_status_is() {
    for (status, body) in [
        (400, r#"{"__type":"ThrottlingException","message":"Too many tokens, please wait before trying again."}"#),
        (400, r#"{"error":{"message":"Model is loading, please try again"}}"#),
        (403, r#"{"error":{"message":"API rate limit exceeded for user 7"}}"#),
    ] {
        let (fault, requests) = fault_of(error(status, body), 2).await;
        assert_eq!((fault.code, fault.retryable, requests), (ModelFaultCode::ModelUnreachable, true, 2), "{body}");
    }
}

#[tokio::test]
async fn a_model_that_is_away_for_long_is_not_waited_for_while_there_is_another_one() {
    let away = r#"{"error":{"message":"You have exhausted your capacity. Your quota will reset after 3h12m5s."}}"#;
    let first = Server::with(move |_, _| error(429, away));
    let second = Server::with(|_, _| Answer::openai("Hi"));
    let (reply, failed) = greet_all(&[&first, &second].map(openai), &mut Wire::default(), 3).await;
    assert_eq!((reply.unwrap().text.as_str(), first.requests().len()), ("Hi", 1));
    assert_eq!(failed[0].delay_ms, 0);
}

#[tokio::test]
async fn a_failure_is_reported_and_the_next_attempt_answers() {
    let server = Server::new(vec![
        error(429, "{}").header("retry-after", "0"),
        error(500, "<html></html>"),
        Answer::openai("cut").cut(),
        Answer::reset(),
        Answer::closed(),
        Answer::openai("Hi"),
    ]);
    let (reply, failed) = greet(&openai(&server), 9).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.retries), ("Hi", 5));
    assert_eq!(failed.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(failed[0].delay_ms, 0);
    assert!(failed[2].reason.contains("was cut off"), "{}", failed[2].reason);
    for attempt in &failed[3..] {
        assert!(attempt.reason.contains("connection"), "{}", attempt.reason);
    }
    // All attempts send the same.
    let requests = server.requests();
    let whole = requests.iter().filter(|request| !request.body.is_empty());
    assert!(whole.clone().count() >= 5 && whole.clone().all(|request| request.body == requests[0].body));
}

#[tokio::test]
async fn what_is_no_http_is_a_fault_of_the_connection() {
    let (fault, requests) = fault_of(Answer::raw("SSH-2.0-OpenSSH_9.6\r\n"), 2).await;
    assert_eq!((fault.code, fault.retryable, requests), (ModelFaultCode::ModelUnreachable, true, 2));
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_named() {
    let server = Server::new(Vec::new());
    let (model, address) = (openai(&server), server.address());
    drop(server);
    let fault = greet(&model, 2).await.0.unwrap_err();
    assert_eq!(fault.message, format!("connection refused by {address} (after 2 attempts)"));
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_a_fault_and_no_panic() {
    let server = Server::new(Vec::new());
    let base_url = server.url().replace("http://", "https://");
    let file = serde_json::json!({"models": {"m": {"provider": "openai", "base_url": base_url}}});
    let fault = greet(&models(&file).get(Some("m")).unwrap(), 1).await.0.unwrap_err();
    assert_eq!(fault.code, ModelFaultCode::ModelUnreachable);
    // A machine without certificates can't speak TLS at all, and says so.
    let messages = ["no connection to 127.0.0.1:", "connection reset by 127.0.0.1:", "no HTTP client can be made"];
    assert!(messages.iter().any(|words| fault.message.starts_with(words)), "{}", fault.message);
}

#[tokio::test]
async fn a_retry_after_of_seconds_is_reported_before_the_wait() {
    let server = Server::new(vec![error(429, "{}").header("Retry-After", "120")]);
    let model = openai(&server);
    let waiting = tokio::sync::Notify::new();
    let delay = AtomicUsize::new(0);
    let failed = |attempt: RetriedAttempt| {
        delay.store(usize::try_from(attempt.delay_ms).unwrap(), Ordering::SeqCst);
        waiting.notify_one();
    };
    let (conversation, mut wire, retry) = (hello(), Wire::default(), retry(2));
    let asked = plain(&conversation);
    let call = ask(std::slice::from_ref(&model), &asked, &mut wire, &retry, &failed);
    tokio::select! {
        _ = call => panic!("it did not wait"),
        () = waiting.notified() => {}
    }
    assert_eq!(delay.load(Ordering::SeqCst), 120_000);
}

#[tokio::test]
async fn fallbacks_are_asked_in_their_order_and_the_one_that_answers_is_named() {
    let (dead, alive) = (Server::with(|_, _| error(503, "{}")), Server::with(|_, _| Answer::anthropic("Hi")));
    let file = serde_json::json!({"models": {
        "first": {"provider": "openai", "base_url": dead.url()},
        "second": {"provider": "openai", "base_url": dead.url()},
        "third": {"provider": "anthropic", "base_url": alive.url()},
    }});
    let models = models(&file);
    let list = ["first", "second", "third"].map(|name| models.get(Some(name)).unwrap());
    let mut wire = Wire::default();
    let (reply, failed) = greet_all(&list, &mut wire, 2).await;
    let reply = reply.unwrap();
    assert_eq!((reply.model.as_deref(), reply.retries, failed.len()), (Some("third"), 4, 4));
    let asked: Vec<_> = dead.requests().iter().map(|request| request.json()["model"].clone()).collect();
    assert_eq!(asked, ["first", "first", "second", "second"]);
    // The next call begins with the run's own model again.
    let (reply, _) = greet_all(&list[..2], &mut wire, 2).await;
    assert_eq!(reply.unwrap_err().attempts, 4);
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_the_wire_usable() {
    let gate = Gate::default();
    let held = Answer::openai("late").behind(&gate);
    let server = Server::new(vec![held, Answer::openai("Hi")]);
    let (model, mut wire, mut conversation) = (openai(&server), Wire::default(), hello());
    {
        let asked = plain(&conversation);
        let retry = retry(1);
        let call = ask(std::slice::from_ref(&model), &asked, &mut wire, &retry, &|_| ());
        let arrived = tokio::task::spawn_blocking({
            let server = Arc::new(server);
            move || {
                server.wait_for(1);
                server
            }
        });
        let server = tokio::select! {
            _ = call => panic!("the gate is closed"),
            server = arrived => server.unwrap(),
        };
        conversation.push(Role::User, "Still there?");
        gate.open();
        let reply = ask(std::slice::from_ref(&model), &plain(&conversation), &mut wire, &retry, &|_| ()).await;
        assert_eq!(reply.unwrap().text, "Hi");
        assert!(server.requests()[1].text().contains("Still there?"));
    }
}

#[tokio::test]
async fn an_answer_without_end_is_cut_at_the_limit() {
    let answer = Answer::endless("application/json", vec![b' '; 1 << 20]);
    let server = Server::with(move |_, _| answer.clone());
    let fault = greet(&openai(&server), 1).await.0.unwrap_err();
    assert_eq!(fault.code, ModelFaultCode::ModelProtocol);
    assert!(fault.message.contains("larger than 64 MiB"), "{}", fault.message);
    // What the sockets hold comes on top of what was read.
    assert!(server.sent() < MAX_ANSWER + (32 << 20), "{}", server.sent());
}

#[tokio::test]
async fn a_declared_length_over_the_limit_is_not_read_at_all() {
    let server = Server::new(vec![Answer::json("{").longer_by(MAX_ANSWER)]);
    let fault = greet(&openai(&server), 1).await.0.unwrap_err();
    assert!(fault.message.contains("larger than 64 MiB"), "{}", fault.message);
}

#[tokio::test]
async fn a_servers_words_are_shown_short_and_without_terminal_tricks() {
    let body = serde_json::json!({"error": {"message": format!("\u{1b}[2Jlook\u{202e}\u{9b} {}", "x".repeat(5000))}});
    let (fault, _) = fault_of(error(400, &body.to_string()), 1).await;
    assert!(fault.message.chars().count() < 400, "{}", fault.message.len());
    assert!(!fault.message.contains(['\u{1b}', '\u{202e}', '\u{9b}']));
    assert!(fault.message.contains("look"));
}

#[tokio::test]
async fn a_key_is_sent_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), "sk-very-secret-key\n").unwrap();
    let echo = |_: usize, request: &server::Request| {
        let key = request.header("authorization").or(request.header("x-api-key")).unwrap_or("none").to_owned();
        error(401, &serde_json::json!({"error": {"message": format!("bad key: {key}")}}).to_string())
    };
    let server = Server::with(echo);
    let file = |provider: &str| {
        let key = format!("file:{}", folder.path().join("key").display());
        serde_json::json!({"models": {"m": {"provider": provider, "base_url": server.url(), "api_key": key}}})
    };
    for provider in ["openai", "anthropic"] {
        let fault = greet(&models(&file(provider)).get(Some("m")).unwrap(), 3).await.0.unwrap_err();
        assert_eq!(fault.code, ModelFaultCode::ModelRefused);
        assert!(fault.message.contains("bad key") && !fault.message.contains("very-secret"), "{}", fault.message);
    }
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), Some("Bearer sk-very-secret-key"));
    assert_eq!(requests[1].header("x-api-key"), Some("sk-very-secret-key"));
    assert_eq!(requests[1].header("authorization"), None);
}
