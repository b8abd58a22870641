//! The notices of a driven run equal those computed from its journal.

use serde_json::json;

use super::engine::{Engine, Resume, Watch};
use super::stop::Stop;
use super::tests::{Heard, Place, compiled, complete, place, start, think};
use loopctl_engine::event::{Decision, EventKind};
use loopctl_engine::notice::{self, Notice};
use loopctl_engine::outcome::Status;
use loopctl_engine::state::State;
use loopctl_lang::program::Program;

/// The notices of all events of the run `r`.
async fn of_journal(engine: &Engine, program: &Program) -> Vec<Notice> {
    let mut state = State::new(program);
    let events = engine.events("r").await.unwrap();
    events.into_iter().flat_map(|event| notice::notices(program, &mut state, event).unwrap()).collect()
}

#[tokio::test]
async fn a_listener_hears_what_the_journal_gives_over_pauses_stops_and_resumes() {
    let program = compiled(&json!({}), &[]);
    let replies = [
        think("__log_progress__", json!({ "message": "m" })),
        think("__pause_for_human__", json!({ "question": "q" })),
        think("hangs", json!({})),
        json!("no reply of the dialect"),
        complete(),
    ];
    let Place { engine, called } = place(&program, &replies, &json!({}));
    let heard = Heard::default();
    let watch = |stop| Watch { listener: Some(&heard), stop };
    let paused = engine.run(&program, start(), watch(None)).await.unwrap();
    assert_eq!(paused.status(), Status::Paused);
    let stop = Stop::new();
    let answer = Resume::with(Decision::Answer("a".to_owned()));
    let hanging = engine.resume(&program, "r", answer, watch(Some(stop.clone())));
    let stopping = async {
        called.notified().await;
        stop.now();
    };
    let (stopped, ()) = tokio::join!(hanging, stopping);
    assert_eq!(stopped.unwrap().status(), Status::Cancelled);
    let uncertain = engine.resume(&program, "r", Resume::default(), watch(None)).await.unwrap();
    assert_eq!(uncertain.status(), Status::Paused);
    let happened = Resume::with(Decision::Happened(json!("it did")));
    let ended = engine.resume(&program, "r", happened, watch(None)).await.unwrap();
    assert_eq!(ended.status(), Status::Completed);
    let live = heard.all();
    assert_eq!(live, of_journal(&engine, &program).await);
    let resumed = live.iter().filter(|notice| matches!(notice, Notice::RunResumed { .. })).count();
    assert_eq!(resumed, 3);
}

#[tokio::test]
async fn a_paused_run_with_a_new_document_and_no_decision_is_not_resumed() {
    let old = compiled(&json!({}), &[]);
    let new = compiled(&json!({ "max_iterations": 7 }), &[]);
    let replies = [think("__pause_for_human__", json!({ "question": "q" })), complete()];
    let Place { engine, .. } = place(&old, &replies, &json!({}));
    engine.run(&old, start(), Watch::default()).await.unwrap();
    let heard = Heard::default();
    let adopt = Resume { new_document: true, ..Resume::default() };
    let paused = engine.resume(&new, "r", adopt, Watch { listener: Some(&heard), stop: None }).await.unwrap();
    assert_eq!(paused.status(), Status::Paused);
    assert_eq!(heard.all(), []);
    let events = engine.events("r").await.unwrap();
    assert!(matches!(events.last().unwrap().kind, EventKind::NewDocument(_)));
}
