//! Models that are away: an hour of a played clock passes in no time.

use std::sync::atomic::Ordering;
use std::time::Duration;

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
            _ => Answer::openai("cut").cut(),
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
