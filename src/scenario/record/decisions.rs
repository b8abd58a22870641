//! The decisions of humans in a run, as a scenario writes them.

use serde_json::Value;

use super::{MadeCall, of_call, of_step};
use crate::engine::event::{CallId, Decided, Decision, Event, EventKind, ToolResult};
use crate::engine::operation::Progress;
use crate::engine::state::State;
use crate::engine::waiting_calls::waiting_calls;
use crate::language::scenario::ScenarioDecision;
use crate::policy::word;
use crate::scenario::decisions::waiting;

/// A decision, and when it was made.
pub(super) struct DatedDecision {
    /// Milliseconds since 1970.
    pub wall_ms: i64,
    pub decision: ScenarioDecision,
}

/// The decisions that an event is. Those about sub-runs are in the journal of the first run too; that nobody decided in
/// time is only in the journal of the run that waited.
pub(super) fn decisions(state: &State, event: &Event, is_root: bool) -> Vec<DatedDecision> {
    let dated = |decision| DatedDecision { wall_ms: event.at.wall_ms, decision };
    match &event.kind {
        // A wait that is over needs no decision.
        EventKind::ApprovalExpired if only_waits_end(state, event.at.wall_ms) => Vec::new(),
        EventKind::ApprovalExpired => {
            // An event that did not come needs no decision, and is not to take this one.
            let asked = waiting(state).into_iter().find(|question| !question.kind.is_wait());
            let about = asked.and_then(|question| word::written(&question.kind));
            vec![dated(ScenarioDecision { about, expires: Some(true), ..ScenarioDecision::default() })]
        }
        EventKind::Retried(retried) if is_root => {
            let about = Some("model_error".to_owned());
            let by = retried.by.clone();
            vec![dated(ScenarioDecision { about, retry: Some(true), by, ..ScenarioDecision::default() })]
        }
        EventKind::Human(decided) if is_root => {
            let Some(decision) = written(decided) else { return Vec::new() };
            let meant = waiting(state).into_iter().filter(|question| {
                decided.at.as_ref().is_none_or(|at| question.at.as_ref() == Some(at))
                    && decided.call.is_none_or(|call| question.call == Some(call))
            });
            let each = meant.map(|question| {
                let about = question.call.map(|_| question.action).or_else(|| word::written(&question.kind));
                dated(ScenarioDecision { about, at: question.at, ..decision.clone() })
            });
            each.collect()
        }
        _ => Vec::new(),
    }
}

/// Whether all that is over by this time are waits: the play comes to their ends by itself.
fn only_waits_end(state: &State, now_ms: i64) -> bool {
    let mut over = state.open_steps().into_iter().filter(|open| open.progress.is_expired(now_ms)).peekable();
    over.peek().is_some() && over.all(|open| matches!(open.progress, Progress::Waits(_)))
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
    if matches!(state, State::Flow(_)) {
        let open = state.open_steps();
        let waits = open.iter().find(|open| open.progress.waits_for_human());
        let at = at.clone().or_else(|| Some(waits?.address.to_string()))?;
        return Some((of_step(state, &at), result));
    }
    let is_open = |known: CallId| state.call(known).is_some_and(|call| matches!(call.progress, Progress::Uncertain(_)));
    let first = waiting_calls(state).first().map(|call| call.call);
    let call = call.or(first).filter(|call| is_open(*call))?;
    Some((of_call(state, call), result))
}
