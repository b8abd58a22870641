//! Models that are away: an hour of a played clock passes in no time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::drive::clock::played::PlayedClock;

const HOUR_MS: u64 = 3_600_000;
const LOADING: &str = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;

/// Retries by time, for so many milliseconds.
fn patient(for_ms: Option<u64>) -> Retry {
    Retry { for_ms, ..Retry::default() }
}

async fn greet_patiently(models: &[Arc<ModelClient>], retry: &Retry) -> (Result<Reply, ModelFault>, usize) {
    let failed = Mutex::new(0);
    let reply = ask(models, &plain(&hello()), &mut Wire::default(), retry, &|_| *failed.lock().unwrap() += 1).await;
    (reply, failed.into_inner().unwrap())
}

#[tokio::test]
async fn a_server_that_is_away_for_an_hour_is_asked_until_it_is_back() {
    let clock = PlayedClock::start();
    let waited = clock.waited_ms();
    let server = Server::with(move |number, _| match waited.load(Ordering::SeqCst) {
        HOUR_MS.. => Answer::openai("I am back."),
        _ => match number % 4 {
            0 => Answer::json(LOADING).status(503),
            1 => Answer::reset(),
            2 => Answer::closed(),
            _ => Answer::json(LOADING).status(503).cut(),
        },
    });
    let (reply, failed) = greet_patiently(&[openai(&server)], &patient(Some(2 * HOUR_MS))).await;
    let reply = reply.unwrap();
    assert_eq!(reply.text, "I am back.");
    assert_eq!(reply.attempts.len(), failed);
    assert!(failed > 100, "{failed}");
    assert!(reply.attempts[0].reason.contains("Loading model"), "{}", reply.attempts[0].reason);
    assert!(reply.duration_ms >= HOUR_MS, "{}", reply.duration_ms);
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_asked_for_two_minutes() {
    let clock = PlayedClock::start();
    let gone = Server::new(Vec::new());
    let model = openai(&gone);
    drop(gone);
    let (reply, failed) = greet_patiently(&[model], &patient(None)).await;
    let fault = reply.unwrap_err();
    assert!(fault.retryable && failed >= 4, "{fault:?}");
    let waited = clock.waited_ms().load(Ordering::SeqCst);
    // The attempts take a part of the time too.
    assert!(waited <= 120_000 && fault.duration_ms >= 120_000, "{waited} {}", fault.duration_ms);
}

/// Models of a project, of which `gone` is at a port where nobody listens, and `there` at a server that answers.
fn gone_and_there(there: &Server) -> Models {
    let gone = Server::new(Vec::new());
    let model = |server: &Server| json!({"provider": "openai", "base_url": format!("{}/v1", server.url())});
    models(&json!({"models": {"gone": model(&gone), "there": model(there)}}))
}

#[tokio::test]
async fn who_waits_for_a_new_run_is_asked_after_ten_seconds_whether_the_server_runs() {
    let server = Server::with(|_, _| Answer::openai("Hi"));
    let models = gone_and_there(&server);
    let [gone, there] = ["gone", "there"].map(|name| models.get(Some(name)).unwrap());
    models.await_first_contact();
    for (retry, least_ms) in [(patient(None), 10_000), (patient(Some(60_000)), 60_000), (retry(3), 0)] {
        let clock = PlayedClock::start();
        let fault = greet_patiently(std::slice::from_ref(&gone), &retry).await.0.unwrap_err();
        let waited = clock.waited_ms().load(Ordering::SeqCst);
        assert!((least_ms..=least_ms + 30_000).contains(&fault.duration_ms), "{waited} {}", fault.duration_ms);
        assert!(fault.retryable && fault.message.starts_with("connection refused by 127.0.0.1:"), "{}", fault.message);
        assert!(fault.message.contains(": is the server running? (after "), "{}", fault.message);
        assert!(!fault.failed[0].reason.contains("running"), "{}", fault.failed[0].reason);
    }
    assert_eq!(greet_patiently(&[there], &patient(None)).await.0.unwrap().text, "Hi");
    let _clock = PlayedClock::start();
    let fault = greet_patiently(&[gone], &patient(None)).await.0.unwrap_err();
    assert!(fault.duration_ms >= 120_000 && !fault.message.contains("running"), "a server was reached: {fault:?}");
}

#[tokio::test]
async fn a_server_that_fails_in_another_way_first_is_asked_for_two_minutes() {
    let clock = PlayedClock::start();
    let waited = clock.waited_ms();
    let server = Server::with(move |_, _| match waited.load(Ordering::SeqCst) {
        60_000.. => Answer::openai("Here."),
        _ => Answer::json(LOADING).status(503),
    });
    let models = gone_and_there(&server);
    models.await_first_contact();
    let there = models.get(Some("there")).unwrap();
    assert_eq!(greet_patiently(&[there], &patient(None)).await.0.unwrap().text, "Here.");
}

#[tokio::test]
async fn a_fallback_is_asked_after_a_few_attempts_and_then_waited_for() {
    let clock = PlayedClock::start();
    let waited = clock.waited_ms();
    let first = Server::with(|_, _| Answer::json(LOADING).status(503));
    let second = Server::with(move |_, _| match waited.load(Ordering::SeqCst) {
        60_000.. => Answer::openai("Here."),
        _ => Answer::json(LOADING).status(503),
    });
    let (reply, _) = greet_patiently(&[openai(&first), openai(&second)], &patient(None)).await;
    assert_eq!(reply.unwrap().text, "Here.");
    assert_eq!(first.requests().len(), 4);
    assert!(second.requests().len() > 4, "{}", second.requests().len());
}

#[tokio::test]
async fn a_reply_that_takes_too_long_is_asked_for_again() {
    let gate = Gate::default();
    let silent = Answer::openai("late").behind(&gate);
    let server = Server::with(move |number, _| if number == 0 { silent.clone() } else { Answer::openai("soon") });
    let conversation = hello();
    let short = Duration::from_millis(100);
    for timeouts in [
        ReplyTimeouts { stall: Some(short), ..ReplyTimeouts::default() },
        ReplyTimeouts { reply: short, ..ReplyTimeouts::default() },
    ] {
        let asked = Ask { timeouts, ..plain(&conversation) };
        let reply = ask(&[openai(&server)], &asked, &mut Wire::default(), &patient(None), &|_| ()).await.unwrap();
        assert_eq!(reply.text, "soon");
    }
    gate.open();
    assert!(server.requests().len() >= 3);
}

#[tokio::test]
async fn a_stream_that_stalls_is_given_up_and_says_for_how_long_nothing_came() {
    let server = Server::with(|_, _| Answer::events([r#"{"choices":[{"delta":{"content":"Half"}}]}"#]).stalling());
    let conversation = hello();
    let timeouts = ReplyTimeouts { stall: Some(Duration::from_millis(50)), ..ReplyTimeouts::default() };
    let asked = Ask { partial: Some(&|_| ()), timeouts, ..plain(&conversation) };
    let fault = ask(&[openai(&server)], &asked, &mut Wire::default(), &retry(1), &|_| ()).await.unwrap_err();
    assert!(fault.retryable && fault.message.contains("sent nothing for 50 ms"), "{}", fault.message);
}
