//! Applies the decision of a human about a pause.

use serde_json::Value;

use super::approval::{NOT_ESCALATED, may_take};
use super::consent;
use super::conversation::Role;
use super::decision::{self, OTHER_CALL, SEVERAL_CALLS, reported_failure};
use super::decision_record::{ApprovalCount, DecisionRecord};
use super::dialect;
use super::effect::{Effects, Refused};
use super::event::{CallId, Decided, Decision, DecisionRights, ToolResult};
use super::next::Next;
use super::outcome::{Pause, Termination};
use super::state::{Call, CallProgress, Phase, RunHeader, State, Turn};
use super::subrun;
use super::turn::{self, denied};
use super::validate;
use crate::program::Program;

/// A pause, and the turn whose calls wait; none for a stuck run.
pub(super) struct Paused {
    /// The pause.
    pub pause: Box<Pause>,
    /// The turn.
    pub turn: Option<Turn>,
}

impl Paused {
    fn calls(&self) -> &[Call] {
        self.turn.as_ref().map(|turn| turn.calls.as_slice()).unwrap_or_default()
    }

    /// Whether a decision fits.
    ///
    /// # Errors
    /// Why it does not, and what would.
    fn fits(&self, program: &Program, state: &State, decided: &Decided) -> Result<(), Refused> {
        let (pause, header) = (&self.pause, &state.header);
        if let Some(number) = decided.pause
            && number != pause.number
        {
            let how = if number < pause.number { "is over" } else { "has not come yet" };
            return Err(Refused::new(format!("pause {number} {how}; the run is in pause {}", pause.number)));
        }
        if let Some(asks) = &pause.asks {
            return subrun::fits(asks, decided, state.now.wall_ms);
        }
        if let Some(call) = decided.call
            && !self.waits(call)
        {
            let others: Vec<String> =
                pause.calls.iter().filter(|id| self.waits(**id)).map(ToString::to_string).collect();
            let more = if others.is_empty() { String::new() } else { format!("; what waits: {}", others.join(", ")) };
            return Err(Refused::new(format!("call {call} does not wait{more}")));
        }
        let only = self.meant(header, decided);
        if decided.hash.is_some() && only.is_none() {
            return Err(Refused::new(OTHER_CALL));
        }
        decision::is_of_kind(pause.kind, &decided.decision)?;
        if decided.rights == DecisionRights::Escalated && pause.kind != Termination::Approval {
            return Err(Refused::new(NOT_ESCALATED));
        }
        for call in self.calls().iter().filter(|call| pause.calls.contains(&call.id)) {
            if let CallProgress::AwaitsApproval(awaited) = &call.progress
                && only.is_none_or(|id| id == call.id)
            {
                may_take(awaited, &call.tool, decided, state.now.wall_ms)?;
            }
        }
        let several = self.calls().iter().filter(|call| is_asked_about(pause, call)).count() > 1;
        match &decided.decision {
            // A decision about one call never makes another call. All calls may be denied at once.
            Decision::Approve | Decision::Edit(_) | Decision::Happened(_) | Decision::Failed(_) | Decision::Retry
                if several && only.is_none() =>
            {
                Err(Refused::new(SEVERAL_CALLS))
            }
            Decision::Edit(input) => self.accepts(program, only, input),
            _ => Ok(()),
        }
    }

    /// The one call that the decision names, by its id or by its hash.
    fn meant(&self, header: &RunHeader, decided: &Decided) -> Option<CallId> {
        let Some(hash) = &decided.hash else { return decided.call };
        let named = |call: &&Call| {
            is_asked_about(&self.pause, call)
                && decided.call.is_none_or(|id| id == call.id)
                && consent::hash(header, call) == *hash
        };
        self.calls().iter().find(named).map(|call| call.id)
    }

    fn waits(&self, id: CallId) -> bool {
        let pause = &self.pause;
        let open = |call: &Call| call.id == id && (is_undecided(call) || pause.kind == Termination::Human);
        pause.calls.contains(&id) && self.calls().iter().any(open)
    }

    /// Whether an edited input matches the tool's schema, like the model's own input.
    fn accepts(&self, program: &Program, only: Option<CallId>, input: &Value) -> Result<(), Refused> {
        let meant = self.calls().iter().filter(|call| match only {
            Some(id) => call.id == id,
            None => is_asked_about(&self.pause, call),
        });
        for call in meant {
            let Some(tool) = turn::tool_of(program, call) else { continue };
            let faults = tool.parameters.faults(input);
            if !faults.is_empty() {
                return Err(Refused::new(format!("the edited input is not accepted:{}", validate::list(&faults))));
            }
        }
        Ok(())
    }
}

fn is_undecided(call: &Call) -> bool {
    matches!(call.progress, CallProgress::AwaitsApproval(_) | CallProgress::Uncertain(_))
}

/// Whether this pause is about the call. Another call of the turn may wait for its own pause.
fn is_asked_about(pause: &Pause, call: &Call) -> bool {
    is_undecided(call) && pause.calls.contains(&call.id)
}

/// Applies a decision.
pub(super) fn decided(
    program: &Program,
    state: &mut State,
    paused: Paused,
    decided: Decided,
    effects: &mut Effects,
) -> Next {
    if let Err(refused) = paused.fits(program, state, &decided) {
        let Paused { pause, turn } = paused;
        return Next::Refuse { phase: Phase::Paused { pause, turn }, refused };
    }
    state.interrupted = false;
    if paused.pause.kind == Termination::ModelError && paused.pause.asks.is_none() {
        return Next::ask_again(paused.pause.forced);
    }
    // The human's input is new to the agent: repetitions are counted from here.
    state.watch.steps.clear();
    let only = paused.meant(&state.header, &decided);
    let Paused { pause, turn } = paused;
    let Some(mut turn) = turn else {
        state.decisions.push(DecisionRecord::new(state.now.wall_ms, pause.number, &decided));
        // The answer for a stuck run is guidance.
        if let Decision::Answer(text) = decided.decision {
            let words = dialect::write_guidance(program.properties.dialect, &text);
            state.conversation.push(Role::User, words);
        }
        return Next::Think;
    };
    if let Some(asks) = &pause.asks {
        let record = DecisionRecord::new(state.now.wall_ms, pause.number, &decided);
        state.decisions.push(DecisionRecord { run_id: Some(asks.run_id.clone()), ..record });
        return subrun::decided(&pause, turn, &decided, effects);
    }
    for call in &mut turn.calls {
        let meant = only.is_none_or(|id| id == call.id) && pause.calls.contains(&call.id);
        if meant && (is_undecided(call) || pause.kind == Termination::Human) {
            let record = DecisionRecord::new(state.now.wall_ms, pause.number, &decided);
            let record = record.about(call.id, consent::hash(&state.header, call), &call.input);
            let approvals = decide(state, call, &decided);
            state.decisions.push(DecisionRecord { approvals, ..record });
        }
    }
    let open: Vec<&Call> = turn.calls.iter().filter(|call| is_asked_about(&pause, call)).collect();
    let is_edit = matches!(decided.decision, Decision::Edit(_));
    if is_edit && open.iter().any(|call| only.is_none_or(|id| id == call.id)) {
        // Another person must approve the call as it is now.
        let ids = open.iter().map(|call| call.id).collect();
        return turn::ask_approval(program, state, turn, ids);
    }
    if !open.is_empty() {
        // The other calls are decided one by one; no call is made before all are decided.
        return Next::Wait(Phase::Paused { pause, turn: Some(turn) });
    }
    decided_all(program, state, turn, effects)
}

/// All waiting calls of a turn are decided: those that may be made are called.
pub(super) fn decided_all(program: &Program, state: &mut State, mut turn: Turn, effects: &mut Effects) -> Next {
    if let Some(question) = turn::question_of(program, &turn) {
        return turn::ask_human(state, turn, question);
    }
    for call in turn.calls.iter_mut().filter(|call| call.progress == CallProgress::Asked) {
        turn::request(state, call, effects);
    }
    Next::Settle(turn)
}

/// Applies a decision to one call; returns how many have approved it, when several must.
fn decide(state: &mut State, call: &mut Call, decided: &Decided) -> Option<ApprovalCount> {
    let mut count = None;
    let approval = matches!(call.progress, CallProgress::AwaitsApproval(_));
    if let (CallProgress::AwaitsApproval(awaited), Decision::Approve | Decision::Edit(_)) =
        (&mut call.progress, &decided.decision)
    {
        if let Decision::Edit(input) = &decided.decision {
            // The approvals so far were for the other input.
            awaited.approved_by.clear();
            call.input = input.clone();
        }
        let is_last = awaited.approve(decided);
        count = ApprovalCount::of(awaited);
        if !is_last {
            return count;
        }
    }
    call.progress = match &decided.decision {
        Decision::Answer(text) => done(ToolResult::Ok(Value::String(text.clone()))),
        Decision::Deny(reason) => done(denied(reason.as_deref())),
        Decision::Happened(value) => done(ToolResult::Ok(value.clone())),
        Decision::Failed(reason) => done(ToolResult::failed(reported_failure(reason))),
        Decision::Retry => CallProgress::Asked,
        Decision::Approve | Decision::Edit(_) => CallProgress::Held,
    };
    if approval && call.progress != CallProgress::Held {
        // A denied call was not made: it does not count towards `max_calls`.
        state.counters.unmade(&call.tool);
    }
    count
}

fn done(result: ToolResult) -> CallProgress {
    CallProgress::Done { result, duration_ms: 0 }
}
