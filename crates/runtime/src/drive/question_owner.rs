//! Which run asks the question that a decision is about, at any depth, and whether the decision fits it.

use std::sync::Arc;

use super::fault::Fault;
use super::fold;
use super::subrun_id::{id, loop_at, loop_of};
use super::world::Engine;
use loopctl_engine::address::{is_at, split_address};
use loopctl_engine::decision::approval;
use loopctl_engine::event::{CallId, Decided, Decision};
use loopctl_engine::operation::{AskedFor, Call, OpenStep, Progress};
use loopctl_engine::outcome::Termination;
use loopctl_engine::state::{Phase, State};
use loopctl_engine::step;
use loopctl_lang::program::Program;

/// A run below another one, which asks.
struct AskingRun<'p> {
    program: &'p Arc<Program>,
    run_id: String,
    /// The number of its pause.
    pause: u32,
}

/// The run below that asks the question of a paused run; in a workflow, the one that a decision is about, or the only one.
fn asking<'p>(program: &'p Program, state: &State, decided: Option<&Decided>) -> Option<AskingRun<'p>> {
    let run_id = &state.header.run_id;
    if let Program::Flow(flow) = program {
        let mut asking = state.open_steps().into_iter().filter_map(|open| match &open.progress {
            Progress::Asks(AskedFor::Subrun(waits)) if waits.decided.is_none() => Some((open, &waits.asks)),
            _ => None,
        });
        let (open, asks) = match decided {
            Some(Decided { at: Some(at), .. }) => asking.find(|(open, _)| is_at(&open.address, split_address(at).0))?,
            Some(Decided { hash: Some(hash), .. }) => asking.find(|(_, asks)| asks.has_hash(hash))?,
            _ => asking.next()?,
        };
        let program = loop_at(flow, &open.address)?;
        return Some(AskingRun { program, run_id: open.subrun_id(run_id), pause: asks.pause });
    }
    let Phase::Paused { pause, turn: Some(turn) } = &state.phase else { return None };
    let asks = pause.asks.as_ref()?;
    let call = turn.calls.iter().find(|call| pause.calls.contains(&call.address))?;
    Some(AskingRun { program: loop_of(program, call)?, run_id: id(run_id, call.address), pause: asks.pause })
}

/// The run of a step that is under way, below which a decision names a step.
pub(super) struct RunUnderWay<'p> {
    pub program: &'p Arc<Program>,
    pub run_id: String,
    /// The decision as that run takes it.
    pub decided: Decided,
}

/// The run under way that takes a decision itself, because its caller does not know yet what it asks: a workflow takes decisions
/// beside its other steps.
pub(super) fn under_way<'p>(program: &'p Program, state: &State, decided: &Decided) -> Option<RunUnderWay<'p>> {
    let Program::Flow(flow) = program else { return None };
    let (own, below) = split_address(decided.at.as_deref()?);
    let decided = Decided { at: Some(below?.to_owned()), pause: None, ..decided.clone() };
    let is_meant = |open: &&OpenStep| open.is_subrun && open.progress.is_under_way() && is_at(&open.address, own);
    let open = state.open_steps().into_iter().find(is_meant)?;
    let program = loop_at(flow, &open.address).filter(|called| called.is_flow())?;
    Some(RunUnderWay { program, run_id: open.subrun_id(&state.header.run_id), decided })
}

/// Whether a decision fits the run that asks, at any depth. Checked before anything is written.
///
/// # Errors
/// Why it does not.
pub(super) async fn fits(engine: &Engine, program: &Program, state: &State, decided: &Decided) -> Result<(), Fault> {
    let (mut program, mut below_state, mut decided) = (program, None, decided.clone());
    loop {
        let state = below_state.as_ref().unwrap_or(state);
        step::fits(program, state, &decided)?;
        let Some(below) = asking(program, state, Some(&decided)) else { return Ok(()) };
        decided.pause = Some(below.pause);
        if program.is_flow() {
            decided.at = decided.at.as_deref().and_then(|at| split_address(at).1).map(str::to_owned);
        }
        let of_below = engine.state(below.program, &below.run_id).await?;
        if is_taken(&of_below, &decided) {
            return Ok(());
        }
        (program, below_state) = (below.program, Some(of_below));
    }
}

impl Engine {
    /// Whether a decision fits a run that waits or has ended, as far as that is known before the run is taken up. Of one with
    /// steps under way, that is known once it is.
    ///
    /// # Errors
    /// Why it does not.
    pub async fn fits_as_it_is(&self, program: &Program, state: &State, decided: &Decided) -> Result<(), Fault> {
        match state.phase {
            Phase::Paused { .. } | Phase::Ended(_) => fits(self, program, state, decided).await,
            _ => Ok(()),
        }
    }
}

/// Whether a decision may be taken: it fits the run that asks, and the human has seen the question as it is now.
///
/// # Errors
/// Why not.
pub(super) async fn accepts(engine: &Engine, program: &Program, state: &State, decided: &Decided) -> Result<(), Fault> {
    fits(engine, program, state, decided).await?;
    if needs_sight(decided) && asked_by_another(engine, program, state, Some(decided)).await? {
        return Err(Fault::Unseen);
    }
    Ok(())
}

/// Whether another document than the current one asked the question of a run: in its sub-run, or in one below. For a
/// workflow of which other steps run, the question that a decision is about.
pub(super) async fn asked_by_another(
    engine: &Engine,
    program: &Program,
    state: &State,
    decided: Option<&Decided>,
) -> Result<bool, Fault> {
    let mut decided = match state.phase {
        Phase::Paused { .. } => None,
        Phase::Stepping if decided.is_some() => decided,
        _ => return Ok(false),
    };
    let (mut program, mut below_state) = (program, None);
    loop {
        let below = asking(program, below_state.as_ref().unwrap_or(state), decided.take());
        let Some(AskingRun { program: called, run_id, .. }) = below else { return Ok(false) };
        let events = engine.events(&run_id).await?;
        if fold::same_document(called, &events).is_err() {
            return Ok(true);
        }
        (program, below_state) = (called, Some(fold::fold(called, &run_id, events)?));
    }
}

/// Whether a decision may be taken only if the human has seen the question as it is now: an approval, a no, which may do
/// something else by another document, or a decision that is bound to a hash.
pub(super) fn needs_sight(decided: &Decided) -> bool {
    decided.hash.is_some() || is_yes(decided) || matches!(decided.decision, Decision::Deny(_))
}

/// Whether a call is made after it.
pub(super) fn is_yes(decided: &Decided) -> bool {
    matches!(decided.decision, Decision::Approve | Decision::Edit(_) | Decision::Retry)
}

/// Whether a run has a decision already, or has left the pause that the decision is for.
pub(super) fn is_taken(state: &State, decided: &Decided) -> bool {
    let Phase::Paused { pause, .. } = &state.phase else { return true };
    if decided.pause != Some(pause.number) {
        return true;
    }
    // Several calls are decided one by one, in one pause; those of a sub-run are decided there.
    let waits = |id: CallId| {
        let undecided =
            |call: &Call| matches!(call.progress, Progress::Asks(AskedFor::Approval(_)) | Progress::Uncertain(_));
        state.call(id).is_some_and(undecided)
    };
    let is_over = |id| pause.question.kind != Termination::Human && !waits(id);
    let is_own = pause.asks.is_none() && matches!(state, State::Loop(_));
    approval::is_approved_by(state, decided) || is_own && decided.call.is_some_and(is_over)
}
