//! Workflows in any order of outcomes: what they give does not depend on it, and nothing that has an outcome is done
//! again.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::address::StepAddress;
use crate::effect::steps_of;
use crate::event::{
    Decided, Decision, Event, EventKind, Moment, Retried, StepLeft, StepPaused, StepRetried, StepReturned, StepWaits,
    Tokens, ToolFault, ToolResult,
};
use crate::flow::progress::Current;
use crate::outcome::{Status, Termination};
use crate::question::SubrunQuestion;
use crate::state::{Phase, State};
use crate::step::step;
use crate::tests::started;
use crate::wait_deadline::due_beside;
use loopctl_lang::compile::{Texts, compile};
use loopctl_lang::diagnostic::Source;
use loopctl_lang::program::Program;
use std::sync::Arc;

const ACTIONS: &str = r#"[
    {"action_name": "work", "kind": "http", "description": "Works.", "http_method": "POST", "url": "https://a.example.com/",
     "parameters": {"type": "object"}},
    {"action_name": "look", "kind": "http", "description": "Looks.", "http_method": "GET", "url": "https://a.example.com/",
     "parameters": {"type": "object"}}]"#;

/// A workflow of a loop over items, some of which contain lists, with approvals, filters and a loop inside.
fn program(concurrency: u32, on_pause: &str, strategy: &str) -> Arc<Program> {
    let document = json!({ "name": "w", "definition": { "actions": [
        { "type": "work", "properties": {} },
        { "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
          "item_variable_name": "one", "max_concurrency": concurrency, "on_pause": on_pause, "failure_strategy": strategy,
          "collect_results": true, "result_key": "all", "summary_key": "counts",
          "actions_to_execute": [
            { "type": "look", "properties": { "id": "@one.id" }, "outputKey": "seen" },
            { "type": "PbotApproval", "filter": { "condition": { "equal": ["@one.asks", true] } },
              "properties": { "comment": "{{one.id}}?", "on_rejected": "go_on" } },
            { "id": "inner", "type": "loop", "filter": { "condition": { "hasKey": "one.list" } }, "properties": {
              "mode": "foreach", "items_path": "@one.list", "item_variable_name": "two", "max_concurrency": concurrency,
              "collect_results": true, "result_key": "twos",
              "actions_to_execute": [{ "type": "work", "properties": { "of": "@one.id", "two": "@two" } }] } },
            { "type": "work", "properties": { "id": "@one.id", "seen": "@seen", "index": "@__index" },
              "filter": { "condition": { "notEqual": ["@one.id", 3] } }, "outputKey": "done" } ] } },
        { "type": "look", "properties": { "counts": "@counts.completed" }, "outputKey": "last" } ] } });
    let mut texts = Texts::new(Source::new("w.json", document.to_string()));
    texts.actions.push(Source::new("actions/a.json", ACTIONS));
    let compiled = compile(&texts);
    compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

/// A world in which each call gives what its input says, outcomes come in an order of chance, and processes die.
struct World {
    program: Arc<Program>,
    state: State,
    journal: Vec<Event>,
    under_way: Vec<String>,
    /// The calls of `work` that returned: none of them may be made again.
    returned: BTreeSet<String>,
    chance: u64,
}

impl World {
    fn new(program: Arc<Program>, items: &Value, seed: u64) -> Self {
        let mut world = Self {
            state: State::new(&program),
            program,
            journal: Vec::new(),
            under_way: Vec::new(),
            returned: BTreeSet::new(),
            chance: seed,
        };
        let EventKind::Started(mut start) = started() else { unreachable!() };
        start.input = json!({ "items": items });
        world.take(EventKind::Started(start));
        world
    }

    fn chance(&mut self, of: usize) -> usize {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.chance >> 33).unwrap() % of.max(1)
    }

    fn take(&mut self, kind: EventKind) {
        let at = Moment { wall_ms: i64::try_from(self.journal.len()).unwrap(), active_ms: 0 };
        let event = Event { at, kind };
        let effects = step(&self.program, &mut self.state, event.clone()).unwrap();
        self.journal.push(event);
        for at in steps_of(&effects).into_iter().map(|at| at.to_string()) {
            assert!(!self.returned.contains(&at), "{at} was done already");
            assert!(!self.under_way.contains(&at), "{at} is under way already");
            self.under_way.push(at);
        }
    }

    /// The process dies: the journal is folded, and the run continues.
    fn die(&mut self) {
        let mut state = State::new(&self.program);
        for event in &self.journal {
            step(&self.program, &mut state, event.clone()).unwrap();
        }
        assert_eq!(state, self.state, "the fold of the journal is the live state");
        self.under_way.clear();
        self.take(EventKind::Resumed);
    }

    /// What a call gives: a pure function of its address and input.
    fn result(&self, at: &str) -> ToolResult {
        let input = &self.state.open_step(&StepAddress::new(at)).unwrap().input;
        if input["id"] == 5 && input.get("seen").is_some() {
            return ToolResult::Failed(ToolFault { class: "five fails".to_owned(), ..ToolFault::default() });
        }
        ToolResult::Ok(json!({ "of": input }))
    }

    /// A step returns what its input says.
    fn returns(&mut self, at: String) {
        let result = self.result(&at);
        let kind = self.state.open_step(&StepAddress::new(&at)).unwrap().name.clone();
        self.returned.insert(at.clone());
        self.take(EventKind::StepReturned(Box::new(StepReturned {
            attempts: Vec::new(),
            waited_ms: 0,
            partly: false,
            outage: false,
            limited: false,
            at,
            kind,
            result,
            duration_ms: 1,
            tokens: None,
            cost_usd: None,
            estimated: false,
            at_most: false,
            run_id: None,
            retryable: false,
        })));
    }

    fn play(mut self, deaths: usize) -> State {
        for _ in 0..10_000 {
            let dies = self.chance(20) < deaths;
            match &self.state.phase {
                Phase::Ended(_) => return self.state,
                Phase::Paused { .. } => self.decide(),
                _ if dies => self.die(),
                _ => {
                    let index = self.chance(self.under_way.len());
                    let at = self.under_way.swap_remove(index);
                    self.returns(at);
                }
            }
        }
        panic!("it does not end");
    }

    fn decide(&mut self) {
        let waiting = super::waiting_steps(&self.state);
        let question = waiting[self.chance(waiting.len())].clone();
        let decision = match question.action.as_str() {
            "PbotApproval" if question.at.len().is_multiple_of(2) => Decision::Approve,
            "PbotApproval" => Decision::Deny(None),
            // A call of unknown outcome did happen, or it is made again: both give the same here.
            _ => {
                let ToolResult::Ok(value) = self.result(&question.at) else {
                    return self.again(question.at);
                };
                self.returned.insert(question.at.clone());
                Decision::Happened(value)
            }
        };
        self.take(EventKind::Human(Decided { at: Some(question.at), ..Decided::from(decision) }));
    }

    fn again(&mut self, at: String) {
        self.take(EventKind::Human(Decided { at: Some(at), ..Decided::from(Decision::Retry) }));
    }
}

/// What a run gives, without times: the answer, or why there is none.
fn given(state: &State) -> Value {
    let Phase::Ended(ending) = &state.phase else { panic!("it has not ended") };
    let answer = ending.answer.as_ref().map(|answer| answer.answer.clone());
    let error = ending.error.as_ref().map(|error| error.code.clone());
    json!({ "status": ending.status.word(), "answer": answer, "error": error })
}

fn items() -> impl Strategy<Value = Value> {
    let item = (0_u32..8, any::<bool>(), prop::option::of(prop::collection::vec(0_u32..4, 0..4)));
    let written = |(id, asks, list): (u32, bool, Option<Vec<u32>>)| {
        let mut item = json!({ "id": id, "asks": asks });
        if let Some(list) = list {
            item["list"] = json!(list);
        }
        item
    };
    prop::collection::vec(item.prop_map(written), 0..7).prop_map(Value::from)
}

proptest! {
    #[test]
    fn the_order_of_outcomes_and_deaths_do_not_change_what_a_workflow_gives(
        items in items(), seed in any::<u64>(), concurrency in 1_u32..9, deaths in 0_usize..4, goes_on in any::<bool>()
    ) {
        let on_pause = if goes_on { "go_on" } else { "wait" };
        let alone = World::new(program(1, "wait", "continue_on_error"), &items, 0).play(0);
        let other = World::new(program(concurrency, on_pause, "continue_on_error"), &items, seed).play(deaths);
        prop_assert_eq!(given(&alone), given(&other));
        prop_assert_eq!(alone.status(), Status::Completed);
    }

    #[test]
    fn a_failing_item_stops_the_loop_and_the_run_says_which_one(
        items in items(), seed in any::<u64>(), concurrency in 1_u32..9, deaths in 0_usize..4
    ) {
        let state = World::new(program(concurrency, "wait", "stop_on_error"), &items, seed).play(deaths);
        let fails = items.as_array().unwrap().iter().any(|item| item["id"] == 5);
        let error = match &state.phase { Phase::Ended(ending) => ending.error.clone(), _ => None };
        prop_assert_eq!(error.is_some(), fails);
        if let Some(error) = error {
            let step = error.step.unwrap();
            let index: usize = step.split('.').nth(1).unwrap().parse().unwrap();
            prop_assert_eq!(&items[index]["id"], &json!(5));
        }
    }
}

#[test]
fn an_event_that_does_not_fit_changes_nothing() {
    let world = World::new(program(2, "wait", "stop_on_error"), &json!([{ "id": 1 }]), 0);
    let mut state = world.state.clone();
    for kind in [
        started(),
        EventKind::ApprovalExpired,
        EventKind::Human(Decided::from(Decision::Approve)),
        EventKind::StepReturned(Box::new(StepReturned {
            attempts: Vec::new(),
            waited_ms: 0,
            partly: false,
            outage: false,
            limited: false,
            at: "each.0.0".to_owned(),
            kind: "look".to_owned(),
            result: ToolResult::Ok(Value::Null),
            duration_ms: 0,
            tokens: None,
            cost_usd: None,
            estimated: false,
            at_most: false,
            run_id: None,
            retryable: false,
        })),
    ] {
        step(&world.program, &mut state, Event { at: Moment { wall_ms: 9, active_ms: 9 }, kind }).unwrap_err();
        assert_eq!(state, world.state);
    }
}

#[test]
fn what_expired_in_a_run_below_is_not_due_again_while_that_run_goes_on() {
    let mut world = World::new(program(2, "go_on", "continue_on_error"), &json!([{ "id": 1 }, { "id": 2 }]), 0);
    let first = world.under_way.remove(0);
    world.returns(first);
    let at = world.under_way.remove(0);
    assert_eq!(world.under_way.len(), 1, "another step is under way");
    let form = json!({ "at": "form", "kind": "human", "question": "Why?", "action": "PbotForm", "run_id": "below" });
    let asks = json!({ "run_id": "below", "pause": 1, "kind": "human", "question": "Why?", "steps": [form] });
    let mut asks: SubrunQuestion = serde_json::from_value(asks).unwrap();
    asks.steps[0].expires_at_ms = Some(1);
    let (at_step, run_id) = (at.clone(), "below".to_owned());
    world.take(EventKind::StepPaused(Box::new(StepPaused { at: at_step, run_id, asks, tokens: None, cost_usd: None })));
    assert_eq!(due_beside(&world.state), Some(1));
    world.take(EventKind::ApprovalExpired);
    assert!(world.under_way.contains(&at), "the run below is resumed");
    assert_eq!(due_beside(&world.state), None);
    world.die();
    assert!(world.under_way.contains(&at));
    assert_eq!(due_beside(&world.state), None);
}

/// A call of `work` gave nothing.
fn work_returned(at: &str) -> EventKind {
    EventKind::StepReturned(Box::new(StepReturned {
        attempts: Vec::new(),
        waited_ms: 0,
        partly: false,
        outage: false,
        limited: false,
        at: at.to_owned(),
        kind: "work".to_owned(),
        result: ToolResult::Ok(Value::Null),
        duration_ms: 0,
        tokens: None,
        cost_usd: None,
        estimated: false,
        at_most: false,
        run_id: None,
        retryable: false,
    }))
}

#[test]
fn a_run_of_an_older_edition_takes_no_text_for_a_list() {
    for (edition, fails) in [(0, true), (1, true), (2, false)] {
        let EventKind::Started(mut start) = started() else { unreachable!() };
        (start.input, start.edition) = (json!({ "items": "[{\"id\": 1}]" }), edition);
        let program = program(1, "wait", "stop_on_error");
        let mut state = State::new(&program);
        for (wall_ms, kind) in (0..).zip([EventKind::Started(start), work_returned("0")]) {
            step(&program, &mut state, Event { at: Moment { wall_ms, active_ms: 0 }, kind }).unwrap();
        }
        assert_eq!(matches!(state.phase, Phase::Ended(_)), fails, "{edition}: {:?}", state.phase);
    }
}

#[test]
fn what_the_texts_of_a_step_read_is_bounded_together_but_not_in_runs_of_older_editions() {
    let text = "{{#each input.l}}{{#if @root.input.t.length}}{{/if}}{{/each}}";
    let document = json!({ "name": "w", "definition": { "actions": [
        { "id": "a", "type": "look", "properties": { "x": text, "y": text, "z": text } } ] } });
    let mut texts = Texts::new(Source::new("w.json", document.to_string()));
    texts.actions.push(Source::new("actions/a.json", ACTIONS));
    let program = compile(&texts).program.unwrap();
    for (edition, fails) in [(5, false), (6, false), (7, true)] {
        let EventKind::Started(mut start) = started() else { unreachable!() };
        let input = json!({ "l": vec![0; 25], "t": "x".repeat(2 << 20) });
        (start.input, start.edition) = (input, edition);
        let mut state = State::new(&program);
        let event = Event { at: Moment::default(), kind: EventKind::Started(start) };
        step(&program, &mut state, event).unwrap();
        let Phase::Ended(ending) = &state.phase else {
            assert!(!fails, "{edition}: {:?}", state.phase);
            continue;
        };
        let message = &ending.error.as_ref().unwrap().message;
        assert!(
            fails && message.contains("can't be made: the templates read more than 128 MiB"),
            "{edition}: {message}"
        );
    }
}

/// A run of this edition that asks, with this step after its approval, and a no to it.
fn denied(edition: u32, later: &Value) -> (World, Decided) {
    let document = json!({ "name": "w", "definition": { "actions": [
        { "id": "ok", "type": "PbotApproval", "properties": { "comment": "Pay?" } }, later ] } });
    let mut texts = Texts::new(Source::new("w.json", document.to_string()));
    texts.actions.push(Source::new("actions/a.json", ACTIONS));
    let program = compile(&texts).program.unwrap();
    let mut world = World {
        state: State::new(&program),
        program,
        journal: Vec::new(),
        under_way: Vec::new(),
        returned: BTreeSet::new(),
        chance: 0,
    };
    let EventKind::Started(mut start) = started() else { unreachable!() };
    start.edition = edition;
    world.take(EventKind::Started(start));
    (world, Decided::from(Decision::Deny(None)))
}

#[test]
fn the_letters_of_later_steps_decide_what_a_no_does_in_runs_of_earlier_editions_only() {
    let later = json!({ "type": "work", "properties": { "t": "to bills__approved" } });
    let (mut old, no) = denied(1, &later);
    old.take(EventKind::Human(no));
    assert_eq!((old.state.status(), old.under_way.len()), (Status::Running, 1), "its journal continues");
    let (mut new, no) = denied(crate::event::EDITION, &later);
    new.take(EventKind::Human(no));
    assert_eq!((new.state.status(), new.under_way.len()), (Status::Failed, 0));
}

#[test]
fn a_filter_that_something_else_may_make_hold_holds_its_step_in_runs_of_the_second_edition_only() {
    let yes = json!({ "equal": ["@__approved", true] });
    let filter = json!({ "condition": { "or": [yes, { "equal": ["@input.force", true] }] } });
    let later = json!({ "type": "work", "properties": { "t": "x" }, "filter": filter });
    for (edition, status) in [(2, Status::Completed), (3, Status::Failed)] {
        let (mut world, no) = denied(edition, &later);
        world.take(EventKind::Human(no));
        assert_eq!((world.state.status(), world.under_way.len()), (status, 0), "{edition}");
        let folded = world.journal.iter().fold(State::new(&world.program), |mut state, event| {
            step(&world.program, &mut state, event.clone()).unwrap();
            state
        });
        assert_eq!(folded, world.state, "{edition}");
    }
}

#[test]
fn what_a_step_used_before_its_driver_left_it_counts_for_the_run_and_for_its_item() {
    let program = program(1, "wait", "stop_on_error");
    let mut state = State::new(&program);
    let EventKind::Started(mut start) = started() else { unreachable!() };
    start.input = json!({ "items": [{ "id": 1 }] });
    let mut at = 0;
    let mut take = |state: &mut State, kind| {
        at += 1;
        step(&program, state, Event { at: Moment { wall_ms: at, active_ms: 0 }, kind }).unwrap()
    };
    take(&mut state, EventKind::Started(start));
    let first = steps_of(&take(&mut state, work_returned("0")));
    let tokens = Some(Tokens { input: 10, output: 5, ..Tokens::default() });
    let left = StepLeft { at: first[0].to_string(), tokens, cost_usd: None };
    take(&mut state, EventKind::StepLeft(left.clone()));
    let Current::Items(items) = &state.as_flow().unwrap().progress.root.current else { unreachable!() };
    assert_eq!((state.counters.tokens.input, items.open[&0].spent.tokens.output), (10, 5));
    let twice = Event { at: Moment { wall_ms: 9, active_ms: 0 }, kind: EventKind::StepLeft(left) };
    assert!(step(&program, &mut state, twice).is_err(), "it is not under way");
    assert_eq!(steps_of(&take(&mut state, EventKind::Resumed)), first);
    assert_eq!(state.counters.tokens.input, 10);
}

#[test]
fn a_step_that_waits_for_its_next_attempt_was_not_called_when_its_driver_died() {
    let program = program(1, "wait", "stop_on_error");
    let mut state = State::new(&program);
    let take = |state: &mut State, wall_ms: i64, kind| {
        step(&program, state, Event { at: Moment { wall_ms, active_ms: 0 }, kind }).unwrap()
    };
    let EventKind::Started(mut start) = started() else { unreachable!() };
    start.input = json!({ "items": [] });
    let first = steps_of(&take(&mut state, 1, EventKind::Started(start)));
    let (at, error) = (first[0].to_string(), ToolFault::new("no room".to_owned(), ""));
    let failed = StepRetried { at, attempt: 1, error, duration_ms: 1, waited_ms: 0, delay_ms: 1_000, lost: false };
    assert_eq!(steps_of(&take(&mut state, 2, EventKind::StepRetried(Box::new(failed)))), first);
    for wall_ms in [3, 1_001] {
        assert_eq!(steps_of(&take(&mut state, wall_ms, EventKind::Resumed)), first);
        assert_eq!(state.status(), Status::Running);
    }
    // It was due: nobody knows whether it was called.
    assert_eq!(steps_of(&take(&mut state, 1_002, EventKind::Resumed)), []);
    assert_eq!(state.status(), Status::Paused);
}

#[test]
fn a_step_that_waits_for_room_is_requested_again_by_a_retry_or_when_the_time_has_come() {
    let program = program(1, "wait", "stop_on_error");
    let mut state = State::new(&program);
    let take = |state: &mut State, wall_ms: i64, kind| {
        step(&program, state, Event { at: Moment { wall_ms, active_ms: 0 }, kind })
    };
    let EventKind::Started(mut start) = started() else { unreachable!() };
    start.input = json!({ "items": [] });
    let first = steps_of(&take(&mut state, 1, EventKind::Started(start)).unwrap());
    let tokens = Some(Tokens { input: 10, output: 5, ..Tokens::default() });
    let waits = || {
        let (at, why) = (first[0].to_string(), "no room".to_owned());
        EventKind::StepWaits(Box::new(StepWaits { at, why, until_ms: 1_000, tokens, cost_usd: None }))
    };
    let retry = || EventKind::Retried(Retried::default());
    let mut used = 0;
    for (wall_ms, again) in [(2, EventKind::Resumed), (3, retry()), (1_001, EventKind::ApprovalExpired)] {
        assert_eq!(steps_of(&take(&mut state, wall_ms, waits()).unwrap()), []);
        used += 10;
        assert_eq!((state.status(), state.counters.tokens.input), (Status::Paused, used));
        let Phase::Paused { pause, .. } = &state.phase else { unreachable!() };
        assert_eq!((pause.question.kind, pause.question.text.as_str()), (Termination::SpendingLimit, "no room"));
        let early = take(&mut state.clone(), 999, EventKind::ApprovalExpired);
        assert!(early.is_err());
        assert_eq!(steps_of(&take(&mut state, wall_ms, again).unwrap()), first);
        assert_eq!(state.status(), Status::Running);
    }
    assert!(take(&mut state, 1_002, retry()).is_err(), "nothing waits any more");
}

#[test]
fn with_a_spent_budget_no_step_begins_that_asks_no_model_but_in_runs_of_older_editions() {
    let steps = json!([
        { "id": "judge", "type": "loop", "properties": { "mode": "react", "objective": "Judge.", "tools": [{ "type": "action", "name": "look" }] } },
        { "id": "pay", "type": "work", "properties": {} } ]);
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
        "item_variable_name": "one", "item_budget": { "tokens": 10 }, "actions_to_execute": steps } });
    let budget = json!({ "tokens": 10 });
    for definition in [json!({ "budget": budget, "actions": steps }), json!({ "actions": [each] })] {
        let mut texts = Texts::new(Source::new("w.json", json!({ "name": "w", "definition": definition }).to_string()));
        texts.actions.push(Source::new("actions/a.json", ACTIONS));
        let program = compile(&texts).program.unwrap();
        for (edition, requested, status) in [(8, 1, Status::Running), (9, 0, Status::Failed)] {
            let EventKind::Started(mut start) = started() else { unreachable!() };
            (start.input, start.edition) = (json!({ "items": [1] }), edition);
            let mut state = State::new(&program);
            let mut take = |wall_ms, kind| {
                steps_of(&step(&program, &mut state, Event { at: Moment { wall_ms, active_ms: 0 }, kind }).unwrap())
            };
            let first = take(1, EventKind::Started(start));
            let EventKind::StepReturned(mut judged) = work_returned(&first[0].to_string()) else { unreachable!() };
            judged.kind = "loop".to_owned();
            judged.tokens = Some(Tokens { input: 10, output: 5, ..Tokens::default() });
            assert_eq!(take(2, EventKind::StepReturned(judged)).len(), requested, "{edition}: {definition}");
            assert_eq!(state.status(), status, "{edition}: {definition}");
        }
    }
}

#[test]
fn a_workflow_that_asks_no_model_needs_nothing_of_the_budget_above_it() {
    let document =
        json!({ "name": "w", "definition": { "actions": [{ "id": "pay", "type": "work", "properties": {} }] } });
    let mut texts = Texts::new(Source::new("w.json", document.to_string()));
    texts.actions.push(Source::new("actions/a.json", ACTIONS));
    let program = compile(&texts).program.unwrap();
    let EventKind::Started(mut start) = started() else { unreachable!() };
    start.bound.tokens = Some(0);
    let mut state = State::new(&program);
    let event = Event { at: Moment::default(), kind: EventKind::Started(start) };
    assert_eq!(steps_of(&step(&program, &mut state, event).unwrap()).len(), 1);
}
