//! Decisions about what waits: which of them a pause takes, which calls they are about, and what follows; and what follows
//! when nobody decides in time.

use std::sync::Arc;

use serde_json::{Value, json};

use super::decision::decision_record::DecisionRecord;
use super::decision::is_of_kind;
use super::effect::{Effect, Effects};
use super::event::{
    CallId, Decided, Decision, DecisionKind, DecisionRights, Event, EventKind, ModelFault, ModelFaultCode, Moment,
    Reply, SaidCall, ToolResult, ToolReturned,
};
use super::outcome::{Pause, Termination};
use super::state::{Phase, State};
use super::step::{fits, step};
use super::tests::{says, started};
use super::waiting_calls::waiting_calls;
use loopctl_lang::compile::{Texts, compile};
use loopctl_lang::diagnostic::Source;
use loopctl_lang::language::approval::OnExpiry;
use loopctl_lang::program::Program;

/// A loop that looks, sends, and may pay and mail with an approval each.
fn program(properties: &Value, pay: &Value, mail: &Value) -> Arc<Program> {
    let action = |name: &str, approval: Option<&Value>, method: &str, parameters: Value| {
        let mut action = json!({ "action_name": name, "kind": "http", "description": "Does it.",
            "url": "https://x.example/", "http_method": method, "parameters": parameters });
        if let Some(approval) = approval {
            action["requires_approval"] = json!(true);
            action["approval"] = approval.clone();
        }
        action
    };
    let of = |name: &str, kind: &str| json!({ "type": "object", "properties": { name: { "type": kind } }, "required": [name], "additionalProperties": false });
    let any = json!({ "type": "object" });
    let mut all = json!({ "mode": "react", "objective": "Act.", "dialect": "tool_calls", "max_iterations": 20, "tools": [
        { "type": "action", "name": "look", "remember": { "first": "/rows/0" } },
        { "type": "action", "name": "send" }, { "type": "action", "name": "pay" }, { "type": "action", "name": "mail" }] });
    for (name, value) in properties.as_object().unwrap() {
        all[name] = value.clone();
    }
    let document = json!({ "type": "loop", "properties": all, "actions": [
        action("look", None, "GET", any.clone()), action("send", None, "POST", any),
        action("pay", Some(pay), "POST", of("n", "integer")), action("mail", Some(mail), "POST", of("to", "string"))] });
    let compiled = compile(&Texts::new(Source::new("loop.json", document.to_string())));
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

/// A run, and the moment of its next event.
struct Played {
    program: Arc<Program>,
    state: State,
    now_ms: i64,
}

const BEGIN: i64 = 1_769_941_800_000;

impl Played {
    fn of(program: Arc<Program>) -> Self {
        let mut played = Self { state: State::new(&program), program, now_ms: BEGIN };
        played.apply(started()).unwrap();
        played
    }

    /// A run in which a payment and a mail wait, whose approvals have these settings.
    fn waiting(pay: &Value, mail: &Value) -> Self {
        let mut played = Self::of(program(&json!({}), pay, mail));
        played.calls(&[("pay", json!({ "n": 1 })), ("mail", json!({ "to": "ann" }))]);
        assert_eq!(played.waits(), ["1.0", "1.1"]);
        played
    }

    fn apply(&mut self, kind: EventKind) -> Result<Effects, String> {
        let at = Moment { wall_ms: self.now_ms, active_ms: 0 };
        step(&self.program, &mut self.state, Event { at, kind }).map_err(|refused| refused.to_string())
    }

    fn calls(&mut self, calls: &[(&str, Value)]) -> Effects {
        let said = |(place, (name, input)): (usize, &(&str, Value))| SaidCall {
            id: format!("id{place}"),
            name: (*name).to_owned(),
            arguments: input.to_string(),
        };
        let calls = calls.iter().enumerate().map(said).collect();
        self.apply(EventKind::ModelReplied(Reply { text: "t".to_owned(), calls, ..Reply::default() })).unwrap()
    }

    fn returned(&mut self, call: CallId, result: Value) -> Effects {
        let result = ToolResult::Ok(result);
        let returned = ToolReturned {
            attempts: Vec::new(),
            waited_ms: 0,
            call,
            result,
            duration_ms: 1,
            tokens: None,
            cost_usd: None,
            estimated: false,
            at_most: false,
            run_id: None,
        };
        self.apply(EventKind::ToolReturned(returned)).unwrap()
    }

    fn decide(&mut self, decided: Decided) -> Result<Effects, String> {
        self.state.now.wall_ms = self.now_ms;
        let (before, fits) = (self.state.clone(), fits(&self.program, &self.state, &decided));
        let taken = self.apply(EventKind::Human(decided));
        assert_eq!(fits.map_err(|refused| refused.to_string()), taken.clone().map(drop), "what fits is taken");
        assert!(taken.is_ok() || self.state == before, "what is refused changes nothing");
        taken
    }

    fn waits(&self) -> Vec<String> {
        waiting_calls(&self.state).into_iter().map(|call| call.id).collect()
    }

    fn pause(&self) -> &Pause {
        let Phase::Paused { pause, .. } = &self.state.phase else { panic!("{:?}", self.state.phase) };
        pause
    }

    /// The tool of each entry, and why it failed.
    fn entries(&self) -> Vec<(String, String)> {
        let class =
            |entry: &super::state::StoredEntry| entry.error.as_ref().map_or_else(String::new, |it| it.class.clone());
        self.state
            .entries()
            .iter()
            .map(|entry| (entry.action.as_deref().unwrap_or_default().to_owned(), class(entry)))
            .collect()
    }
}

fn id(index: u32) -> CallId {
    CallId { iteration: 1, index }
}

fn about(index: u32, decision: Decision) -> Decided {
    Decided { call: Some(id(index)), ..Decided::from(decision) }
}

#[test]
fn a_pause_takes_the_decisions_of_its_kind_and_names_them() {
    let answer = || Decision::Answer("a".to_owned());
    let failed = || Decision::Failed("f".to_owned());
    let all = [
        answer(),
        Decision::Approve,
        Decision::Deny(None),
        Decision::Edit(json!({})),
        Decision::Happened(json!(1)),
        failed(),
        Decision::Retry,
    ];
    let approval = [Decision::Approve, Decision::Deny(None), Decision::Edit(json!({}))];
    let uncertain = [Decision::Happened(json!(1)), failed(), Decision::Retry];
    for (kind, taken, why) in [
        (Termination::Human, &[answer()][..], "the run waits for an answer"),
        (Termination::Stuck, &[answer()], "the run waits for an answer"),
        (Termination::Approval, &approval, "approve, deny or edit"),
        (Termination::Uncertain, &uncertain, "say what it gave, that it failed, or repeat it"),
        (Termination::ModelError, &[Decision::Retry], "the run waits for its model: retry"),
        (Termination::Budget, &[], "the run waits for no human"),
    ] {
        for decision in &all {
            match is_of_kind(kind, decision) {
                Ok(()) => assert!(taken.contains(decision), "{kind:?} takes {decision:?}"),
                Err(refused) => {
                    assert!(!taken.contains(decision), "{kind:?} refuses {decision:?}");
                    assert!(refused.to_string().contains(why), "{kind:?}: {refused}");
                }
            }
        }
    }
}

#[test]
fn a_decision_about_another_pause_is_refused_and_says_which_one_it_is() {
    let mut run = Played::of(program(&json!({}), &json!({}), &json!({})));
    let ask = |question: &str| ("__pause_for_human__", json!({ "question": question }));
    run.calls(&[ask("One?"), ask("Two?")]);
    let answer = |pause| Decided { pause: Some(pause), ..Decided::from(Decision::Answer("a".to_owned())) };
    run.decide(answer(1)).unwrap();
    assert_eq!(run.decide(answer(1)), Err("pause 1 is over; the run is in pause 2".to_owned()));
    assert_eq!(run.decide(answer(3)), Err("pause 3 has not come yet; the run is in pause 2".to_owned()));
    assert_eq!(run.decide(answer(2)), Ok(vec![Effect::CallModel]));
}

#[test]
fn a_decision_about_a_call_that_does_not_wait_names_those_that_do() {
    let mut run = Played::waiting(&json!({}), &json!({}));
    let refused = |run: &mut Played, index| run.decide(about(index, Decision::Approve)).unwrap_err();
    assert_eq!(refused(&mut run, 5), "call 1.5 does not wait; what waits: 1.0, 1.1");
    run.decide(about(0, Decision::Deny(None))).unwrap();
    assert_eq!(refused(&mut run, 0), "call 1.0 does not wait; what waits: 1.1");
    let mut stuck = stuck();
    let guided = about(0, Decision::Answer("a".to_owned()));
    assert_eq!(stuck.decide(guided), Err("call 1.0 does not wait".to_owned()));
    // A question is asked by a call, which may be named.
    let mut asked = Played::of(program(&json!({}), &json!({}), &json!({})));
    asked.calls(&[("__pause_for_human__", json!({ "question": "One?" }))]);
    assert!(asked.decide(about(1, Decision::Answer("a".to_owned()))).unwrap_err().contains("does not wait"));
    asked.decide(about(0, Decision::Answer("a".to_owned()))).unwrap();
}

#[test]
fn an_edit_is_judged_by_the_schema_of_the_call_that_it_is_about() {
    let to = || Decision::Edit(json!({ "to": "bob" }));
    for by_hash in [false, true] {
        let mut run = Played::waiting(&json!({}), &json!({}));
        let hashes: Vec<String> = waiting_calls(&run.state).into_iter().map(|call| call.hash).collect();
        let about = |index: u32, decision| match by_hash {
            true => Decided { hash: Some(hashes[index as usize].clone()), ..Decided::from(decision) },
            false => about(index, decision),
        };
        assert!(run.decide(about(0, to())).unwrap_err().contains("the edited input is not accepted"));
        assert_eq!(run.decide(about(1, to())), Ok(vec![]));
        // The other call waits in the same pause, as it was.
        assert_eq!((run.pause().number, run.waits()), (1, vec!["1.0".to_owned()]));
        assert_eq!(run.decide(about(0, Decision::Approve)), Ok([0, 1].map(|at| Effect::CallTool(id(at))).into()));
        let inputs = [0, 1].map(|at| run.state.call(id(at)).unwrap().input.clone());
        assert_eq!(inputs, [json!({ "n": 1 }).into(), json!({ "to": "bob" }).into()]);
    }
}

#[test]
fn an_edited_call_that_others_must_approve_is_asked_for_again_with_all_that_still_wait() {
    let mut run = Played::waiting(&json!({ "approvers": 2 }), &json!({}));
    let edit = Decided { by: Some("ann".to_owned()), ..about(0, Decision::Edit(json!({ "n": 2 }))) };
    assert_eq!(run.decide(edit), Ok(vec![]));
    assert_eq!((run.pause().number, run.pause().calls.as_slice()), (2, &[id(0), id(1)][..]));
    let record = &run.state.decisions[0];
    assert_eq!((record.decision, &record.input_before), (DecisionKind::Edit, &Some(json!({ "n": 1 }))));
    // An approval changes nothing that was shown.
    let bob = Decided { by: Some("bob".to_owned()), ..about(0, Decision::Approve) };
    assert_eq!(run.decide(bob), Ok(vec![]));
    assert_eq!((run.pause().number, run.waits()), (2, vec!["1.1".to_owned()]));
}

#[test]
fn what_one_call_needs_does_not_stop_a_decision_about_another() {
    let mut run = Played::waiting(&json!({ "expires_after_ms": 60_000 }), &json!({}));
    run.now_ms = BEGIN + 60_000;
    for late in [about(0, Decision::Approve), Decided::from(Decision::Deny(None))] {
        assert!(run.decide(late).unwrap_err().contains("nobody approved the call of pay in time"));
    }
    assert_eq!(run.decide(about(1, Decision::Approve)), Ok(vec![]));
    assert_eq!(run.waits(), ["1.0"]);
}

#[test]
fn who_decides_about_escalated_approvals_answers_no_question() {
    let mut run = Played::of(program(&json!({}), &json!({}), &json!({})));
    run.calls(&[("__pause_for_human__", json!({ "question": "One?" }))]);
    let answer = |rights| Decided { rights, ..Decided::from(Decision::Answer("a".to_owned())) };
    let refused = run.decide(answer(DecisionRights::Escalated)).unwrap_err();
    assert!(refused.contains("about escalated approvals only"), "{refused}");
    assert_eq!(run.decide(answer(DecisionRights::Ordinary)), Ok(vec![Effect::CallModel]));
}

#[test]
fn a_call_of_unknown_outcome_that_happened_or_failed_was_made_and_the_model_reads_what_is_known() {
    for (decision, class) in [
        (Decision::Happened(json!({ "rows": [] })), ""),
        (Decision::Failed("lost".to_owned()), "a human says that the call failed: lost"),
    ] {
        let mut run = Played::of(program(&json!({}), &json!({}), &json!({})));
        assert_eq!(run.calls(&[("send", json!({}))]), [Effect::CallTool(id(0))]);
        run.apply(EventKind::Resumed).unwrap();
        assert_eq!(run.pause().question.kind, Termination::Uncertain);
        assert_eq!(run.decide(Decided::from(decision)), Ok(vec![Effect::CallModel]));
        assert_eq!(run.entries(), [("send".to_owned(), class.to_owned())]);
        assert_eq!((run.state.counters.tool_calls_made, run.state.counters.calls["send"]), (1, 1));
    }
}

#[test]
fn repetitions_are_counted_from_a_decision_on() {
    let mut run = Played::of(program(&json!({}), &json!({}), &json!({})));
    run.calls(&[("look", json!({}))]);
    run.returned(id(0), json!({ "rows": [] }));
    run.calls(&[("pay", json!({ "n": 1 }))]);
    assert!(!run.state.as_loop().unwrap().watch.steps.is_empty());
    run.decide(Decided::from(Decision::Approve)).unwrap();
    assert!(run.state.as_loop().unwrap().watch.steps.is_empty());
}

/// A run that is stuck, and waits for guidance.
fn stuck() -> Played {
    let rule = json!({ "on_stuck": { "action": "escalate", "iterations": 2 } });
    let mut run = Played::of(program(&rule, &json!({}), &json!({})));
    for iteration in 1.. {
        run.calls(&[("look", json!({}))]);
        run.returned(CallId { iteration, index: 0 }, json!({ "rows": [] }));
        if matches!(run.state.phase, Phase::Paused { .. }) {
            break;
        }
    }
    assert_eq!(run.pause().question.kind, Termination::Stuck);
    run
}

#[test]
fn the_answer_for_a_stuck_run_is_guidance_that_the_model_reads() {
    let mut run = stuck();
    let number = run.pause().number;
    let answer =
        Decided { by: Some("ann".to_owned()), ..Decided::from(Decision::Answer("Try the letters.".to_owned())) };
    assert_eq!(run.decide(answer), Ok(vec![Effect::CallModel]));
    let last = run.state.as_loop().unwrap().conversation.messages.last().unwrap();
    assert!(last.text.contains("Try the letters."), "{}", last.text);
    let [DecisionRecord { pause, call, decision, by, .. }] = &run.state.decisions[..] else { panic!() };
    assert_eq!((*pause, *call, *decision, by.as_deref()), (number, None, DecisionKind::Answer, Some("ann")));
}

#[test]
fn a_run_whose_model_stayed_away_asks_it_again_and_takes_nothing_else() {
    let mut run = Played::of(program(&json!({ "on_model_outage": "pause" }), &json!({}), &json!({})));
    let fault = ModelFault {
        code: ModelFaultCode::ModelUnreachable,
        message: "away".to_owned(),
        retryable: true,
        attempts: 1,
        duration_ms: 1,
        failed: Vec::new(),
        window: None,
        prompt_tokens: None,
        spending_limit: None,
        paid_out: false,
    };
    run.apply(EventKind::ModelFailed(fault)).unwrap();
    assert_eq!(run.pause().question.kind, Termination::ModelError);
    assert!(run.decide(Decided::from(Decision::Answer("a".to_owned()))).unwrap_err().contains("waits for its model"));
    assert_eq!(run.decide(Decided::from(Decision::Retry)), Ok(vec![Effect::CallModel]));
    assert!(matches!(run.state.phase, Phase::Thinking { .. }), "{:?}", run.state.phase);
}

#[test]
fn a_call_whose_approval_expired_is_denied_and_another_one_still_waits() {
    let mut run = Played::waiting(&json!({ "expires_after_ms": 60_000 }), &json!({ "expires_after_ms": 90_000 }));
    let hash = waiting_calls(&run.state)[0].hash.clone();
    run.now_ms = BEGIN + 60_000;
    assert_eq!(run.apply(EventKind::ApprovalExpired), Ok(vec![]));
    assert_eq!((run.pause().number, run.waits()), (1, vec!["1.1".to_owned()]));
    let [record] = &run.state.decisions[..] else { panic!("{:?}", run.state.decisions) };
    assert_eq!((record.call, &record.hash, record.decision), (Some(id(0)), &Some(hash), DecisionKind::Expired));
    assert_eq!((record.on_expiry, record.pause, record.at_ms), (Some(OnExpiry::Deny), 1, BEGIN + 60_000));
    assert!(run.apply(EventKind::ApprovalExpired).unwrap_err().contains("no approval of the run has expired"));
    assert_eq!(run.decide(about(1, Decision::Approve)), Ok(vec![Effect::CallTool(id(1))]));
    run.returned(id(1), json!("sent"));
    let late = "not called: nobody approved this call in time";
    assert_eq!(run.entries(), [("pay".to_owned(), late.to_owned()), ("mail".to_owned(), String::new())]);
    assert_eq!(run.state.counters.tool_calls_made, 1);
}

#[test]
fn a_run_that_fails_by_an_expired_approval_keeps_what_was_done_and_makes_nothing_that_waits() {
    let fails = json!({ "expires_after_ms": 60_000, "on_expiry": "fail" });
    let mut run = Played::of(program(&json!({}), &fails, &json!({})));
    run.calls(&[("look", json!({})), ("pay", json!({ "n": 1 })), ("mail", json!({ "to": "ann" }))]);
    run.returned(id(0), json!({ "rows": ["a"] }));
    assert_eq!(run.waits(), ["1.1", "1.2"]);
    run.now_ms = BEGIN + 60_000;
    let effects = run.apply(EventKind::ApprovalExpired).unwrap();
    assert!(effects.iter().all(|effect| matches!(effect, Effect::Remember(_))), "{effects:?}");
    let Phase::Ended(ending) = &run.state.phase else { panic!("{:?}", run.state.phase) };
    let error = ending.error.as_ref().unwrap();
    assert_eq!(
        (ending.termination, error.code.as_str(), error.retryable),
        (Termination::Approval, "approval_expired", false)
    );
    assert_eq!(error.message, "nobody approved the call of pay in time");
    let entry = |tool: &str, class: &str| (tool.to_owned(), class.to_owned());
    let late = "not called: nobody approved this call in time";
    assert_eq!(run.entries(), [entry("look", ""), entry("pay", late), entry("mail", "not called: the run failed")]);
    assert_eq!(run.state.counters.tool_calls_made, 1);
    assert_eq!(["pay", "mail"].map(|tool| run.state.counters.calls.get(tool).copied().unwrap_or_default()), [0, 0]);
}

#[test]
fn an_escalated_approval_is_asked_for_in_a_new_pause_with_all_that_still_wait() {
    let mut run = Played::waiting(&json!({ "expires_after_ms": 60_000, "on_expiry": "escalate" }), &json!({}));
    run.now_ms = BEGIN + 60_000;
    assert_eq!(run.apply(EventKind::ApprovalExpired), Ok(vec![]));
    assert_eq!((run.pause().number, run.pause().calls.as_slice()), (2, &[id(0), id(1)][..]));
    assert!(
        run.pause().question.text.contains("Nobody approved pay in time: it was escalated."),
        "{}",
        run.pause().question.text
    );
    assert_eq!((run.entries(), run.state.decisions[0].on_expiry), (Vec::new(), Some(OnExpiry::Escalate)));
    let eve = |index| Decided { rights: DecisionRights::Escalated, ..about(index, Decision::Approve) };
    assert!(run.decide(eve(1)).unwrap_err().contains("about escalated approvals only"));
    assert_eq!(run.decide(eve(0)), Ok(vec![]));
    assert_eq!(run.waits(), ["1.1"]);
}

#[test]
fn nothing_expires_in_a_run_that_waits_for_something_else() {
    let mut asked = Played::of(program(&json!({}), &json!({}), &json!({})));
    asked.calls(&[("__pause_for_human__", json!({ "question": "One?" }))]);
    asked.now_ms = i64::MAX;
    assert!(asked.apply(EventKind::ApprovalExpired).unwrap_err().contains("no approval of the run has expired"));
    assert_eq!(asked.pause().number, 1);
    let mut stuck = stuck();
    assert!(stuck.apply(EventKind::ApprovalExpired).is_err());
    let mut thinks = Played::of(program(&json!({}), &json!({}), &json!({})));
    assert!(thinks.apply(EventKind::ApprovalExpired).is_err());
    thinks.apply(says("t")).unwrap();
}
