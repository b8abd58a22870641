//! Applies the decision of a human about a pause.

use serde_json::Value;

use super::awaited_approval::NOT_ESCALATED;
use super::decision_record::{ApprovalCount, DecisionRecord};
use super::subrun_decision;
use crate::conversation::Role;
use crate::decision;
use crate::dialect;
use crate::effect::{Effects, Refused};
use crate::event::{CallId, Decided, Decision, DecisionRights, ToolResult};
use crate::next::Next;
use crate::operation::{AfterDecision, AskedFor, Call, Conclusion, Progress, Taken};
use crate::outcome::{Pause, Termination};
use crate::question::SubrunQuestion;
use crate::state::{LoopState, Phase, RunHeader, Turn};
use crate::subrun;
use crate::turn::{self, denied};
use loopctl_lang::program::LoopProgram;

/// A pause, and the turn whose calls wait; none for a stuck run.
pub(crate) struct Paused {
    /// The pause.
    pub pause: Box<Pause>,
    /// The turn.
    pub turn: Option<Turn>,
}

impl Paused {
    fn calls(&self) -> PausedCalls<'_> {
        PausedCalls::new(&self.pause, self.turn.as_ref())
    }
}

/// A pause, and the calls of its turn.
#[derive(Clone, Copy)]
struct PausedCalls<'a> {
    pause: &'a Pause,
    calls: &'a [Call],
}

/// Whether a decision fits a run that is paused: what [`decided`] would refuse is refused, and a decision about a step
/// where none waits. A journal may hold such a decision, which was taken as one about the call that waits.
///
/// # Errors
/// Why it does not, and what would.
pub(crate) fn fits(
    program: &LoopProgram,
    state: &LoopState,
    pause: &Pause,
    turn: Option<&Turn>,
    decided: &Decided,
) -> Result<(), Refused> {
    let calls = PausedCalls::new(pause, turn);
    if let Some(by_call) = calls.by_call(decided) {
        return calls.fits(program, state, &by_call);
    }
    let have_steps = pause.asks.as_ref().is_some_and(|asks| !asks.steps.is_empty());
    match &decided.at {
        Some(at) if !have_steps => Err(Refused::new(format!("no step waits at `{at}`{}", calls.what_waits()))),
        _ => calls.fits(program, state, decided),
    }
}

impl<'a> PausedCalls<'a> {
    fn new(pause: &'a Pause, turn: Option<&'a Turn>) -> Self {
        Self { pause, calls: turn.map(|turn| turn.calls.as_slice()).unwrap_or_default() }
    }

    /// The same decision by the call that it names as an address: the question of a server is shown as that of a step.
    fn by_call(self, decided: &Decided) -> Option<Decided> {
        let id: CallId = decided.at.as_deref()?.parse().ok()?;
        let is_meant = |call: &&Call| call.address == id && is_of_server(call) && is_asked_about(self.pause, call);
        self.calls.iter().find(is_meant)?;
        Some(Decided { at: None, call: Some(id), ..decided.clone() })
    }

    /// Whether a decision fits.
    ///
    /// # Errors
    /// Why it does not, and what would.
    fn fits(self, program: &LoopProgram, state: &LoopState, decided: &Decided) -> Result<(), Refused> {
        let (pause, header) = (self.pause, &state.header);
        if let Some(number) = decided.pause
            && number != pause.number
        {
            let how = if number < pause.number { "is over" } else { "has not come yet" };
            return Err(Refused::new(format!("pause {number} {how}; the run is in pause {}", pause.number)));
        }
        if let Some(asks) = &pause.asks {
            return subrun_decision::fits(asks, decided, state.now.wall_ms);
        }
        if let Some(call) = decided.call
            && !self.waits(call)
        {
            return Err(Refused::new(format!("call {call} does not wait{}", self.what_waits())));
        }
        let only = self.meant(header, decided);
        if decided.hash.is_some() && only.is_none() {
            return Err(Refused::Unseen);
        }
        let is_of_server = self.calls.iter().any(|call| is_of_server(call) && is_asked_about(pause, call));
        if !is_of_server {
            decision::is_of_kind(pause.question.kind, &decided.decision)?;
        }
        if decided.rights == DecisionRights::Escalated && pause.question.kind != Termination::Approval {
            return Err(Refused::rights(NOT_ESCALATED));
        }
        let meant = |call: &&Call| is_asked_about(pause, call) && only.is_none_or(|id| id == call.address);
        // The hash names the one call that is meant.
        let by_id = Decided { hash: None, ..decided.clone() };
        for call in self.calls.iter().filter(meant) {
            call.accepts(&by_id, header, turn::tool_of(program, call), state.now.wall_ms)?;
        }
        let several = self.calls.iter().filter(|call| is_asked_about(pause, call)).count() > 1;
        match &decided.decision {
            // A decision about one call never makes another call. All calls may be denied at once.
            Decision::Approve | Decision::Edit(_) | Decision::Happened(_) | Decision::Failed(_) | Decision::Retry
                if several && only.is_none() =>
            {
                Err(Refused::SeveralCalls)
            }
            _ => Ok(()),
        }
    }

    /// The calls that wait, as the end of a refusal.
    fn what_waits(self) -> String {
        let of_run = |asks: &SubrunQuestion| asks.calls.iter().map(|asked| asked.call.to_string()).collect();
        let of_turn = || self.pause.calls.iter().filter(|id| self.waits(**id)).map(ToString::to_string).collect();
        let waiting: Vec<String> = self.pause.asks.as_deref().map_or_else(of_turn, of_run);
        if waiting.is_empty() { String::new() } else { format!("; what waits: {}", waiting.join(", ")) }
    }

    /// The one call that the decision names, by its id or by its hash.
    fn meant(self, header: &RunHeader, decided: &Decided) -> Option<CallId> {
        let Some(hash) = &decided.hash else { return decided.call };
        let named = |call: &&Call| {
            is_asked_about(self.pause, call)
                && decided.call.is_none_or(|id| id == call.address)
                && call.hash(header) == *hash
        };
        self.calls.iter().find(named).map(|call| call.address)
    }

    fn waits(self, id: CallId) -> bool {
        let pause = &self.pause;
        let open =
            |call: &Call| call.address == id && (is_undecided(call) || pause.question.kind == Termination::Human);
        pause.calls.contains(&id) && self.calls.iter().any(open)
    }
}

fn is_undecided(call: &Call) -> bool {
    matches!(call.progress, Progress::Asks(AskedFor::Approval(_) | AskedFor::Server(_)) | Progress::Uncertain(_))
}

/// Whether the server of its tool asks a human.
fn is_of_server(call: &Call) -> bool {
    matches!(call.progress, Progress::Asks(AskedFor::Server(_)))
}

/// Whether this pause is about the call. Another call of the turn may wait for its own pause.
fn is_asked_about(pause: &Pause, call: &Call) -> bool {
    is_undecided(call) && pause.calls.contains(&call.address)
}

/// Applies a decision.
pub(crate) fn decided(
    program: &LoopProgram,
    state: &mut LoopState,
    paused: Paused,
    decided: Decided,
    effects: &mut Effects,
) -> Next {
    let decided = paused.calls().by_call(&decided).unwrap_or(decided);
    if let Err(refused) = paused.calls().fits(program, state, &decided) {
        let Paused { pause, turn } = paused;
        return Next::Refuse { phase: Phase::Paused { pause, turn }, refused };
    }
    state.interrupted = false;
    let waits_for_a_model = matches!(paused.pause.question.kind, Termination::ModelError | Termination::SpendingLimit);
    if waits_for_a_model && paused.pause.asks.is_none() {
        state.watch.paid.end();
        return Next::ask_again(paused.pause.forced);
    }
    // The human's input is new to the agent: repetitions are counted from here.
    state.watch.steps.clear();
    let only = paused.calls().meant(&state.header, &decided);
    let Paused { pause, turn } = paused;
    let Some(mut turn) = turn else {
        let record = DecisionRecord::new(state.now.wall_ms, pause.number, &decided);
        state.decisions.push(record);
        // The answer for a stuck run is guidance.
        if let Decision::Answer(text) = decided.decision {
            let words = dialect::write_guidance(program.properties.dialect, &text);
            state.conversation.push(Role::User, words);
        }
        return Next::Think;
    };
    if let Some(asks) = &pause.asks {
        let record = DecisionRecord::new(state.now.wall_ms, pause.number, &decided);
        state.decisions.push(DecisionRecord { run_id: asks.question.run_id.clone(), ..record });
        return subrun::decided(&pause, turn, &decided, effects);
    }
    for call in &mut turn.calls {
        let meant = only.is_none_or(|id| id == call.address) && pause.calls.contains(&call.address);
        if meant && (is_undecided(call) || pause.question.kind == Termination::Human) {
            let new = DecisionRecord::new(state.now.wall_ms, pause.number, &decided);
            let record = call.record(&state.header, new);
            let approvals = decide(program, state, call, &decided);
            state.decisions.push(DecisionRecord { approvals, ..record });
        }
    }
    let open: Vec<&Call> = turn.calls.iter().filter(|call| is_asked_about(&pause, call)).collect();
    let is_edit = matches!(decided.decision, Decision::Edit(_));
    if is_edit && open.iter().any(|call| only.is_none_or(|id| id == call.address)) {
        // Another person must approve the call as it is now.
        let ids = open.iter().map(|call| call.address).collect();
        return turn::ask_approval(program, state, turn, ids);
    }
    if !open.is_empty() {
        // The other calls are decided one by one; no call is made before all are decided.
        return Next::Wait(Phase::Paused { pause, turn: Some(turn) });
    }
    decided_all(program, state, turn, effects)
}

/// All waiting calls of a turn are decided: those that may be made are called.
pub(crate) fn decided_all(program: &LoopProgram, state: &mut LoopState, mut turn: Turn, effects: &mut Effects) -> Next {
    if let Some((call, question)) = turn::question_of(program, &turn) {
        return turn::ask_human(state, turn, call, question);
    }
    for call in turn.calls.iter_mut().filter(|call| call.progress == Progress::Requested) {
        turn::request(state, call, effects);
    }
    Next::Settle(turn)
}

/// Applies a decision to one call; returns how many have approved it, when several must.
fn decide(program: &LoopProgram, state: &mut LoopState, call: &mut Call, decided: &Decided) -> Option<ApprovalCount> {
    let was_approval = call.progress.is_approval();
    let tool = turn::tool_of(program, call);
    let Taken { next, approvals } = call.decide(decided, tool);
    match next {
        AfterDecision::Wait => {}
        // It is requested with the others, once all are decided.
        AfterDecision::Request => call.progress = Progress::Requested,
        AfterDecision::End(conclusion) => {
            call.progress = Progress::done(result_of(conclusion));
            if was_approval {
                // A denied call was not made: it does not count towards `max_calls`.
                state.counters.denied(&call.name);
            }
        }
    }
    approvals
}

/// What a call gives when a human's decision ends it.
fn result_of(conclusion: Conclusion) -> ToolResult {
    match conclusion {
        Conclusion::Answer(text) => ToolResult::Ok(Value::String(text)),
        Conclusion::Form(values) => ToolResult::Ok(Value::Object(values.into_iter().collect())),
        Conclusion::Consent { approved, reason, .. } => match approved {
            true => ToolResult::Ok(Value::Bool(true)),
            false => denied(reason.as_deref()),
        },
        // Only steps wait for a time.
        Conclusion::Waited => ToolResult::Ok(Value::Null),
        Conclusion::Event(data) => ToolResult::Ok(data),
        Conclusion::Denied { reason } => denied(reason.as_deref()),
        Conclusion::Happened(value) => ToolResult::Ok(value),
        Conclusion::Failed(message) => ToolResult::failed(message),
    }
}
