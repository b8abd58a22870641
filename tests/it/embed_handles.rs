//! Runs by handles: what is known when they are durable, their notices, and how they are left.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use loopctl::{
    Decision, EmbeddedTool, Fault, Loop, Notice, NoticePosition, Outcome, Refused, RunHandle, RunNotice, Status, Stop,
    StoreError, ToolCall, ToolError,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Payment {
    /// In cents
    amount: u32,
    #[serde(default)]
    #[expect(dead_code, reason = "it is in the notice")]
    password: String,
}

/// Pays; an amount of 0 hangs.
#[derive(Default)]
pub struct Pay {
    called: Arc<AtomicU32>,
    pub hangs: Arc<Notify>,
}

impl EmbeddedTool for Pay {
    type Input = Payment;
    type Output = Value;
    const NAME: &'static str = "pay";
    const DESCRIPTION: &'static str = "Pays.";
    const IDEMPOTENT: bool = true;

    async fn call(&self, payment: Payment, _: &ToolCall<'_>) -> Result<Value, ToolError> {
        self.called.fetch_add(1, Ordering::SeqCst);
        if payment.amount == 0 {
            self.hangs.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(json!({ "paid": payment.amount }))
    }
}

pub fn pay(amount: u32) -> Value {
    json!({"thought": "t", "action": "pay", "action_input": {"amount": amount, "password": "hunter2-hunter2"}})
}

fn ask() -> Value {
    json!({"thought": "t", "action": "__pause_for_human__", "action_input": {"question": "Which one?"}})
}

pub fn done() -> Value {
    json!({"thought": "t", "action": "__complete__", "action_input": {"answer": "done"}})
}

/// A loop whose tool has these fields beside its name, with a script for its model.
pub fn payments(tool: &Value, replies: &[Value], store: &str) -> Loop {
    payments_with(Pay::default(), tool, replies, store)
}

fn payments_with(pay: Pay, tool: &Value, replies: &[Value], store: &str) -> Loop {
    let mut declared = json!({"type": "action", "name": "pay"});
    declared.as_object_mut().unwrap().extend(tool.as_object().unwrap().clone());
    let document = json!({"type": "loop", "name": "payments",
        "input": {"type": "object", "properties": {"order": {"type": "integer"}}},
        "properties": {"mode": "react", "objective": "Pay.", "tools": [declared]}});
    let script = serde_json::from_value(json!({ "replies": replies })).unwrap();
    Loop::load_text("payments.json", document.to_string()).tool(pay).script(script).store(store).build().unwrap()
}

pub async fn read(run: &RunHandle, after: Option<NoticePosition>) -> Vec<RunNotice> {
    let mut notices = after.map_or_else(|| run.notices(), |after| run.notices_after(after));
    let mut all = Vec::new();
    while let Some(notice) = notices.next().await {
        all.push(notice.unwrap());
    }
    all
}

#[tokio::test]
async fn what_is_wrong_with_a_start_is_known_when_it_is_spawned() {
    let payments = payments(&json!({}), &[ask(), done()], "memory");
    let refused = payments.start(json!({"order": "seven"})).id("r").spawn().await.unwrap_err();
    assert!(matches!(refused, Fault::Diagnostics(_)), "{refused:?}");
    let run = payments.start(json!({"order": 7})).id("r").spawn().await.unwrap();
    assert!(payments.engine().find("r").await.unwrap().is_some(), "it is durable");
    let conflict = payments.start(json!({"order": 8})).id("r").spawn().await.unwrap_err();
    assert!(matches!(conflict, Fault::Conflict(_)), "{conflict:?}");
    let same = payments.start(json!({"order": 7})).id("r").spawn().await.unwrap();
    assert_eq!((run.run_id(), same.run_id()), ("r", "r"));
    assert_eq!(same.wait().await.unwrap().status(), Status::Paused);
    assert_eq!(run.wait().await.unwrap().status(), Status::Paused, "each waits, as often as it likes");
}

#[tokio::test]
async fn what_is_wrong_with_a_decision_is_known_when_the_resume_is_spawned() {
    let payments = payments(&json!({}), &[ask(), done()], "memory");
    payments.start(Value::Null).id("r").await.unwrap();
    let refused = payments.resume("r").decide(Decision::Approve).spawn().await.unwrap_err();
    assert!(matches!(refused, Fault::Refused(_)), "{refused:?}");
    let run = payments.resume("r").answer("This one.").by("ann").spawn().await.unwrap();
    let ended = run.wait().await.unwrap();
    assert_eq!(ended.state.decisions.last().and_then(|decision| decision.by.as_deref()), Some("ann"));
    assert_eq!(ended.answer_as::<String>().unwrap(), "done");
    let over = payments.resume("r").answer("Again.").await.unwrap_err();
    assert!(matches!(over, Fault::Refused(Refused::Ended { .. })), "{over:?}");
    let unknown = payments.resume("s").await.unwrap_err();
    assert!(matches!(unknown, Fault::Store(StoreError::NoSuchRun(_))), "{unknown:?}");
}

#[tokio::test]
async fn several_readers_have_each_notice_once_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("runs.db").display());
    let replies = [pay(5), ask(), pay(6), done()];
    let first = payments(&json!({}), &replies, &store);
    let run = first.start(Value::Null).id("r").spawn().await.unwrap();
    let mut early = run.notices();
    let mut seen = Vec::new();
    loop {
        let notice = early.next().await.unwrap().unwrap();
        seen.push(notice.json().clone());
        if matches!(notice.unredacted(), Notice::Paused { .. }) {
            break;
        }
    }
    let last: NoticePosition = seen.last().unwrap()["position"].as_str().unwrap().parse().unwrap();
    run.wait().await.unwrap();
    drop(first);
    // Another process.
    let next = payments(&json!({}), &replies, &store);
    let handle = next.handle("r");
    let (answered, rest) = tokio::join!(next.resume("r").answer("That one.").into_future(), read(&handle, Some(last)));
    assert_eq!(answered.unwrap().status(), Status::Completed);
    // Its own reader has the rest, too.
    let mut early_rest = Vec::new();
    while let Some(notice) = early.next().await {
        early_rest.push(notice.unwrap().json().clone());
    }
    let rest: Vec<Value> = rest.iter().map(|notice| notice.json().clone()).collect();
    assert_eq!(early_rest, rest);
    let whole: Vec<Value> = read(&handle, None).await.iter().map(|notice| notice.json().clone()).collect();
    assert_eq!(whole, seen.iter().chain(&rest).cloned().collect::<Vec<_>>());
    let positions: BTreeSet<&str> = whole.iter().map(|notice| notice["position"].as_str().unwrap()).collect();
    assert_eq!(positions.len(), whole.len());
    assert!(whole.iter().all(|notice| notice["run_id"] == "r"));
    let ends = |event: &str| whole.iter().filter(|notice| notice["event"] == event).count();
    assert_eq!((ends("run_started"), ends("tool_called"), ends("decided"), ends("run_ended")), (1, 2, 1, 1));
}

#[tokio::test]
async fn notices_hide_secrets_unless_they_are_asked_for_unredacted() {
    let payments = payments(&json!({}), &[pay(5), done()], "memory");
    let run = payments.start(Value::Null).spawn().await.unwrap();
    let called: Vec<RunNotice> = read(&run, None).await;
    let called = called.iter().find(|notice| matches!(notice.unredacted(), Notice::ToolCalled { .. })).unwrap();
    let texts = [format!("{called:?}"), serde_json::to_string(called).unwrap(), called.json().to_string()];
    assert!(texts.iter().all(|text| text.contains("pay") && !text.contains("hunter2")), "{texts:?}");
    let Notice::ToolCalled { action_input, .. } = called.unredacted() else { panic!("{called:?}") };
    assert_eq!(action_input["password"], "hunter2-hunter2");
    let missing = payments.handle("s").notices().next().await.unwrap().unwrap_err();
    assert!(matches!(missing, Fault::Store(StoreError::NoSuchRun(_))), "{missing:?}");
}

#[tokio::test]
async fn a_call_is_approved_as_it_was_shown() {
    let approval = json!({"requires_approval": true});
    let payments = payments(&approval, &[pay(5), pay(6), pay(7), done()], "memory");
    let run = payments.start(Value::Null).id("r").spawn().await.unwrap();
    let paused = |outcome: Outcome| match outcome {
        Outcome::Paused(waiting) => waiting,
        other => panic!("{other:?}"),
    };
    let first = paused(run.wait().await.unwrap().outcome());
    assert_eq!((first.calls.len(), first.steps.len()), (1, 0));
    let call = &first.calls[0];
    assert_eq!((call.action.as_str(), &call.input["amount"], call.id.as_str()), ("pay", &json!(5), "1.0"));
    let second = payments.resume("r").decide(call.approve_as_shown()).await.unwrap();
    // The first decision is about another call.
    let stale = payments.resume("r").decide(call.approve_as_shown()).await.unwrap_err();
    assert!(matches!(stale, Fault::Refused(_)), "{stale:?}");
    let second = paused(second.outcome());
    assert_eq!(second, paused(run.outcome().await.unwrap()), "the handle reads how the run is now");
    let third = payments.resume("r").decide(second.calls[0].deny("too much")).await.unwrap();
    let third = paused(third.outcome());
    let edited = json!({"amount": 1, "password": ""});
    let ended = payments.resume("r").decide(third.calls[0].edit(edited)).await.unwrap();
    let Outcome::Completed(answer) = ended.outcome() else { panic!("{ended:?}") };
    assert_eq!(answer.answer, "done");
    let observed: Vec<String> = ended.state.entries().iter().map(|entry| format!("{:?}", entry.observation)).collect();
    assert!(observed[0].contains("5") && observed[1].contains("too much") && observed[2].contains("1"), "{observed:?}");
}

#[tokio::test]
async fn the_steps_of_a_workflow_that_wait_are_calls_too() {
    let flow = json!({"name": "payout", "definition": {"actions": [
        {"type": "PbotApproval", "properties": {"comment": "Pay 5?"}},
        {"type": "pay", "properties": {"amount": 5}}], "output": "@pay.paid"}});
    let payout = Loop::load_text("payout.json", flow.to_string()).tool(Pay::default()).build().unwrap();
    let paused = payout.start(json!({})).id("r").await.unwrap();
    let Outcome::Paused(waiting) = paused.outcome() else { panic!("{paused:?}") };
    assert_eq!((waiting.calls.len(), waiting.steps.len()), (1, 1), "{waiting:?}");
    let ended = payout.resume("r").decide(waiting.calls[0].approve_as_shown()).await.unwrap();
    assert_eq!(ended.answer_as::<u32>().unwrap(), 5);
}

#[tokio::test]
async fn a_run_that_is_driven_is_cancelled_and_its_stop_is_its_own() {
    let tool = Pay::default();
    let (hangs, stop) = (Arc::clone(&tool.hangs), Stop::new());
    let payments = payments_with(tool, &json!({}), &[pay(0), done()], "memory");
    let run = payments.start(Value::Null).id("r").spawn().await.unwrap();
    hangs.notified().await;
    assert_eq!(run.outcome().await.unwrap(), Outcome::Running);
    assert_eq!(payments.handle("r").cancel("not needed").await.unwrap(), Status::Running);
    let cancelled = run.wait().await.unwrap().outcome();
    assert!(
        matches!(&cancelled, Outcome::Cancelled { reason: Some(why), .. } if why.contains("not needed")),
        "{cancelled:?}"
    );
    let other = payments.start(Value::Null).id("s").stop(&stop).spawn().await.unwrap();
    hangs.notified().await;
    stop.now();
    assert_eq!(other.wait().await.unwrap().outcome(), Outcome::Interrupted);
    assert_eq!(payments.handle("s").wait().await.unwrap().outcome(), Outcome::Interrupted);
}

#[tokio::test]
async fn a_start_is_a_future_of_its_own_and_a_dropped_waiter_stops_nothing() {
    let tool = Pay::default();
    let (hangs, called) = (Arc::clone(&tool.hangs), Arc::clone(&tool.called));
    let payments = payments_with(tool, &json!({}), &[pay(5), done()], "memory");
    let spawned = tokio::spawn(payments.start(Value::Null).id("r").into_future());
    assert_eq!(spawned.await.unwrap().unwrap().status(), Status::Completed);
    drop(payments.start(Value::Null).id("s").spawn().await.unwrap());
    let ended = payments.handle("s").wait().await.unwrap();
    assert_eq!((ended.status(), called.load(Ordering::SeqCst)), (Status::Completed, 2));
    drop(hangs);
}

#[test]
fn who_waits_for_a_run_learns_that_its_runtime_has_ended() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let tool = Pay::default();
    let hangs = Arc::clone(&tool.hangs);
    let (first, second) = (runtime(), runtime());
    let payments = payments_with(tool, &json!({}), &[pay(0), done()], "memory");
    let run = first.block_on(async {
        let run = payments.start(Value::Null).id("r").spawn().await.unwrap();
        hangs.notified().await;
        run
    });
    first.shutdown_background();
    let ended = second.block_on(async { tokio::time::timeout(Duration::from_secs(20), run.wait()).await.unwrap() });
    assert!(matches!(ended, Err(Fault::Cut(_))), "{ended:?}");
}
