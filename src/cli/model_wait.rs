//! What commands say of a run whose model failed and is asked again, or whose request waits for its turn.

use serde::Serialize;

use crate::journal::ModelWait;
use crate::trace::units::{duration, plural, rfc3339};

/// The wait, for programs.
#[derive(Serialize)]
pub struct ShownModelWait<'w> {
    /// The run below that asks the model, when it is not this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'w str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<&'static str>,
    model: &'w str,
    attempts: u32,
    since: String,
    kind: &'w str,
    #[serde(skip_serializing_if = "Option::is_none")]
    again_at: Option<String>,
}

impl<'w> ShownModelWait<'w> {
    /// The wait of this run.
    pub fn new(wait: &'w ModelWait, of: &str) -> Self {
        Self {
            run_id: Some(wait.run_id.as_str()).filter(|run_id| *run_id != of),
            of: (!wait.of.is_model()).then(|| wait.of.word()),
            model: &wait.model,
            attempts: wait.attempts,
            since: rfc3339(wait.since_ms),
            kind: &wait.kind,
            again_at: wait.again_at_ms.map(rfc3339),
        }
    }
}

/// The wait in a few words, the most important first: lists cut them.
pub fn brief(wait: &ModelWait, now_ms: i64) -> String {
    let ModelWait { model, kind, attempts, .. } = wait;
    let since = elapsed(wait.since_ms, now_ms);
    if *attempts == 0 {
        return format!("{} waits for its turn for {since}: {kind}", in_line(wait));
    }
    match wait.again_at_ms.is_some_and(|at_ms| at_ms > now_ms) {
        true => format!("the model {model} is away for {since}: {kind} ({})", plural(*attempts, "attempt")),
        // It may reply by now.
        false => format!(
            "the model {model} failed for {since} and is asked again: {kind} ({})",
            plural(*attempts, "attempt")
        ),
    }
}

/// The wait of this run in a sentence.
pub fn sentence(wait: &ModelWait, of: &str, now_ms: i64) -> String {
    let ModelWait { run_id, model, attempts, since_ms, kind, again_at_ms, .. } = wait;
    let asker = if run_id == of { String::new() } else { format!("for its sub-run {run_id} ") };
    let later = again_at_ms.filter(|at_ms| *at_ms > now_ms);
    if *attempts == 0 {
        let (at, since) = (rfc3339(*since_ms), elapsed(*since_ms, now_ms));
        let until = later.map(|at_ms| format!("; it is sent in {}", elapsed(now_ms, at_ms))).unwrap_or_default();
        return format!("{} {asker}waits for its turn since {at} ({since}): {kind}{until}", in_line(wait));
    }
    let again = match later {
        Some(at_ms) => format!("it is asked again in {}", elapsed(now_ms, at_ms)),
        None => "it is being asked again".to_owned(),
    };
    let state = if later.is_some() { "is away" } else { "fails" };
    format!(
        "the model {model} {asker}{state} since {} ({}): {} failed, the last one with {kind}; {again}",
        rfc3339(*since_ms),
        elapsed(*since_ms, now_ms),
        plural(*attempts, "attempt")
    )
}

/// What waits for its turn.
fn in_line(wait: &ModelWait) -> String {
    let what = if wait.of.is_model() { "a request" } else { "a call" };
    format!("{what} to the {} {}", wait.of.in_words(), wait.model)
}

/// The time from one moment to another; none for a clock that went back.
fn elapsed(from_ms: i64, to_ms: i64) -> String {
    duration(u64::try_from(to_ms.saturating_sub(from_ms)).unwrap_or_default())
}
