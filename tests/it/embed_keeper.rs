//! What keeps runs going without a server: what a process left continues, what is due happens, and all is left at the end.

use std::sync::Arc;
use std::time::Duration;

use loopctl::{Engine, Listener, Loop, Notice, Outcome, Status, Stop};
use serde_json::{Value, json};

use crate::embed_handles::{Pay, done, pay, payments, read};

/// Leaves the run at the first call.
struct LeaveAtCall(Stop);

impl Listener for LeaveAtCall {
    fn on(&self, notice: Notice) {
        if matches!(notice, Notice::ToolCalled { .. }) {
            self.0.leave();
        }
    }
}

#[tokio::test]
async fn a_keeper_resumes_what_was_left_and_not_what_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("runs.db").display());
    let first = payments(&json!({}), &[pay(5), done()], &store);
    for id in ["left", "also"] {
        let stop = Stop::new();
        let left = first.start(Value::Null).id(id).listener(LeaveAtCall(stop.clone())).stop(&stop).await.unwrap();
        assert_eq!(left.outcome(), Outcome::Running);
    }
    let stop = Stop::new();
    stop.after_step();
    let interrupted = first.start(Value::Null).id("interrupted").stop(&stop).await.unwrap();
    assert_eq!(interrupted.outcome(), Outcome::Interrupted);
    drop(first);
    let next = payments(&json!({}), &[pay(5), done()], &store);
    let keeper = next.engine().keep([&next]);
    for id in ["left", "also"] {
        let ended = tokio::time::timeout(Duration::from_secs(20), next.handle(id).wait()).await.unwrap().unwrap();
        assert_eq!(ended.status(), Status::Completed);
    }
    assert_eq!(next.handle("interrupted").outcome().await.unwrap(), Outcome::Interrupted);
    keeper.drain(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_keeper_lets_approvals_expire() {
    let approval = json!({"requires_approval": true, "approval": {"expires_after_ms": 300, "on_expiry": "deny"}});
    let payments = payments(&approval, &[pay(5), done()], "memory");
    let _keeper = payments.engine().keep([&payments]);
    let run = payments.start(Value::Null).id("r").spawn().await.unwrap();
    assert_eq!(run.wait().await.unwrap().status(), Status::Paused);
    let notices = tokio::time::timeout(Duration::from_secs(20), read(&run, None)).await.unwrap();
    assert!(matches!(notices.last().unwrap().unredacted(), Notice::RunEnded { status: Status::Completed, .. }));
}

#[tokio::test]
async fn a_keeper_that_is_dropped_leaves_the_runs_for_the_next_one() {
    let tool = Pay::default();
    let (hangs, journal) = (Arc::clone(&tool.hangs), Arc::new(loopctl::journal::memory::MemoryJournal::new()));
    let engine =
        |tool: Pay| Engine::builder(Arc::default(), std::path::Path::new(".")).tool(tool).journal(journal.clone());
    let load = |engine: &Engine, replies: &[Value]| {
        let script = serde_json::from_value(json!({ "replies": replies })).unwrap();
        let document = json!({"type": "loop", "name": "payments", "properties": {"mode": "react", "objective": "Pay.",
            "tools": [{"type": "action", "name": "pay"}]}});
        Loop::load_text("payments.json", document.to_string()).engine(engine).script(script).build().unwrap()
    };
    let first = engine(tool).build();
    let payments = load(&first, &[pay(0), done()]);
    let keeper = first.keep([&payments]);
    let run = payments.start(Value::Null).id("r").spawn().await.unwrap();
    hangs.notified().await;
    let leaving = tokio::time::timeout(Duration::from_millis(200), run.wait());
    drop(keeper);
    // The step is under way: the run is left when it has ended.
    assert!(leaving.await.is_err());
    run.cancel("the test is over").await.unwrap();
    assert_eq!(run.wait().await.unwrap().status(), Status::Cancelled);
    let kept = payments.start(json!({})).id("s").spawn().await.unwrap();
    hangs.notified().await;
    kept.cancel("").await.unwrap();
    assert_eq!(kept.wait().await.unwrap().status(), Status::Cancelled, "a start after the keeper is driven as ever");
}
