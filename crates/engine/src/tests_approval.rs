//! Approvals of a call: by whom they are given, until when, and what happens when nobody decides in time.

use std::sync::Arc;

use serde_json::{Value, json};

use super::decision::approval::{fails_by, is_approved_by};
use super::decision::awaited_approval::AwaitedApproval;
use super::effect::{Effect, Effects};
use super::event::{CallId, Decided, Decision, DecisionRights, Event, EventKind, Moment};
use super::outcome::Termination;
use super::state::{Phase, State};
use super::step::{fits, step};
use super::tests::{says, started};
use super::waiting_calls::waiting_calls;
use loopctl_lang::compile::{Texts, compile};
use loopctl_lang::diagnostic::Source;
use loopctl_lang::program::Program;

/// When the call begins to wait, in milliseconds since 1970.
const BEGIN: i64 = 1_769_941_800_000;

const CALL: CallId = CallId { iteration: 1, index: 0 };

/// A loop whose only tool needs an approval with these settings.
fn program(settings: &Value) -> Arc<Program> {
    let document = json!({ "type": "loop", "actions": [
        { "action_name": "act", "kind": "http", "description": "Acts.", "url": "https://x.example/", "http_method": "POST",
          "requires_approval": true, "approval": settings,
          "parameters": { "type": "object", "properties": { "n": { "type": "integer" } } } }
    ], "properties": { "mode": "react", "objective": "Act.", "dialect": "json", "tools": [{ "type": "action", "name": "act" }] } });
    let compiled = compile(&Texts::new(Source::new("loop.json", document.to_string())));
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

/// A run whose call waits.
struct WaitingRun {
    program: Arc<Program>,
    state: State,
    now_ms: i64,
}

impl WaitingRun {
    fn of(settings: &Value) -> Self {
        let program = program(settings);
        let mut run = Self { state: State::new(&program), program, now_ms: BEGIN };
        run.apply(started()).unwrap();
        let call = json!({ "thought": "t", "action": "act", "action_input": { "n": 1 } });
        run.apply(says(call.to_string())).unwrap();
        assert!(run.waits().is_some(), "{:?}", run.state.phase);
        run
    }

    fn apply(&mut self, kind: EventKind) -> Result<Effects, String> {
        let at = Moment { wall_ms: self.now_ms, active_ms: 0 };
        step(&self.program, &mut self.state, Event { at, kind }).map_err(|refused| refused.to_string())
    }

    fn decide(&mut self, decision: Decision, by: &str, rights: DecisionRights) -> Result<Effects, String> {
        let decided = decided(decision, by, rights);
        self.state.now.wall_ms = self.now_ms;
        let fits = fits(&self.program, &self.state, &decided);
        let taken = self.apply(EventKind::Human(decided));
        assert_eq!(fits.map_err(|refused| refused.to_string()), taken.clone().map(drop), "what fits is taken");
        taken
    }

    /// The hash of the call that waits, and what its approval needs and has.
    fn waits(&self) -> Option<(String, AwaitedApproval)> {
        let call = waiting_calls(&self.state).into_iter().next()?;
        Some((call.hash, call.approval.unwrap_or_default()))
    }
}

/// A decision of somebody; nobody is known by an empty name.
fn decided(decision: Decision, by: &str, rights: DecisionRights) -> Decided {
    Decided { by: Some(by.to_owned()).filter(|by| !by.is_empty()), rights, ..Decided::from(decision) }
}

const ALL: DecisionRights = DecisionRights::All;

fn made() -> Effects {
    vec![Effect::CallTool(CALL)]
}

#[test]
fn a_call_that_two_must_approve_is_made_after_two_people_and_not_after_one_twice() {
    let mut run = WaitingRun::of(&json!({ "approvers": 2 }));
    let is_approved = |run: &WaitingRun, by| is_approved_by(&run.state, &decided(Decision::Approve, by, ALL));
    assert!(run.decide(Decision::Approve, "", ALL).unwrap_err().contains("nobody knows who decides"));
    assert!(!is_approved(&run, "ann"));
    assert_eq!(run.decide(Decision::Approve, "ann", ALL), Ok(vec![]));
    assert!(is_approved(&run, "ann") && !is_approved(&run, "bob"));
    let other = CallId { index: 1, ..CALL };
    for (call, is_meant) in [(CALL, true), (other, false)] {
        let about = Decided { call: Some(call), ..decided(Decision::Approve, "ann", ALL) };
        assert_eq!(is_approved_by(&run.state, &about), is_meant);
    }
    assert!(run.decide(Decision::Approve, "ann", ALL).unwrap_err().contains("already (1 of 2)"));
    assert_eq!(run.waits().unwrap().1.approved_by, ["ann"]);
    assert_eq!(run.decide(Decision::Approve, "bob", ALL), Ok(made()));
    assert!(!is_approved(&run, "ann"), "nothing waits");
    let counts: Vec<_> = run.state.decisions.iter().map(|record| record.approvals.map(|count| count.given)).collect();
    assert_eq!(counts, [Some(1), Some(2)]);
}

#[test]
fn one_person_denies_a_call_that_two_must_approve() {
    let mut run = WaitingRun::of(&json!({ "approvers": 2 }));
    run.decide(Decision::Approve, "ann", ALL).unwrap();
    assert_eq!(run.decide(Decision::Deny(None), "ann", ALL).map(|effects| effects.contains(&made()[0])), Ok(false));
    assert_eq!(run.state.counters.tool_calls_made, 0);
}

#[test]
fn an_edit_needs_all_approvals_again_and_has_the_one_of_its_author() {
    let mut run = WaitingRun::of(&json!({ "approvers": 2 }));
    run.decide(Decision::Approve, "ann", ALL).unwrap();
    let (before, _) = run.waits().unwrap();
    for call in [None, Some(CALL)] {
        let edited = Decided { call, ..decided(Decision::Edit(json!({ "n": "x" })), "bob", ALL) };
        assert!(run.apply(EventKind::Human(edited)).unwrap_err().contains("not accepted"), "{call:?}");
    }
    assert_eq!(run.decide(Decision::Edit(json!({ "n": 2 })), "bob", ALL), Ok(vec![]));
    let (after, awaited) = run.waits().unwrap();
    assert_ne!(before, after);
    assert_eq!(awaited.approved_by, ["bob"]);
    let shown = Decided { hash: Some(before), ..decided(Decision::Approve, "ann", ALL) };
    assert!(run.apply(EventKind::Human(shown)).unwrap_err().contains("look at it again"));
    assert!(run.decide(Decision::Approve, "bob", ALL).is_err());
    assert_eq!(run.decide(Decision::Approve, "ann", ALL), Ok(made()));
}

#[test]
fn nobody_decides_from_the_moment_on_at_which_an_approval_expires() {
    for (on_expiry, fails) in [("deny", false), ("fail", true), ("escalate", false)] {
        let run = || WaitingRun::of(&json!({ "expires_after_ms": 60_000, "on_expiry": on_expiry }));
        let mut late = run();
        assert_eq!(late.waits().unwrap().1.expires_at_ms, Some(BEGIN + 60_000));
        for decision in [Decision::Approve, Decision::Deny(None), Decision::Edit(json!({ "n": 2 }))] {
            late.now_ms = BEGIN + 60_000;
            assert!(late.decide(decision, "ann", ALL).unwrap_err().contains("in time"), "{on_expiry}");
        }
        assert_eq!((fails_by(&late.state, late.now_ms), fails_by(&late.state, late.now_ms - 1)), (fails, false));
        let mut in_time = run();
        in_time.now_ms = BEGIN + 59_999;
        assert!(in_time.apply(EventKind::ApprovalExpired).unwrap_err().contains("no approval of the run has expired"));
        assert_eq!(in_time.decide(Decision::Approve, "ann", ALL), Ok(made()), "{on_expiry}");
        assert!(!fails_by(&in_time.state, i64::MAX));
    }
}

#[test]
fn a_call_whose_approval_expired_is_not_made() {
    for (on_expiry, fails) in [("deny", false), ("fail", true)] {
        let mut run = WaitingRun::of(&json!({ "expires_after_ms": 60_000, "on_expiry": on_expiry }));
        run.now_ms = BEGIN + 60_000;
        let effects = run.apply(EventKind::ApprovalExpired).unwrap();
        assert!(!effects.contains(&made()[0]), "{effects:?}");
        assert_eq!((run.waits(), run.state.counters.tool_calls_made), (None, 0));
        let failed = matches!(&run.state.phase, Phase::Ended(ending) if ending.termination == Termination::Approval);
        assert_eq!(failed, fails, "{:?}", run.state.phase);
    }
}

#[test]
fn an_escalated_approval_is_given_by_those_who_may_decide_about_escalated_ones() {
    let mut run = WaitingRun::of(&json!({ "expires_after_ms": 60_000, "on_expiry": "escalate" }));
    let refused = run.decide(Decision::Approve, "eve", DecisionRights::Escalated).unwrap_err();
    assert!(refused.contains("about escalated approvals only"), "{refused}");
    run.now_ms = BEGIN + 60_000;
    assert_eq!(run.apply(EventKind::ApprovalExpired), Ok(vec![]));
    let escalated = AwaitedApproval { escalated: true, ..AwaitedApproval::default() };
    assert_eq!(run.waits().map(|(_, awaited)| awaited), Some(escalated));
    // It waits without end now.
    run.now_ms = i64::MAX;
    assert!(run.apply(EventKind::ApprovalExpired).is_err() && !fails_by(&run.state, run.now_ms));
    for decision in [Decision::Approve, Decision::Deny(None), Decision::Edit(json!({ "n": 2 }))] {
        let refused = run.decide(decision, "ann", DecisionRights::Ordinary).unwrap_err();
        assert!(refused.contains("needs the scope"), "{refused}");
    }
    assert_eq!(run.decide(Decision::Approve, "eve", DecisionRights::Escalated), Ok(made()));
}

#[test]
fn an_approval_that_needs_nothing_particular_says_nothing_of_itself() {
    let run = WaitingRun::of(&json!({}));
    assert_eq!(waiting_calls(&run.state)[0].approval, None);
    let plain = AwaitedApproval::default();
    assert_eq!(serde_json::to_value(&plain).unwrap(), json!({}));
    assert_eq!(serde_json::from_value::<AwaitedApproval>(json!({})).unwrap(), plain);
    let two = AwaitedApproval { approvers: 2, ..plain };
    assert_eq!(serde_json::to_value(&two).unwrap(), json!({ "approvers": 2 }));
    assert_eq!(serde_json::from_value::<AwaitedApproval>(json!({ "approvers": 2 })).unwrap(), two);
}
