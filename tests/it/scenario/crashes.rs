//! Crashes everywhere in sound documents of all kinds end alike, and a call that fails after a crash because the document says
//! so is counted.

use serde_json::{Value, json};

use super::{folder, loopctl, path, stderr};

/// An action of kind `http` with these members more.
fn action(name: &str, method: &str, more: Value) -> Value {
    let mut action = json!({"action_name": name, "description": "Does it.", "kind": "http", "http_method": method,
        "url": "https://bank.example.com/", "parameters": {"type": "object"}});
    action.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    action
}

fn workflow(name: &str, definition: Value) -> Value {
    json!({"name": name, "description": "Does it.", "definition": definition})
}

/// A file of one scenario.
fn test_of(document: &str, tools: Value, scenario: Value) -> Value {
    json!({"document": document, "tools": tools, "scenarios": [scenario]})
}

/// Workflows whose calls need two people, start another workflow without waiting, are not repeated after a crash, are played as
/// failed, or are denied; and a loop that calls a workflow which asks and pays.
#[expect(clippy::too_many_lines, reason = "a list of documents")]
fn documents() -> Vec<(&'static str, Value)> {
    let ok = json!([{"ok": true}]);
    let asked = [json!({"approve": true, "by": "mia"}), json!({"approve": true, "by": "otto"})];
    let items = json!({"type": "loop", "id": "each", "properties": {"mode": "foreach", "items_path": "@input.l",
        "item_variable_name": "x", "max_concurrency": 1, "failure_strategy": "continue_on_error",
        "actions_to_execute": [{"type": "pay"}], "on_failure": [{"type": "put"}]}});
    let pays = json!({"type": "loop", "name": "clerk", "properties": {"mode": "react", "objective": "Settle it.",
        "tools": [{"type": "workflow", "name": "inner"}]}});
    let replies = json!([{"thought": "Pay.", "action": "inner", "action_input": {}},
        {"thought": "Done.", "action": "__complete__", "action_input": {"answer": "paid"}}]);
    vec![
        (
            "actions/all.json",
            json!([
                action("pay", "POST", json!({})),
                action("put", "PUT", json!({})),
                action("pay_by_two", "POST", json!({"requires_approval": true, "approval": {"approvers": 2}})),
                action("pay_once", "POST", json!({"on_uncertain": "fail"})),
                action(
                    "pay_in_time",
                    "POST",
                    json!({"requires_approval": true,
                    "approval": {"expires_after_ms": 60000, "on_expiry": "fail"}})
                ),
            ]),
        ),
        (
            "workflows/inner.json",
            workflow(
                "inner",
                json!({"actions": [
            {"type": "PbotApproval", "id": "ok", "properties": {"comment": "Pay?"}},
            {"type": "PbotApproval", "id": "sure", "properties": {"comment": "Sure?"}}, {"type": "pay"}]}),
            ),
        ),
        ("workflows/later.json", workflow("later", json!({"actions": [{"type": "put"}]}))),
        ("two.json", workflow("two", json!({"actions": [{"type": "pay_by_two"}]}))),
        (
            "two.test.json",
            test_of(
                "two.json",
                json!({"pay_by_two": ok}),
                json!({"name": "two people", "decisions": asked,
                "expect": {"status": "completed", "once": ["pay_by_two"]}}),
            ),
        ),
        (
            "starts.json",
            workflow(
                "starts",
                json!({"actions": [{"type": "workflow", "name": "later", "wait": false}, {"type": "put"}]}),
            ),
        ),
        (
            "starts.test.json",
            test_of("starts.json", json!({"put": ok}), json!({"name": "started", "expect": {"status": "completed"}})),
        ),
        (
            "items.json",
            json!({"name": "items", "input": {"type": "object", "properties": {"l": {"type": "array"}}, "required": ["l"]},
                "definition": {"actions": [items]}}),
        ),
        (
            "items.test.json",
            test_of(
                "items.json",
                json!({"put": ok, "pay": [{"error": "http 500"}, {"ok": true}]}),
                json!({"name": "a failed one", "input": {"l": [1, 2]}, "expect": {"status": "completed", "once": ["put"]}}),
            ),
        ),
        ("loop.json", pays),
        (
            "loop.test.json",
            test_of(
                "loop.json",
                json!({"pay": ok}),
                json!({"name": "asked below", "replies": replies,
                "decisions": [{"at": "ok", "approve": true}, {"for": "sure", "at": "sure", "approve": true}],
                "expect": {"status": "completed", "once": ["pay"], "pauses": [{"for": "ok"}, {"for": "sure"}]}}),
            ),
        ),
        (
            "once.json",
            workflow(
                "once",
                json!({"actions": [{"type": "put"}, {"type": "pay_once"}, {"type": "PbotApproval", "properties": {"comment": "All right?"}}],
                "on_failure": [{"type": "put"}]}),
            ),
        ),
        (
            "once.test.json",
            test_of(
                "once.json",
                json!({"put": ok, "pay_once": ok}),
                json!({"name": "not again",
                "decisions": [{"approve": true}], "expect": {"status": "completed", "once": ["put"]}}),
            ),
        ),
        ("refused.json", workflow("refused", json!({"actions": [{"type": "pay_by_two"}]}))),
        (
            "refused.test.json",
            test_of(
                "refused.json",
                json!({"pay_by_two": ok}),
                json!({"name": "a no to an action", "decisions": [{"deny": "no"}],
                "expect": {"status": "failed", "termination": "rejected", "never": ["pay_by_two"]}}),
            ),
        ),
        (
            "late.json",
            workflow(
                "late",
                json!({"actions": [{"type": "pay_in_time", "id": "pay"}], "on_failure": [{"type": "put",
                "filter": {"condition": {"equal": ["@__error.code", "approval_expired"]}}}]}),
            ),
        ),
        (
            "late.test.json",
            test_of(
                "late.json",
                json!({"put": ok, "pay_in_time": ok}),
                json!({"name": "nobody in time",
                "decisions": [{"expires": true}], "expect": {"status": "failed", "termination": "rejected",
                "error": {"code": "approval_expired"}, "once": ["put"], "never": ["pay_in_time"],
                "steps": {"pay": {"error": {"code": "approval_expired"}}}}}),
            ),
        ),
    ]
}

#[test]
fn sound_documents_of_all_kinds_survive_a_crash_everywhere() {
    let folder = folder(&documents());
    let tested = loopctl(&["test", &path(&folder), "--crash"]);
    let text = stderr(&tested);
    assert_eq!(tested.status.code(), Some(0), "{text}");
    let points: Vec<&str> = text.lines().map(str::trim).filter(|line| line.contains(" crash points: ")).collect();
    let wanted = [
        "8 crash points: 8 end alike, 4 ask whether pay happened, 0 repeat a call",
        "6 crash points: 6 end alike, 0 repeat a call",
        "28 crash points: 28 end alike, 2 ask whether pay happened, 0 repeat a call",
        "8 crash points: 6 end alike, 2 fail by `on_uncertain` of pay_once, 0 repeat a call",
        "4 crash points: 4 end alike, 0 repeat a call",
        "14 crash points: 14 end alike, 0 repeat a call",
        "8 crash points: 8 end alike, 2 ask whether pay_by_two happened, 0 repeat a call",
    ];
    assert_eq!(points, wanted, "{text}");
}

/// What a scenario decides about a wait is the same with a crash as without one: a form that reminds and posts its question expires by
/// one entry, an outage of the model is decided once, and a run may be left waiting for an event.
#[test]
fn a_reminded_form_an_outage_and_an_event_are_decided_alike_after_a_crash() {
    let form = json!({"actions": [{"type": "PbotForm", "id": "f", "properties": {"question": "?",
        "fields": [{"name": "a", "type": "text"}], "ttl_seconds": 600, "ask": ["team"], "reminder_intervals": [100, 300]}}]});
    let event = json!({"actions": [{"type": "wait", "properties": {"for": "1h"}},
        {"type": "wait_for_event", "id": "paid", "properties": {"event": "paid", "ttl_seconds": 600}}]});
    let asked = json!({"type": "loop", "name": "asked", "properties": {"mode": "react", "objective": "Answer.", "tools": [],
        "retry": {"attempts": 2, "base_ms": 100}, "on_model_outage": "pause"}});
    let down = json!({"http": 503});
    let file = |document: &str, scenarios: Value| json!({"document": document, "scenarios": scenarios});
    let folder = folder(&[
        (
            "loopctl.json",
            json!({"model": "m", "models": {"m": {"provider": "openai", "model": "m", "api_key": "env:NO_KEY"}},
            "notify": {"team": {"kind": "webhook", "url": "https://chat.example.com/x"}}}),
        ),
        ("form.json", workflow("form", form)),
        (
            "form.test.json",
            file(
                "form.json",
                json!([{"name": "expires", "decisions": [{"at": "f", "expires": true}],
            "expect": {"status": "failed", "pauses": [{"for": "f"}], "steps": {"f": {"error": {"code": "form_expired"}}}}}]),
            ),
        ),
        ("event.json", workflow("event", event)),
        (
            "event.test.json",
            file(
                "event.json",
                json!([
            {"name": "left", "expect": {"status": "paused", "termination": "waiting_event"}},
            {"name": "expires", "expect": {"status": "failed", "steps": {"paid": {"error": {"code": "event_expired"}}}}}]),
            ),
        ),
        ("asked.json", asked),
        (
            "asked.test.json",
            file(
                "asked.json",
                json!([
            {"name": "again", "replies": [down, down, {"answer": "ok"}], "decisions": [{"for": "model_error", "retry": true}],
                "expect": {"status": "completed"}},
            {"name": "left", "replies": [down, down], "expect": {"status": "paused", "termination": "model_error"}}]),
            ),
        ),
    ]);
    let tested = loopctl(&["test", &path(&folder), "--crash"]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
}
