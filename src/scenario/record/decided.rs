//! The decisions of humans in a run, as a scenario writes them.

use serde_json::Value;

use super::{MadeCall, of_call, of_step};
use crate::engine::event::{CallId, Decided, Decision, Event, EventKind, ToolResult};
use crate::engine::flow::waiting_steps;
use crate::engine::operation::Progress;
use crate::engine::state::{Phase, State};
use crate::engine::waiting_calls::waiting_calls;
use crate::language::scenario::ScenarioDecision;
use crate::policy::word;

/// A decision, and when it was made.
pub(super) struct DatedDecision {
    /// Milliseconds since 1970.
    pub wall_ms: i64,
    /// The decision.
    pub decision: ScenarioDecision,
}

/// What waits for one decision.
struct DecidedQuestion {
    at: Option<String>,
    call: Option<CallId>,
    about: String,
}

/// The decisions that an event is. Those about sub-runs are in the journal of the first run too; that nobody decided in
/// time is only in the journal of the run that waited.
pub(super) fn decisions(state: &State, event: &Event, is_root: bool) -> Vec<DatedDecision> {
    let dated = |decision| DatedDecision { wall_ms: event.at.wall_ms, decision };
    match &event.kind {
        EventKind::ApprovalExpired => {
            vec![dated(ScenarioDecision { expires: Some(true), ..ScenarioDecision::default() })]
        }
        EventKind::Retried(retried) if is_root => {
            let about = Some("model_error".to_owned());
            let by = retried.by.clone();
            vec![dated(ScenarioDecision { about, retry: Some(true), by, ..ScenarioDecision::default() })]
        }
        EventKind::Human(decided) if is_root => {
            let Some(decision) = written(decided) else { return Vec::new() };
            let meant = questions(state).into_iter().filter(|question| {
                decided.at.as_ref().is_none_or(|at| question.at.as_ref() == Some(at))
                    && decided.call.is_none_or(|call| question.call == Some(call))
            });
            let each = meant.map(|question| {
                let (about, at) = (Some(question.about), question.at);
                dated(ScenarioDecision { about, at, ..decision.clone() })
            });
            each.collect()
        }
        _ => Vec::new(),
    }
}

/// All that waits for a human.
fn questions(state: &State) -> Vec<DecidedQuestion> {
    let Phase::Paused { pause, .. } = &state.phase else { return Vec::new() };
    let mut all = Vec::new();
    if state.flow.is_some() {
        for question in waiting_steps(state) {
            let at = Some(question.at);
            if question.calls.is_empty() {
                all.push(DecidedQuestion { at, call: None, about: word::written(&question.kind).unwrap_or_default() });
                continue;
            }
            all.extend(question.calls.into_iter().map(|call| DecidedQuestion {
                at: at.clone(),
                call: Some(CallId { iteration: call.iteration, index: call.index }),
                about: call.action,
            }));
        }
        return all;
    }
    all.extend(waiting_calls(state).into_iter().map(|call| DecidedQuestion {
        at: None,
        call: Some(CallId { iteration: call.iteration, index: call.index }),
        about: call.action,
    }));
    if all.is_empty() {
        all.push(DecidedQuestion { at: None, call: None, about: word::written(&pause.kind).unwrap_or_default() });
    }
    all
}

/// A decision in the words of a scenario; none about a call of unknown outcome, which has an outcome when it is played.
fn written(decided: &Decided) -> Option<ScenarioDecision> {
    let plain = ScenarioDecision { by: decided.by.clone(), ..ScenarioDecision::default() };
    Some(match &decided.decision {
        Decision::Answer(text) => ScenarioDecision { answer: Some(Value::from(text.as_str())), ..plain },
        Decision::Approve => ScenarioDecision { approve: Some(true), ..plain },
        Decision::Deny(reason) => ScenarioDecision { deny: Some(reason.clone().unwrap_or_default()), ..plain },
        Decision::Edit(Value::Object(input)) => ScenarioDecision { edit: Some(input.clone()), ..plain },
        Decision::Edit(_) | Decision::Happened(_) | Decision::Failed(_) | Decision::Retry => return None,
    })
}

/// The call of unknown outcome that a human says has happened or failed, with its result.
pub(super) fn happened(state: &State, event: &EventKind) -> Option<(MadeCall, ToolResult)> {
    let EventKind::Human(Decided { call, at, decision, .. }) = event else { return None };
    let result = match decision {
        Decision::Happened(value) => ToolResult::Ok(value.clone()),
        Decision::Failed(reason) => ToolResult::failed(reason.clone()),
        _ => return None,
    };
    if let Some(flow) = &state.flow {
        let open = flow.open();
        let waits = open.iter().find(|open| open.progress.waits_for_human());
        let at = at.clone().or_else(|| Some(waits?.address.to_string()))?;
        return Some((of_step(state, &at), result));
    }
    let is_open = |known: CallId| state.call(known).is_some_and(|call| matches!(call.progress, Progress::Uncertain(_)));
    let waiting = waiting_calls(state);
    let first = waiting.first().map(|call| CallId { iteration: call.iteration, index: call.index });
    let call = call.or(first).filter(|call| is_open(*call))?;
    Some((of_call(state, call), result))
}
