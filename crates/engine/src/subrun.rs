//! Sub-runs: calls that are runs of another loop. Such a call waits for a human while its sub-run does, and
//! keeps the decision until the sub-run has it.

use super::budget;
use super::effect::{Effect, Effects};
use super::event::{CallId, Decided, Tokens, ToolPaused};
use super::next::Next;
use super::operation::{Call, SettledCost};
use super::outcome::Pause;
use super::question::SubrunQuestion;
use super::state::{LoopState, Phase, Turn};
use loopctl_lang::program::LoopProgram;

/// A sub-run waits for a human.
pub(super) fn paused(program: &LoopProgram, state: &mut LoopState, mut turn: Turn, paused: ToolPaused) -> Next {
    let call = match turn.call_under_way(paused.call) {
        Ok(call) => call,
        Err(refused) => return Next::Refuse { phase: Phase::Acting { turn }, refused },
    };
    let ToolPaused { run_id, asks, tokens, cost_usd, .. } = paused;
    count(program, state, call.settled, tokens, cost_usd);
    call.waits(&run_id, asks, SettledCost::of(tokens, cost_usd));
    Next::Settle(turn)
}

/// The first call whose sub-run waits for a human who has not decided.
fn undecided(turn: &Turn) -> Option<(CallId, SubrunQuestion)> {
    let mut open = turn.calls.iter().filter_map(|call| Some((call.address, call.progress.subrun()?)));
    open.find(|(_, wait)| wait.decided.is_none()).map(|(id, wait)| (id, wait.asks.clone()))
}

/// The pause for the first sub-run that waits for a human, with that sub-run's question.
pub(super) fn pause(state: &mut LoopState, turn: &Turn) -> Option<Box<Pause>> {
    let (id, asks) = undecided(turn)?;
    let pause = state.new_pause(asks.question.clone(), vec![id]);
    Some(Box::new(Pause { asks: Some(Box::new(asks)), ..*pause }))
}

/// Asks the sub-runs again that wait for a human, because their questions may have changed.
pub(super) fn ask_again(mut turn: Turn, effects: &mut Effects) -> Next {
    for call in &mut turn.calls {
        if call.ask_again() {
            effects.push(Effect::CallTool(call.address));
        }
    }
    Next::Wait(Phase::Acting { turn })
}

/// Keeps the decision with the call, and requests that it is passed on.
pub(super) fn decided(pause: &Pause, mut turn: Turn, decided: &Decided, effects: &mut Effects) -> Next {
    let waiting = |call: &&mut Call| pause.calls.contains(&call.address) && call.progress.subrun().is_some();
    for call in turn.calls.iter_mut().filter(waiting) {
        call.decide(decided, None);
        effects.push(Effect::CallTool(call.address));
    }
    Next::Settle(turn)
}

/// Counts what a call used, without the part that was counted when it paused.
pub(super) fn count(
    program: &LoopProgram,
    state: &mut LoopState,
    settled: SettledCost,
    tokens: Option<Tokens>,
    cost_usd: Option<f64>,
) {
    let Some(tokens) = tokens else { return };
    let tokens = tokens.minus(settled.tokens);
    budget::charge(program, state, tokens, cost_usd.map(|cost| cost - settled.cost_usd));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::{Decision, Event, EventKind, Moment, ToolResult, ToolReturned};
    use crate::operation::{AskedFor, Call, Progress};
    use crate::outcome::Termination;
    use crate::question::{Question, SubrunQuestion};
    use crate::state::State;
    use crate::step::step;
    use crate::tests::{decides, started};
    use loopctl_lang::compile::Texts;
    use loopctl_lang::diagnostic::Source;
    use loopctl_lang::program::Program;

    fn program() -> std::sync::Arc<Program> {
        let main = json!({ "type": "loop", "properties": { "mode": "react", "objective": "x", "timeout_ms": 1000,
        "tools": [{ "type": "loop", "name": "helper" }] } });
        let helper = json!({ "type": "loop", "name": "helper", "description": "Helps.", "properties": {
        "mode": "react", "objective": "x", "tools": [{ "type": "action", "name": "do" }] }, "actions": [
        { "action_name": "do", "kind": "http", "description": "Does.", "url": "https://x.example", "http_method": "GET" }] });
        let mut texts = Texts::new(Source::new("loop.json", main.to_string()));
        texts.loops.push(Source::new("loops/helper.json", helper.to_string()));
        let compiled = loopctl_lang::compile::compile(&texts);
        compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
    }

    /// A run whose turn calls the helper `times` times.
    fn calling(program: &Program, times: u32) -> State {
        let mut state = State::new(program);
        step(program, &mut state, at(0, started())).unwrap();
        let call =
            |index| Call { progress: Progress::Requested, ..Call::new(id(index), "helper".to_owned(), json!({}), 0) };
        let calls = (0..times).map(call).collect();
        state.phase = Phase::Acting { turn: Turn { iteration: 1, calls, ..Turn::default() } };
        state
    }

    fn id(index: u32) -> CallId {
        CallId { iteration: 1, index }
    }

    fn at(active_ms: u64, what: EventKind) -> Event {
        Event { at: Moment { wall_ms: 0, active_ms }, kind: what }
    }

    fn asks(index: u32, pause: u32, kind: Termination, used: u64) -> EventKind {
        EventKind::ToolPaused(Box::new(ToolPaused {
            call: id(index),
            run_id: format!("r.1.{index}"),
            asks: SubrunQuestion {
                pause,
                question: Question {
                    run_id: Some(format!("r.1.{index}")),
                    ..Question::new(kind, format!("question {index}"))
                },
                calls: Vec::new(),
                steps: Vec::new(),
                until_ms: None,
            },
            tokens: Some(Tokens { input: used, output: 0, ..Tokens::default() }),
            cost_usd: Some(0.5),
        }))
    }

    fn gives(index: u32, used: u64) -> EventKind {
        EventKind::ToolReturned(ToolReturned {
            attempts: Vec::new(),
            waited_ms: 0,
            call: id(index),
            result: ToolResult::Ok(json!(index)),
            duration_ms: 1,
            tokens: Some(Tokens { input: used, output: 0, ..Tokens::default() }),
            cost_usd: Some(0.75),
            estimated: false,
            at_most: false,
            run_id: Some(format!("r.1.{index}")),
        })
    }

    fn paused(state: &State) -> &Pause {
        let Phase::Paused { pause, .. } = &state.phase else { panic!("{:?}", state.phase) };
        pause
    }

    #[test]
    fn two_loops_of_a_turn_that_ask_are_answered_one_after_the_other() {
        let program = program();
        let mut state = calling(&program, 2);
        let mut take = |what| step(&program, &mut state, at(1, what)).unwrap();
        assert!(take(asks(1, 4, Termination::Human, 10)).is_empty(), "the other is still under way");
        assert!(take(asks(0, 2, Termination::Human, 10)).is_empty());
        assert_eq!(paused(&state).question.text, "question 0");
        let effects = step(&program, &mut state, at(1, decides(Decision::Answer("yes".into()), Some(1)))).unwrap();
        assert_eq!(effects, [Effect::CallTool(id(0))], "only the one that was answered continues");
        let Progress::Asks(AskedFor::Subrun(waits)) = &state.call(id(0)).unwrap().progress else { panic!() };
        assert_eq!(waits.decided.as_ref().unwrap().pause, Some(2), "it is handed on for the pause of the called run");
        step(&program, &mut state, at(1, gives(0, 15))).unwrap();
        assert_eq!((paused(&state).number, paused(&state).question.text.as_str()), (2, "question 1"));
        step(&program, &mut state, at(1, decides(Decision::Answer("no".into()), None))).unwrap();
        let effects = step(&program, &mut state, at(1, gives(1, 30))).unwrap();
        assert_eq!(effects, [Effect::CallModel]);
        assert_eq!(state.counters.tokens.input, 45, "what was counted at a pause is not counted again");
        assert!((state.counters.cost_usd - 1.5).abs() < 1e-9, "{}", state.counters.cost_usd);
        assert_eq!(state.entries()[1].run_id.as_deref(), Some("r.1.1"));
    }

    #[test]
    fn a_loop_that_waits_for_a_human_lets_no_other_one_begin_where_there_is_a_budget() {
        let program = program();
        for (used, next) in [(15, vec![Effect::CallTool(id(1))]), (100, vec![])] {
            let mut state = calling(&program, 2);
            std::sync::Arc::make_mut(&mut state.header).bound.tokens = Some(100);
            let Phase::Acting { turn } = &mut state.phase else { panic!() };
            turn.calls[1].progress = Progress::Held;
            assert!(step(&program, &mut state, at(1, asks(0, 2, Termination::Human, 10))).unwrap().is_empty());
            assert_eq!(paused(&state).question.text, "question 0");
            let effects = step(&program, &mut state, at(1, decides(Decision::Answer("yes".into()), None))).unwrap();
            assert_eq!(effects, [Effect::CallTool(id(0))]);
            assert_eq!(step(&program, &mut state, at(1, gives(0, used))).unwrap(), next);
            // Nothing was left for it: it was not started, and the run has ended.
            assert_eq!(
                matches!(&state.phase, Phase::Ended(ending) if ending.termination == Termination::Budget),
                used == 100
            );
        }
    }

    #[test]
    fn a_decision_is_handed_on_again_by_a_driver_that_takes_the_run_up() {
        let program = program();
        let mut state = calling(&program, 1);
        step(&program, &mut state, at(1, asks(0, 1, Termination::Approval, 1))).unwrap();
        step(&program, &mut state, at(1, decides(Decision::Approve, None))).unwrap();
        for _ in 0..2 {
            let effects = step(&program, &mut state, at(2, EventKind::Resumed)).unwrap();
            assert_eq!(effects, [Effect::CallTool(id(0))]);
            assert!(
                matches!(&state.call(id(0)).unwrap().progress, Progress::Asks(AskedFor::Subrun(waits)) if waits.decided.is_some())
            );
        }
    }

    #[test]
    fn a_run_that_is_asked_again_what_it_asks_is_handed_no_decision_and_counted_once() {
        let program = program();
        let mut state = calling(&program, 1);
        step(&program, &mut state, at(1, asks(0, 1, Termination::Approval, 1))).unwrap();
        let before = state.counters.clone();
        for _ in 0..2 {
            let effects = step(&program, &mut state, at(2, EventKind::Resumed)).unwrap();
            assert_eq!(effects, [Effect::CallTool(id(0))]);
            assert!(
                matches!(&state.call(id(0)).unwrap().progress, Progress::Asks(AskedFor::Subrun(waits)) if waits.decided.is_none())
            );
            step(&program, &mut state.clone(), at(2, decides(Decision::Approve, None))).unwrap_err();
        }
        step(&program, &mut state, at(3, asks(0, 1, Termination::Approval, 1))).unwrap();
        assert!(matches!(&state.phase, Phase::Paused { pause, .. } if pause.number == 2));
        assert_eq!((state.counters.tokens, state.counters.cost_usd), (before.tokens, before.cost_usd));
    }

    #[test]
    fn a_decision_of_another_kind_is_refused_and_leaves_no_mark() {
        let program = program();
        let fit: [(Termination, &[Decision]); 3] = [
            (Termination::Human, &[Decision::Answer("a".into())]),
            (Termination::Approval, &[Decision::Approve, Decision::Deny(None), Decision::Edit(json!({}))]),
            (
                Termination::Uncertain,
                &[Decision::Retry, Decision::Happened(json!(1)), Decision::Failed("no".to_owned())],
            ),
        ];
        for (kind, good) in &fit {
            let mut state = calling(&program, 1);
            step(&program, &mut state, at(1, asks(0, 1, *kind, 1))).unwrap();
            for decision in fit.iter().flat_map(|(_, decisions)| *decisions) {
                let mut tried = state.clone();
                let took = step(&program, &mut tried, at(2, decides(decision.clone(), None)));
                assert_eq!(took.is_ok(), good.contains(decision), "{kind:?} {decision:?}");
                assert_eq!(tried == state, took.is_err());
            }
            let other = Decided { call: Some(id(9)), ..Decided::from(good[0].clone()) };
            step(&program, &mut state, at(2, EventKind::Human(other))).unwrap_err();
        }
    }

    #[test]
    fn the_end_of_the_time_cuts_off_a_loop_that_asks_while_another_is_under_way() {
        let program = program();
        let mut state = calling(&program, 2);
        step(&program, &mut state, at(1, asks(0, 1, Termination::Human, 1))).unwrap();
        step(&program, &mut state, at(1000, EventKind::DeadlinePassed)).unwrap();
        assert!(matches!(&state.phase, Phase::Ended(ending) if ending.termination == Termination::Timeout));
        step(&program, &mut state, at(1000, gives(0, 1))).unwrap_err();
    }

    #[test]
    fn what_another_run_left_bounds_a_run_without_a_budget_of_its_own() {
        let program = program();
        for (tokens, ended) in [(Some(20), true), (Some(21), false), (None, false)] {
            let mut state = calling(&program, 1);
            std::sync::Arc::make_mut(&mut state.header).bound.tokens = tokens;
            step(&program, &mut state, at(1, gives(0, 20))).unwrap();
            assert_eq!(matches!(state.phase, Phase::Ended(_)), ended, "{tokens:?}");
        }
    }
}
