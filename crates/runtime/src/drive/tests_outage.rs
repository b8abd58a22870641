//! Runs whose model is away for an hour of a played clock: every one of them continues.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::clock::{self, played::PlayedClock};
use super::engine::{Engine, Resume, Watch};
use super::model::{EmbeddedModel, ModelError, ModelReply, ModelRequest};
use super::run_result::Finished;
use super::tests::{Hangs, compiled, complete, start, think};
use loopctl_engine::event::Decision;
use loopctl_engine::outcome::{Status, Termination};
use loopctl_lang::compile::{Texts, compile};
use loopctl_lang::diagnostic::Source;
use loopctl_lang::program::Program;

const HOUR: Duration = Duration::from_secs(3600);

/// A model that says what it is given to say, and is away for an hour when it is first asked for reply `at`.
#[derive(Clone)]
struct AwayModel {
    replies: Arc<Vec<Value>>,
    at: usize,
    given: Arc<AtomicUsize>,
    back_at: Arc<Mutex<Option<Instant>>>,
}

impl AwayModel {
    fn new(replies: &[Value], at: usize) -> Self {
        Self { replies: Arc::new(replies.to_vec()), at, given: Arc::default(), back_at: Arc::default() }
    }
}

impl EmbeddedModel for AwayModel {
    async fn reply(&self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let next = self.given.load(Ordering::SeqCst);
        if next == self.at {
            let now = clock::instant();
            let back_at = *self.back_at.lock().unwrap().get_or_insert(now + HOUR);
            if now < back_at {
                return Err(ModelError::transient("connection refused").unpaid());
            }
        }
        self.given.fetch_add(1, Ordering::SeqCst);
        Ok(self.replies.get(next).unwrap_or(&complete()).to_string().into())
    }
}

fn engine(program: &Program, model: AwayModel) -> Engine {
    Engine::builder(program.project.clone(), std::path::Path::new("."))
        .tool(Hangs(Arc::default()))
        .model("m", model)
        .build()
}

fn replies() -> Vec<Value> {
    let step = |percent: u32| think("__log_progress__", json!({ "message": "m", "percent": percent }));
    vec![step(1), step(2), complete()]
}

/// Properties of a loop that has the time for an outage.
fn with(more: &Value) -> Value {
    let mut properties = json!({ "timeout_ms": 86_400_000, "last_call_timeout_ms": 86_400_000 });
    for (name, value) in more.as_object().unwrap() {
        properties[name] = value.clone();
    }
    properties
}

/// Plays a run, and resumes it whenever it waits for its model. Returns how often that was.
async fn played(program: &Arc<Program>, model: AwayModel) -> (Finished, u32) {
    let _clock = PlayedClock::start();
    let engine = engine(program, model);
    let mut finished = engine.run(program, start(), Watch::default()).await.unwrap();
    let mut resumed = 0;
    while finished.status() == Status::Paused {
        assert_eq!(finished.pause().unwrap().question.kind, Termination::ModelError);
        resumed += 1;
        clock::sleep(Duration::from_secs(600)).await;
        // A human may say so, or nobody has to.
        let how = if resumed % 2 == 0 { Resume::default() } else { Resume::with(Decision::Retry) };
        finished = engine.resume(program, "r", how, Watch::default()).await.unwrap();
    }
    (finished, resumed)
}

#[tokio::test]
async fn every_run_whose_model_is_away_for_an_hour_goes_on_with_the_step_that_it_was_at() {
    let forced = json!({ "max_iterations": 2, "on_limit": "answer" });
    let summed = json!({ "history": { "max_messages": 5, "keep_last": 1, "summarize": true } });
    for shape in [json!({}), forced, summed] {
        // Where the third reply is a summary, the run completes with the fourth.
        let said = replies;
        let plain = compiled(&with(&shape), &[]);
        let undisturbed = played(&plain, AwayModel::new(&said(), usize::MAX)).await.0.state;
        assert_eq!(undisturbed.status(), Status::Completed, "{:?}", undisturbed.phase);
        assert_eq!(undisturbed.counters.summaries, u32::from(shape.get("history").is_some()));
        for at in 0..3 {
            for retry in [json!({ "for_ms": 7_200_000 }), json!({}), json!({ "attempts": 3 }), json!({ "for_ms": 0 })] {
                let mut shape = shape.clone();
                shape["retry"] = retry.clone();
                shape["on_model_outage"] = json!("pause");
                let program = compiled(&with(&shape), &[]);
                let (finished, resumed) = played(&program, AwayModel::new(&said(), at)).await;
                assert_eq!(finished.status(), Status::Completed, "{shape} {at}");
                assert_eq!(resumed == 0, retry["for_ms"] == 7_200_000, "{shape} {at}: resumed {resumed} times");
                let texts = |state: &loopctl_engine::state::State| {
                    format!("{:?}", state.as_loop().unwrap().conversation.messages)
                };
                assert_eq!(texts(&finished.state), texts(&undisturbed), "{shape} {at}");
            }
        }
    }
}

#[tokio::test]
async fn without_a_pause_the_run_fails_when_the_retries_are_spent() {
    let program = compiled(&with(&json!({})), &[]);
    let (finished, resumed) = played(&program, AwayModel::new(&replies(), 1)).await;
    assert_eq!((finished.status(), resumed), (Status::Failed, 0));
}

#[tokio::test]
async fn a_decision_of_another_kind_is_refused_while_the_model_is_away() {
    let _clock = PlayedClock::start();
    let program = compiled(&with(&json!({ "on_model_outage": "pause" })), &[]);
    let engine = engine(&program, AwayModel::new(&replies(), 1));
    engine.run(&program, start(), Watch::default()).await.unwrap();
    for decision in [Decision::Answer("x".to_owned()), Decision::Approve] {
        let refused = engine.resume(&program, "r", Resume::with(decision), Watch::default()).await.unwrap_err();
        assert!(refused.to_string().contains("waits for its model"), "{refused}");
    }
}

#[tokio::test]
async fn a_sub_run_whose_model_is_away_pauses_its_caller_and_both_go_on() {
    let pause = with(&json!({ "mode": "react", "objective": "Help.", "tools": [], "on_model_outage": "pause" }));
    let document = json!({ "type": "loop", "properties": with(&json!({ "mode": "react", "objective": "Do it.",
        "tools": [{ "type": "loop", "name": "help" }], "on_model_outage": "pause" })) });
    let help = json!({ "type": "loop", "name": "help", "description": "Helps.", "properties": pause });
    let mut texts = Texts::new(Source::new("loop.json", document.to_string()));
    texts.loops.push(Source::new("loops/help.json", help.to_string()));
    let program = compile(&texts).program.unwrap();
    let said = [think("help", json!({})), complete(), complete()];
    for at in 0..3 {
        let (finished, resumed) = played(&program, AwayModel::new(&said, at)).await;
        assert_eq!(finished.status(), Status::Completed, "{at}");
        assert!(resumed > 0, "{at}");
    }
}
