//! Sub-runs: calls that are runs of another loop. They are started or resumed by their id, reported to the
//! calling run, and ended with it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::begin::Begin;
use super::clock;
use super::fault::Fault;
use super::fold;
use super::model::ModelClient;
use super::question_owner::{is_taken, needs_sight};
use super::run_result::Finished;
use super::start::{self, Start};
use super::stop::Stop;
use super::subrun_budget::{self, SubrunBudget};
use super::subrun_id::{id, loop_at, loop_of};
use super::world::{Engine, Resume, Watch, World};
use crate::drive::future::BoxFuture;
use crate::journal::{CancelRequest, RunSummary, StoreError};
use loopctl_engine::continuation;
use loopctl_engine::event::{
    Allowance, CallId, Decided, Event, EventKind, MAY_HAVE_HAPPENED, ParentCall, Started, ToolFault, ToolPaused,
    ToolResult, ToolReturned,
};
use loopctl_engine::flow::{has_failed_items, react_output, waiting_steps};
use loopctl_engine::lost_calls::has_call_that_may_have_happened;
use loopctl_engine::machine::Machine;
use loopctl_engine::operation::{AskedFor, Call, OpenStep, Progress};
use loopctl_engine::outcome::{Ending, Pause, Status, Termination};
use loopctl_engine::question::{Question, StepQuestion, SubrunQuestion};
use loopctl_engine::state::{Phase, RunHeader, State};
use loopctl_engine::waiting_calls::waiting_calls;
use loopctl_lang::diagnostic::codes;
use loopctl_lang::policy::word::written;
use loopctl_lang::program::flow::StepAction;
use loopctl_lang::program::{Program, Tool};

/// The wait before the next look at a sub-run that another driver still has.
const AGAIN: Duration = Duration::from_millis(50);

/// What the model that calls a workflow reads of one that completed although a call of it failed and may have happened.
const A_CALL_MAY_HAVE_HAPPENED: &str = "a call of it failed and may have happened; find out before it is made again";

/// The outcome of a call.
pub(super) enum PerformedCall {
    /// It returned, or waits for a human.
    Event(EventKind),
    /// It was the run of a step, and completed although items in it failed.
    Partly(ToolReturned),
    /// It was stopped, and can be resumed.
    Stopped,
}

/// A call of a loop.
pub(super) struct SubrunRequest {
    pub program: Arc<Program>,
    pub call: CallId,
    pub start: Start,
    pub origin: SubrunOrigin,
    /// What a human decided about the pause of the sub-run.
    decided: Option<Decided>,
    /// Whether the sub-run had failed for a reason outside of it, and continues.
    continues: bool,
    /// Whether it does although the steps of its `on_failure` have run.
    pub after_on_failure: bool,
}

/// The call that starts a sub-run.
#[derive(Clone)]
pub(super) struct SubrunOrigin {
    pub caller: ParentCall,
    pub bound: Allowance,
    /// Whether the run is one of its own: its caller does not wait for it, and it outlives the caller.
    pub is_own: bool,
}

impl SubrunOrigin {
    /// Marks the first event of a sub-run with the call that starts it. Returns what two such starts must have
    /// in common to be the same: this call alone, because input and document are those of the call.
    pub fn mark(&self, started: &mut Started) -> Result<String, Fault> {
        if self.is_own {
            started.started_by = Some(self.caller.clone());
            return Ok(format!("started by {}", self.caller.run_id));
        }
        // A workflow asks no model itself.
        if self.bound.cost_usd.is_some() && started.machine == Machine::Loop {
            start::priced(&started.model, Some(&started.loop_name))?;
        }
        started.caller = Some(self.caller.clone());
        started.bound = self.bound;
        Ok(format!("called by {}", self.caller.run_id))
    }
}

/// Whether a loop names a model of its own.
fn names_model(called: &Program) -> bool {
    called.model().is_some() || called.project.model.is_some()
}

impl SubrunRequest {
    /// The run of a step of a workflow.
    pub fn of_step(state: &State, open: &OpenStep, called: &Arc<Program>, time: Duration, bound: Allowance) -> Self {
        let header = &state.header;
        let call = CallId { iteration: 0, index: 0 };
        let start = Start {
            input: serde_json::Value::clone(&open.input),
            run_id: Some(open.subrun_id(&header.run_id)),
            ..Self::start(header, called, time)
        };
        let by_name = called.step().is_none();
        let caller = ParentCall { run_id: header.run_id.clone(), call, at: Some(open.address.to_string()), by_name };
        let decided = match &open.progress {
            Progress::Asks(AskedFor::Subrun(waits)) => waits.decided.clone(),
            _ => None,
        };
        let origin = SubrunOrigin { caller, bound, is_own: false };
        let (program, continues) = (Arc::clone(called), open.repetition.continues);
        Self { program, call, start, origin, decided, continues, after_on_failure: false }
    }

    /// The run of its own that a step of a workflow starts.
    pub fn launched_by_step(state: &State, open: &OpenStep, launched: &Arc<Program>, time: Duration) -> Self {
        let request = Self::of_step(state, open, launched, time, Allowance::default());
        Self { origin: SubrunOrigin { is_own: true, ..request.origin }, continues: false, ..request }
    }

    /// What the runs that a run starts have in common.
    fn start(header: &RunHeader, called: &Program, time: Duration) -> Start {
        let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
        Start {
            session: header.session.clone(),
            model: (!names_model(called)).then(|| header.model.name.clone()).filter(|name| !name.is_empty()),
            timeout_ms: Some(time_ms),
            ..Start::default()
        }
    }

    /// A call of a run in this state, with so much time and budget for the sub-run.
    pub fn new(state: &State, call: &Call, called: &Arc<Program>, time: Duration, bound: Allowance) -> Self {
        let header = &state.header;
        let start = Start {
            input: serde_json::Value::clone(&call.input),
            run_id: Some(id(&header.run_id, call.address)),
            ..Self::start(header, called, time)
        };
        let caller = ParentCall { run_id: header.run_id.clone(), call: call.address, at: None, by_name: false };
        let decided = match &call.progress {
            Progress::Asks(AskedFor::Subrun(waits)) => waits.decided.clone(),
            _ => None,
        };
        let origin = SubrunOrigin { caller, bound, is_own: false };
        let (program, call) = (Arc::clone(called), call.address);
        Self { program, call, start, origin, decided, continues: false, after_on_failure: false }
    }

    /// A call that starts a run of its own, with so much time.
    pub fn of_own(state: &State, call: &Call, launched: &Arc<Program>, time: Duration) -> Self {
        let request = Self::new(state, call, launched, time, Allowance::default());
        Self { origin: SubrunOrigin { is_own: true, ..request.origin }, ..request }
    }
}

/// Performs a call of a loop: starts its run, or resumes it.
pub(super) fn call<'a>(
    world: Arc<World>,
    calling: SubrunRequest,
    stop: Option<Stop>,
    budget: Arc<SubrunBudget>,
) -> BoxFuture<'a, Result<PerformedCall, Fault>> {
    Box::pin(async move {
        let began = clock::instant();
        let engine = Engine { world: Arc::clone(&world) };
        let (program, call) = (Arc::clone(&calling.program), calling.call);
        let run_id = calling.start.run_id.clone().unwrap_or_default();
        let watch = Watch { listener: None, stop };
        let failed = |class: String, detail: String| {
            let result = ToolResult::Failed(ToolFault::new(class, detail));
            ToolReturned::without_tokens(call, result, clock::elapsed_ms(began), Some(run_id.clone()))
        };
        let known = world.journal.find(&run_id).await.map_err(Fault::Cut)?.is_some();
        // The items of a workflow are bounded by `max_items`.
        let is_step = calling.origin.caller.at.is_some();
        if !known && !is_step && !budget.enter() {
            let returned = ToolReturned { run_id: None, ..failed(subrun_budget::full(), String::new()) };
            return Ok(PerformedCall::Event(EventKind::ToolReturned(returned)));
        }
        let finished = match engine.run_called(calling, watch).await {
            Ok(finished) => finished,
            // Another driver still has the sub-run, or the store fails: the call stays under way.
            Err(Fault::Store(fault) | Fault::Cut(fault)) => return Err(Fault::Cut(fault)),
            Err(fault) => {
                let mut class = format!("the {} `{}` could not be run", program.word(), program.name);
                // What is wrong with the input of the call is the caller's to read; the rest is the operator's.
                if let Fault::Diagnostics(faults) = &fault
                    && let Some(first) = faults.iter().find(|fault| fault.code == codes::BAD_INPUT)
                {
                    class = format!("{class}: {}", first.message);
                }
                let returned = failed(class, reason(&run_id, &fault));
                return Ok(PerformedCall::Event(EventKind::ToolReturned(returned)));
            }
        };
        let state = finished.state;
        let (tokens, cost_usd) = (Some(state.counters.tokens), state.cost_usd());
        let (estimated, at_most) = (state.counters.estimated, state.counters.at_most);
        Ok(match &state.phase {
            Phase::Ended(ending) => {
                let result = result(EndedSubrun { program: &program, run_id: &run_id, ending, state: &state }, is_step);
                let result = if is_step { answered(result, ending, &state) } else { result };
                let duration_ms = clock::elapsed_ms(began);
                let run_id = Some(run_id);
                let returned = ToolReturned::without_tokens(call, result, duration_ms, run_id);
                let returned = ToolReturned { tokens, cost_usd, estimated, at_most, ..returned };
                match is_step && ending.status == Status::Completed && has_failed_items(&state) {
                    true => PerformedCall::Partly(returned),
                    false => PerformedCall::Event(EventKind::ToolReturned(returned)),
                }
            }
            Phase::Paused { pause, .. } => {
                let asks = asks(&run_id, pause, &state);
                PerformedCall::Event(EventKind::ToolPaused(Box::new(ToolPaused {
                    call,
                    run_id,
                    asks,
                    tokens,
                    cost_usd,
                })))
            }
            Phase::New
            | Phase::Thinking { .. }
            | Phase::Summarizing { .. }
            | Phase::Acting { .. }
            | Phase::Stepping => PerformedCall::Stopped,
        })
    })
}

/// Whether a sub-run that failed continues when the step runs again that it is: a loop whose failure lies outside of it, and a
/// workflow, because what it has done is not done again.
pub(super) fn may_continue(program: &Program, ending: &Ending) -> bool {
    continuation::is_outage(ending) || program.is_flow()
}

/// What a sub-run may use when it continues.
#[derive(Debug, Clone, Copy)]
pub(super) struct SubrunShare {
    /// The time in milliseconds.
    pub time_ms: u64,
    /// What is left of the budget of its caller.
    pub bound: Allowance,
    /// Whether it continues although the steps of its `on_failure` have run.
    pub after_on_failure: bool,
}

impl SubrunShare {
    /// How a sub-run continues that has ended, when the step runs again that it is. A workflow that a limit ended is given again
    /// what its step has, in addition to what it used. One that was cancelled, or has completed without failed items, stays as it is, and
    /// so does one for which nothing is left.
    pub(super) fn again(&self, program: &Program, state: &State) -> Resume {
        let Phase::Ended(ending) = &state.phase else { return Resume::default() };
        match (ending.status, continuation::limit_of(ending)) {
            (Status::Failed, Some(_)) if program.is_flow() => {
                let raised = continuation::share_again(program, state, self.time_ms, self.bound);
                Resume { raised, after_on_failure: self.after_on_failure, ..Resume::default() }
            }
            (Status::Failed, _) if may_continue(program, ending) => {
                Resume { after_on_failure: self.after_on_failure, ..Resume::retry() }
            }
            // The caller runs again what failed in it.
            (Status::Completed, _) if has_failed_items(state) => {
                Resume { after_on_failure: self.after_on_failure, ..Resume::retry() }
            }
            _ => Resume::default(),
        }
    }
}

pub(super) fn reason(run_id: &str, fault: &Fault) -> String {
    let faults = match fault {
        Fault::Diagnostics(faults) => faults.iter().map(|fault| fault.message.as_str()).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    };
    format!("run {run_id}: {faults}")
}

/// A sub-run that has ended.
#[derive(Clone, Copy)]
struct EndedSubrun<'a> {
    program: &'a Program,
    run_id: &'a str,
    ending: &'a Ending,
    state: &'a State,
}

/// The result of a call or a step whose sub-run has ended.
fn result(ended: EndedSubrun<'_>, is_step: bool) -> ToolResult {
    let EndedSubrun { program, run_id, ending, state } = ended;
    let is_forced = ending.termination == Termination::ForcedAnswer;
    if let Some(answer) = &ending.answer {
        return ToolResult::Ok(match program {
            Program::Loop(_) if is_step => react_output(answer, is_forced),
            // Else the model that called the loop would take it for any other answer.
            Program::Loop(_) if is_forced => json!({ "answer": answer.answer, "forced": true }),
            // Its items failed, and it has completed all the same: else the model would have them made once more.
            Program::Flow(_) if !is_step && has_call_that_may_have_happened(state) => {
                json!({ "answer": answer.answer, "uncertain": A_CALL_MAY_HAVE_HAPPENED })
            }
            // No step ran: there is no answer.
            _ if ending.termination == Termination::ConditionNotMet => json!({ "status": ending.termination }),
            _ => answer.answer.clone(),
        });
    }
    let why = written(&ending.termination).unwrap_or_default();
    let mut class = format!("the {} `{}` ended: {why}", program.word(), program.name);
    let message = ending.error.as_ref().map(|error| error.message.as_str()).unwrap_or_default();
    // A model reads the class alone, and would make the call once more.
    let is_said = is_step && message.contains(MAY_HAVE_HAPPENED);
    if !is_said && has_call_that_may_have_happened(state) {
        class.push_str(MAY_HAVE_HAPPENED);
    }
    ToolResult::Failed(ToolFault::new(class, format!("run {run_id}: {message}")))
}

/// The failure of a step whose run failed, with what the server answered to the step below: who reads the trace of the caller sees it.
/// The model of a loop that calls a workflow does not.
fn answered(result: ToolResult, ending: &Ending, state: &State) -> ToolResult {
    let ToolResult::Failed(fault) = result else { return result };
    let at = ending.error.as_ref().and_then(|error| error.step.as_deref());
    let records = state.as_flow().map(|state| state.progress.records.as_slice()).unwrap_or_default();
    let failed = records.iter().rev().find(|record| Some(record.at.as_str()) == at);
    let answer = failed.and_then(|record| record.error.as_ref()).map(|error| error.answer.clone());
    ToolResult::Failed(ToolFault { answer: answer.unwrap_or_default(), ..fault })
}

/// The question of a sub-run, passed up unchanged.
fn asks(run_id: &str, pause: &Pause, state: &State) -> SubrunQuestion {
    let mut steps = waiting_steps(state);
    // The time at which the run continues is not lost among many.
    let first = steps.iter().enumerate().filter(|(_, step)| step.question.kind.is_wait());
    let first = first.min_by_key(|(_, step)| step.expires_at_ms).map(|(first, _)| first);
    if let Some(before) = first.and_then(|first| steps.get_mut(..=first)) {
        before.rotate_right(1);
    }
    let steps = steps.into_iter().take(SubrunQuestion::MOST_STEPS);
    let steps: Vec<StepQuestion> = steps.map(|question| question.passed_up(run_id)).collect();
    let calls = if steps.is_empty() { waiting_calls(state) } else { Vec::new() };
    let asking = pause.question.run_id.clone().unwrap_or_else(|| run_id.to_owned());
    let question = Question { run_id: Some(asking), ..pause.question.clone() };
    let until_ms = pause.until_ms.or_else(|| pause.asks.as_ref().and_then(|asks| asks.until_ms));
    SubrunQuestion { pause: pause.number, question, calls, steps, until_ms }
}

/// Ends the sub-runs that have not ended, because their caller ends.
pub(super) async fn close(world: &Arc<World>, program: &Program, state: &State) -> Result<(), Fault> {
    for (called, run_id) in open_runs(program, state) {
        let engine = Engine { world: Arc::clone(world) };
        let reason = format!("the run {} that called it has ended", state.header.run_id);
        match Box::pin(engine.cancel(called, &run_id, CancelRequest { reason: Some(reason), by: None })).await {
            // It was never started, or has ended by itself.
            Ok(_) | Err(Fault::Refused(_) | Fault::Store(StoreError::NoSuchRun(_))) => {}
            Err(Fault::Store(fault)) => return Err(Fault::Cut(fault)),
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

/// The sub-runs that may have started and have not returned.
pub(super) fn open_runs<'p>(program: &'p Program, state: &State) -> Vec<(&'p Arc<Program>, String)> {
    let run_id = &state.header.run_id;
    if let Program::Flow(flow) = program {
        let may_run =
            |open: &&OpenStep| matches!(open.progress, Progress::Requested | Progress::Asks(AskedFor::Subrun(_)));
        let run = |open: &OpenStep| Some((loop_at(flow, &open.address)?, open.subrun_id(run_id)));
        return state.open_steps().into_iter().filter(may_run).filter_map(run).collect();
    }
    let turn = match &state.phase {
        Phase::Acting { turn } | Phase::Paused { turn: Some(turn), .. } => turn,
        _ => return Vec::new(),
    };
    let may_run = |call: &&Call| matches!(call.progress, Progress::Requested | Progress::Asks(AskedFor::Subrun(_)));
    let run = |call: &Call| Some((loop_of(program, call)?, id(run_id, call.address)));
    turn.calls.iter().filter(may_run).filter_map(run).collect()
}

/// A program that a run may run, as far as it was looked at before anything happens.
struct CalledProgram<'p> {
    program: &'p Program,
    /// The name of the model that it gives its calls.
    model: String,
    models: Vec<Arc<ModelClient>>,
    /// Whether a budget in US dollars of a run around it counts it.
    is_priced: bool,
    /// Its name, where another run calls it.
    by: Option<&'p str>,
}

/// What a program calls, each with whether a budget in US dollars counts it.
struct ProgramParts<'p> {
    tools: Vec<(&'p Tool, bool)>,
    /// The loops that are written in it as steps.
    loops: Vec<(&'p Arc<Program>, bool)>,
}

impl<'p> ProgramParts<'p> {
    fn of(program: &'p Program, priced: bool) -> Self {
        let (mut tools, mut loops) = (Vec::new(), Vec::new());
        match program {
            Program::Loop(program) => tools.extend(program.tools.iter().map(|tool| (tool, priced))),
            Program::Flow(program) => program.each_priced(&mut |step, counts| match &step.action {
                StepAction::Call(call) => tools.push((&call.tool, priced || counts)),
                StepAction::React(react) => loops.push((&react.program, priced || counts)),
                _ => {}
            }),
        }
        Self { tools, loops }
    }
}

impl Engine {
    /// Whether the models of a run and of all loops that it may call exist, with a price where a budget needs one: what is
    /// missing is reported before anything happens. `models`: those of the run itself.
    pub(super) fn can_call(&self, program: &Program, models: &[Arc<ModelClient>]) -> Result<(), Fault> {
        let mut seen = BTreeSet::new();
        let own = models.first().map(|model| model.facts.name.clone()).unwrap_or_default();
        let mut open = vec![CalledProgram { program, model: own, models: models.to_vec(), is_priced: false, by: None }];
        while let Some(called) = open.pop() {
            let CalledProgram { program, model, models, is_priced, by } = &called;
            let priced = *is_priced || program.budget.as_ref().is_some_and(|budget| budget.cost_usd.is_some());
            // The main model of a workflow answers nothing by itself.
            if priced && !program.is_flow() {
                models.iter().try_for_each(|model| start::priced(&model.facts, *by))?;
            }
            let parts = ProgramParts::of(program, priced);
            let tools = parts.tools.into_iter().filter(|(tool, _)| !self.world.toolbox.is_scripted(tool));
            let mut next = parts.loops;
            for (tool, priced) in tools {
                if priced && tool.asks_model() {
                    let asked = self.world.models.get(Some(tool.model().unwrap_or(model)));
                    asked.map_or(Ok(()), |asked| start::priced(&asked.facts, *by))?;
                }
                next.extend(tool.called_loop().map(|called| (called, priced)));
                // A run of its own has a budget of its own.
                next.extend(tool.launched().map(|launched| (launched, false)));
            }
            for (called, is_priced) in next {
                if !seen.insert((std::ptr::from_ref::<Program>(called).addr(), is_priced, model.clone())) {
                    continue;
                }
                let models = self.models_of(called, (!names_model(called)).then_some(model.as_str()))?;
                let model = models.first().map_or_else(|| model.clone(), |model| model.facts.name.clone());
                open.push(CalledProgram { program: called, model, models, is_priced, by: Some(&called.name) });
            }
        }
        Ok(())
    }

    /// How a run is resumed on its own, which a sub-run that has not ended is not: it continues with its caller, which
    /// would not get its result otherwise.
    pub(super) async fn its_own(&self, run_id: &str, resume: Resume) -> Result<Resume, Fault> {
        let Some(run) = self.find(run_id).await? else { return Ok(resume) };
        Self::may_resume(&run, &resume)?;
        Ok(resume.of_run(&run))
    }

    /// Whether a run may be resumed by itself: a sub-run under way is resumed by the run that called it.
    ///
    /// # Errors
    /// When it is a sub-run: the run to resume instead.
    pub fn may_resume(run: &RunSummary, resume: &Resume) -> Result<(), Fault> {
        run.may_be_driven().map_err(Fault::Store)?;
        match &run.parent_run_id {
            Some(caller) if resume.reopens() => {
                let why = format!(
                    "run {} was called by run {caller}, which has its result, and whose limits gave it its share: it is \
                     neither retried nor given more. Retry or resume {caller}",
                    run.run_id
                );
                Err(Fault::refused(why))
            }
            Some(caller) if !matches!(run.status, Status::Completed | Status::Failed) => {
                let run_id = &run.run_id;
                let why = format!("run {run_id} was called by run {caller}: resume {caller}, and both go on");
                Err(Fault::refused(why))
            }
            _ => Ok(()),
        }
    }

    /// Starts a sub-run, or resumes it.
    async fn run_called(&self, request: SubrunRequest, watch: Watch<'_>) -> Result<Finished, Fault> {
        let SubrunRequest { program, start, origin, decided, continues, after_on_failure, .. } = request;
        let time_ms = start.timeout_ms.unwrap_or_default();
        let share = SubrunShare { time_ms, bound: origin.bound, after_on_failure };
        let share = continues.then_some(share);
        match Box::pin(self.begin_from(&program, start, Some(&origin))).await? {
            Begin::New(started) => self.drive(&program, started, watch).await,
            Begin::Same(run_id) => Box::pin(self.go_on_called(&program, &run_id, decided, share, watch)).await,
        }
    }

    /// A sub-run by the document that it has followed so far: by a new one, a run that has failed may not have ended.
    pub(super) fn former(&self, program: &Program, run_id: &str, events: &[Event]) -> Option<(Arc<Program>, State)> {
        let recorded = self.recorded(program, run_id, events)?;
        let state = fold::fold(&recorded, run_id, events.to_vec()).ok()?;
        Some((recorded, state))
    }

    /// Resumes a sub-run. `share`: also one that has ended, with this.
    pub(super) async fn go_on_called(
        &self,
        program: &Arc<Program>,
        run_id: &str,
        decided: Option<Decided>,
        share: Option<SubrunShare>,
        watch: Watch<'_>,
    ) -> Result<Finished, Fault> {
        loop {
            let events = self.events(run_id).await;
            let changed = events.as_ref().is_ok_and(|events| fold::same_document(program, events).is_err());
            let former = match &events {
                Ok(events) if changed && share.is_some() => self.former(program, run_id, events),
                _ => None,
            };
            let state = events.and_then(|events| fold::fold(program, run_id, events));
            let decided = match (&state, &decided) {
                // The document changed after the human had seen the call: it is shown again.
                (_, Some(decided)) if changed && needs_sight(decided) => None,
                (Ok(state), Some(decided)) if !is_taken(state, decided) => Some(decided.clone()),
                _ => None,
            };
            let known = match &former {
                Some((recorded, state)) => Some((recorded, state)),
                None => state.as_ref().ok().map(|state| (program, state)),
            };
            let again = known.zip(share.as_ref()).map(|((program, state), share)| share.again(program, state));
            // The calling run was checked to have the right documents, and these are among them.
            let resume = Resume { decided, new_document: true, ..again.unwrap_or_default() };
            match self.resumed(program, run_id, resume, watch.clone()).await {
                Err(Fault::Store(StoreError::Driven(_))) if !watch.stop.as_ref().is_some_and(Stop::is_asked) => {
                    tokio::time::sleep(AGAIN).await;
                }
                other => return other,
            }
        }
    }
}
