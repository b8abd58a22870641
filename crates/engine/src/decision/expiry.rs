//! Nobody decided about a waiting call in time: the call is denied, the run fails, or the question is escalated.

use super::decision_record::DecisionRecord;
use super::human::{self, Paused};
use crate::effect::{Effect, Effects};
use crate::event::ToolResult;
use crate::next::Next;
use crate::operation::{AskedFor, Call, Progress};
use crate::outcome::{RunError, Termination};
use crate::state::{LoopState, Phase, Turn};
use crate::turn;
use loopctl_lang::language::approval::OnExpiry;
use loopctl_lang::program::LoopProgram;

/// What the model reads of a call that nobody approved in time.
const LATE: &str = "not called: nobody approved this call in time";

/// Applies the expiry of all approvals that are due.
pub(crate) fn expired(program: &LoopProgram, state: &mut LoopState, paused: Paused, effects: &mut Effects) -> Next {
    let Paused { pause, turn } = paused;
    let now_ms = state.now.wall_ms;
    let is_due = |call: &Call| pause.calls.contains(&call.address) && call.progress.is_expired(now_ms);
    // The approvals of a sub-run expire there.
    let is_own = pause.question.kind == Termination::Approval && pause.asks.is_none();
    let Some(mut turn) = turn.clone().filter(|turn| is_own && turn.calls.iter().any(is_due)) else {
        return Next::refuse(Phase::Paused { pause, turn }, "no approval of the run has expired");
    };
    state.interrupted = false;
    let (mut escalated, mut failed) = (false, None);
    for call in turn.calls.iter_mut().filter(|call| is_due(call)) {
        let before = call.clone();
        let Some(on_expiry) = call.expire(now_ms) else { continue };
        match on_expiry {
            OnExpiry::Escalate => escalated = true,
            OnExpiry::Deny => late(state, call),
            OnExpiry::Fail => {
                failed = Some(call.name.clone());
                late(state, call);
            }
        }
        let record = DecisionRecord::of_expiry(now_ms, pause.number, on_expiry);
        let record = before.record(&state.header, record);
        state.decisions.push(record);
    }
    if let Some(tool) = failed {
        return fail(program, state, turn, &tool, effects);
    }
    let waits = |call: &&Call| {
        matches!(call.progress, Progress::Asks(AskedFor::Approval(_))) && pause.calls.contains(&call.address)
    };
    let open: Vec<_> = turn.calls.iter().filter(waits).map(|call| call.address).collect();
    if escalated {
        return turn::ask_approval(program, state, turn, open);
    }
    if !open.is_empty() {
        return Next::Wait(Phase::Paused { pause, turn: Some(turn) });
    }
    human::decided_all(program, state, turn, effects)
}

fn late(state: &mut LoopState, call: &mut Call) {
    state.counters.denied(&call.name);
    call.progress = Progress::done(ToolResult::failed(LATE));
}

/// The run fails; none of the calls that still wait is made.
fn fail(program: &LoopProgram, state: &mut LoopState, mut turn: Turn, tool: &str, effects: &mut Effects) -> Next {
    for call in &mut turn.calls {
        let was_made = matches!(call.progress, Progress::Done { .. } | Progress::Asks(AskedFor::Subrun(_)));
        if !was_made {
            state.counters.unmade(&call.name);
            let result = ToolResult::failed("not called: the run failed");
            call.progress = Progress::done(result);
        }
    }
    turn::record(program, state, turn, effects);
    effects.retain(|effect| matches!(effect, Effect::Remember(_)));
    let message = format!("nobody approved the call of {tool} in time");
    let error = RunError { code: "approval_expired".to_owned(), message, retryable: false, step: None };
    Next::fail(state, Termination::Approval, error)
}
