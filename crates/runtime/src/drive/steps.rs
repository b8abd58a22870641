//! The steps of a workflow: calls and runs, made beside each other. What has ended is handed to the journal at once, and
//! no step waits for the journal of another.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::MissedTickBehavior;

use super::calls::AttemptTimer;
use super::clock;
use super::fault::Fault;
use super::inbox::PassedDecision;
use super::launch;
use super::pending_model_call::PendingModelCall;
use super::retry::{self, NextAttempt};
use super::run::run_log::RepeatedCall;
use super::run::{CANCEL_POLL_INTERVAL, Driver, HandedOver, Interruption, Interrupts, Waited};
use super::spending::SpendingGuard;
use super::stop::Stop;
use super::subrun::{self, PerformedCall, SubrunRequest};
use super::subrun_budget::SubrunBudgetGuard;
use super::tool::{Spent, ToolCall};
use super::world::{Engine, World};
use crate::drive::future::BoxFuture;
use loopctl_engine::address::StepAddress;
use loopctl_engine::budget;
use loopctl_engine::continuation;
use loopctl_engine::effect::{Effects, steps_of};
use loopctl_engine::event::{
    Allowance, CallId, EventKind, StepAsks, StepLeft, StepPaused, StepRetried, StepReturned, StepWaits, ToolFault,
    ToolPaused, ToolResult, ToolReturned,
};
use loopctl_engine::flow::item_budget::ItemRest;
use loopctl_engine::notice::Listener;
use loopctl_engine::operation::OpenStep;
use loopctl_engine::server_question::AnsweredQuestion;
use loopctl_engine::state::{Phase, RunHeader};
use loopctl_lang::program::flow::StepAction;
use loopctl_lang::program::{Program, Tool};

/// The most outcomes that are made durable together.
const TOGETHER: usize = 256;
/// The time of a step's call when the time of its run has passed: the call ends by its own time.
const NO_LIMIT: Duration = Duration::from_secs(0xFFFF_FFFF);

/// How a step ended, or that it was stopped and can be resumed.
type StepOutcome = Result<Option<EventKind>, Fault>;

/// The steps that are under way.
type StepsUnderWay<'a> = FuturesUnordered<BoxFuture<'a, StepOutcome>>;

/// What a driver waits for while steps are under way.
enum StepNews {
    /// A step ended; none when no step is under way.
    Outcome(Option<StepOutcome>),
    /// A human decided about a step that waits.
    Decided(PassedDecision),
    /// A question was posted, or could not be.
    Posted(Option<EventKind>),
    /// It is time to look at what other processes want, and at what has expired.
    Look,
}

/// A call of a step, with what it needs.
struct StepCall<'a> {
    program: Arc<Program>,
    header: Arc<RunHeader>,
    at: String,
    kind: String,
    request: u32,
    /// What its server asked, and was answered, and how often it asked.
    answered: Vec<AnsweredQuestion>,
    asked: u32,
    input: Arc<serde_json::Value>,
    now: String,
    left: Allowance,
    listener: Option<&'a dyn Listener>,
}

impl<'a> Driver<'a> {
    /// Performs steps, and those that follow them. `None`: the run was stopped.
    pub(super) async fn run_steps(&mut self, steps: Vec<StepAddress>) -> Result<Option<Effects>, Fault> {
        self.confirm().await?;
        let mut under_way: StepsUnderWay<'a> = self.begin_steps(&steps).into_iter().collect();
        let mut inbox = self.world.inboxes.open(&self.lease.run_id);
        let (mut is_late, mut stopped, mut announced) = (false, false, false);
        // The first look is at once: the last driver may have left something.
        let mut look = tokio::time::interval(CANCEL_POLL_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let left = if is_late { NO_LIMIT } else { self.time_left() };
            let interrupts =
                Interrupts { world: self.world, stop: self.watch.stop.as_ref(), run_id: &self.lease.run_id, left };
            let news = async {
                tokio::select! {
                    biased;
                    _ = look.tick() => StepNews::Look,
                    passed = inbox.next() => StepNews::Decided(passed),
                    what = self.posts.next() => StepNews::Posted(what),
                    outcome = under_way.next() => StepNews::Outcome(outcome),
                }
            };
            let first = match interrupts.wait(news).await? {
                Waited::Done(StepNews::Decided(passed)) => {
                    let next = self.take_passed(passed).await?;
                    self.begin_more(&mut under_way, &next).await?;
                    continue;
                }
                Waited::Done(StepNews::Posted(what)) => {
                    self.take_posted(what).await?;
                    continue;
                }
                // Not left to the interrupts: outcomes may come more often than these look.
                Waited::Done(StepNews::Look) => {
                    if let Some(request) = self.cancel_request().await? {
                        drop(under_way);
                        return self.take(request).await.map(Some);
                    }
                    let next = self.look_beside().await?;
                    self.begin_more(&mut under_way, &next).await?;
                    self.report_questions();
                    self.begin_posts();
                    continue;
                }
                Waited::Done(StepNews::Outcome(Some(outcome))) => outcome,
                // Steps that were stopped, or that did not begin because of the stop, are left for the next driver.
                Waited::Done(StepNews::Outcome(None)) => {
                    let is_left = stopped || matches!(self.state.phase, Phase::Stepping);
                    return Ok((!is_left).then(Effects::new));
                }
                Waited::Interruption(Interruption::Event(EventKind::DeadlinePassed)) => {
                    is_late = true;
                    self.time_is_over(&mut under_way).await?;
                    continue;
                }
                Waited::Interruption(interruption) => {
                    // Dropping the run of a step releases its lease, so that it can be ended.
                    drop(under_way);
                    return match interruption {
                        Interruption::Event(what) => self.take(what).await.map(Some),
                        // The steps that are cut off have no outcome: they are uncertain.
                        Interruption::Stop => Ok(None),
                    };
                }
            };
            let mut outcomes = vec![first];
            while outcomes.len() < TOGETHER
                && let Some(Some(outcome)) = under_way.next().now_or_never()
            {
                outcomes.push(outcome);
            }
            if self.is_asked_to_stop() && !announced {
                announced = true;
                self.take(EventKind::Stopping).await?;
            }
            let taken = self.hand_over_all(outcomes, &mut stopped)?;
            let mut next = Vec::new();
            for taken in taken {
                next.extend(steps_of(&self.durable(taken).await?));
            }
            self.begin_more(&mut under_way, &next).await?;
        }
    }

    /// Hands what steps came to over to the journal. `stopped`: whether one of them was left.
    fn hand_over_all(&mut self, outcomes: Vec<StepOutcome>, stopped: &mut bool) -> Result<Vec<HandedOver>, Fault> {
        let mut taken = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            match outcome? {
                Some(what) => {
                    // Its call is not made by this driver.
                    *stopped |= matches!(what, EventKind::StepLeft(_));
                    taken.push(self.hand_over(what)?);
                }
                None => *stopped = true,
            }
        }
        Ok(taken)
    }

    /// The time of the run is over: what handles that begins, if nothing is under way.
    async fn time_is_over(&mut self, under_way: &mut StepsUnderWay<'a>) -> Result<(), Fault> {
        let next = steps_of(&self.take(EventKind::DeadlinePassed).await?);
        self.begin_more(under_way, &next).await
    }

    async fn begin_more(&self, under_way: &mut StepsUnderWay<'a>, steps: &[StepAddress]) -> Result<(), Fault> {
        if !steps.is_empty() {
            self.confirm().await?;
            under_way.extend(self.begin_steps(steps));
        }
        Ok(())
    }

    /// Reports what waits for a human beside the steps that are under way, at looks only: there may be a thousand of them.
    fn report_questions(&self) {
        if let Some(listener) = self.watch.listener.filter(|listener| listener.wants_questions()) {
            listener.on_questions(self.program, &self.state);
        }
    }

    fn is_asked_to_stop(&self) -> bool {
        self.watch.stop.as_ref().is_some_and(Stop::is_asked)
    }

    fn begin_steps(&self, steps: &[StepAddress]) -> Vec<BoxFuture<'a, StepOutcome>> {
        let Program::Flow(flow) = &**self.program else { return Vec::new() };
        let left = budget::left(self.program, &self.state);
        let mut performed: Vec<BoxFuture<'a, StepOutcome>> = Vec::with_capacity(steps.len());
        for at in steps {
            let Some((step, open)) = flow.step_at(at).zip(self.state.open_step(at)) else { continue };
            match &step.action {
                StepAction::React(react) => {
                    performed.push(self.begin_run(&react.program, react.program.timeout_ms, open, left));
                }
                StepAction::Call(step) if let Some(run) = self.begin_named(&step.tool, open, left) => {
                    performed.push(run);
                }
                StepAction::Call(called) => {
                    let call = StepCall {
                        program: Arc::clone(self.program),
                        header: Arc::clone(&self.state.header),
                        at: at.to_string(),
                        kind: open.name.clone(),
                        request: open.repetition.request,
                        answered: open.answered.clone(),
                        asked: open.asked,
                        input: Arc::clone(&open.input),
                        now: clock::rfc3339(clock::wall_ms()),
                        left,
                        listener: self.watch.listener,
                    };
                    let (world, stop) = (Arc::clone(self.world), self.watch.stop.clone());
                    let (timer, fence) = (AttemptTimer::after(&open.attempts), self.lease.fence);
                    let own = Duration::from_millis(called.tool.timeout_ms);
                    let time = own.min(self.time_left());
                    // The time of the run may be over for what handles a failure.
                    let left = if open.address.is_for_failure() { own.max(self.time_left()) } else { self.time_left() };
                    let after_crash = called.tool.after_crash();
                    performed.push(Box::pin(async move {
                        let run_id = call.header.run_id.as_str();
                        if !timer.due(&world.deaths, run_id, stop.as_ref()).await {
                            return Ok(None);
                        }
                        let shown = world.model_waits.of_call(run_id, &call.at, after_crash);
                        let spending = SpendingGuard::of_call(&world.journal, &call.program, &call.header, fence);
                        let wait = PendingModelCall::of(&world.deaths, run_id)
                            .shown(shown)
                            .limited(spending)
                            .within(time)
                            .in_turn_within(left);
                        tokio::select! {
                            biased;
                            made = make(&world, &call, timer.failed, &wait) => wait.sound().map(|()| Some(made)),
                            () = wait.stopped(stop.as_ref()) => {
                                let Spent { tokens, cost_usd, .. } = wait.spent();
                                Ok(Some(EventKind::StepLeft(StepLeft { at: call.at.clone(), tokens, cost_usd })))
                            }
                        }
                    }));
                }
                StepAction::Foreach(_)
                | StepAction::Approval(_)
                | StepAction::Form(_)
                | StepAction::Wait(_)
                | StepAction::Choose(_)
                | StepAction::WaitForEvent(_) => {}
            }
        }
        performed
    }

    /// Begins or resumes the run of a step that names its loop or workflow, or has it started as a run of its own.
    fn begin_named(&self, tool: &'a Tool, open: &OpenStep, left: Allowance) -> Option<BoxFuture<'a, StepOutcome>> {
        let called = tool.called_loop().or(tool.launched()).filter(|_| !self.world.toolbox.is_scripted(tool))?;
        if tool.launched().is_none() {
            return Some(self.begin_run(called, tool.timeout_ms, open, left));
        }
        let request =
            SubrunRequest::launched_by_step(&self.state, open, called, Duration::from_millis(tool.timeout_ms));
        let budget = self.budget.as_ref().map(SubrunBudgetGuard::budget).unwrap_or_default();
        let (at, kind) = (open.address.to_string(), open.name.clone());
        let launched = launch::call(Arc::clone(self.world), request, self.watch.stop.clone(), budget);
        Some(Box::pin(async move { Ok(of_step(at, kind, launched.await?, MayPass::default())) }))
    }

    /// Starts or resumes the run of a step, within its time in milliseconds.
    fn begin_run(
        &self,
        called: &Arc<Program>,
        timeout_ms: u64,
        open: &OpenStep,
        left: Allowance,
    ) -> BoxFuture<'a, StepOutcome> {
        let handles = open.address.is_for_failure();
        let flow = self.program.as_flow().zip(self.state.as_flow()).filter(|_| !handles);
        let of_item = flow.map(|(flow, state)| ItemRest::of(flow, &state.progress, &open.address, self.active_ms()));
        let item = of_item.unwrap_or_default();
        let most_ms = item.time_ms.into_iter().chain([timeout_ms]).min().unwrap_or_default();
        let own = Duration::from_millis(most_ms);
        // What handles a failure has its own time: that of the run, or of the item, may be over.
        let time = if handles { own } else { self.time_left().min(own) };
        let mut request = SubrunRequest::of_step(&self.state, open, called, time, left.at_most(item.budget));
        request.after_on_failure = self.after_on_failure;
        let budget = self.budget.as_ref().map(SubrunBudgetGuard::budget).unwrap_or_default();
        let (engine, run_of) = (Engine { world: Arc::clone(self.world) }, Arc::clone(called));
        let (at, kind, run) = (
            open.address.to_string(),
            open.name.clone(),
            subrun::call(Arc::clone(self.world), request, self.watch.stop.clone(), budget),
        );
        Box::pin(async move {
            let performed = run.await?;
            let may_pass = match &performed {
                PerformedCall::Event(EventKind::ToolReturned(ToolReturned {
                    result: ToolResult::Failed(_),
                    run_id: Some(run_id),
                    ..
                })) => may_pass(&engine, &run_of, run_id).await,
                _ => MayPass::default(),
            };
            Ok(of_step(at, kind, performed, may_pass))
        })
    }
}

/// What became of a call, as that of the step that it is.
fn of_step(at: String, kind: String, performed: PerformedCall, may_pass: MayPass) -> Option<EventKind> {
    let MayPass { retryable, outage, limited } = may_pass;
    let partly = matches!(performed, PerformedCall::Partly(_));
    match performed {
        PerformedCall::Event(EventKind::ToolReturned(returned)) | PerformedCall::Partly(returned) => {
            let ToolReturned { result, duration_ms, waited_ms, tokens, cost_usd, run_id, attempts, .. } = returned;
            let ToolReturned { estimated, at_most, .. } = returned;
            let returned = StepReturned {
                at,
                kind,
                result,
                duration_ms,
                waited_ms,
                tokens,
                cost_usd,
                estimated,
                at_most,
                run_id,
                attempts,
                partly,
                retryable,
                outage,
                limited,
            };
            Some(EventKind::StepReturned(Box::new(returned)))
        }
        PerformedCall::Event(EventKind::ToolPaused(paused)) => {
            let ToolPaused { run_id, asks, tokens, cost_usd, .. } = *paused;
            Some(EventKind::StepPaused(Box::new(StepPaused { at, run_id, asks, tokens, cost_usd })))
        }
        PerformedCall::Event(other) => Some(other),
        PerformedCall::Stopped => None,
    }
}

/// Makes an attempt at the call of a step. One that failed and is followed by another one is not the end of the step.
async fn make(world: &World, call: &StepCall<'_>, failed: u32, wait: &PendingModelCall<'_>) -> EventKind {
    let began = clock::instant();
    // What a call waits for its turn is no time of it.
    let duration_ms = || clock::elapsed_ms(began).saturating_sub(PendingModelCall::waited_ms(Some(wait)));
    let returned = |result, spent: Spent, retryable: bool| {
        let (at, kind, duration_ms) = (call.at.clone(), call.kind.clone(), duration_ms());
        let Spent { tokens, cost_usd, estimated, at_most } = spent;
        let (run_id, outage, limited) = (None, false, false);
        let returned = StepReturned {
            at,
            kind,
            result,
            duration_ms,
            waited_ms: PendingModelCall::waited_ms(Some(wait)),
            tokens,
            cost_usd,
            estimated,
            at_most,
            run_id,
            attempts: wait.take_attempts(),
            partly: false,
            retryable,
            outage,
            limited,
        };
        EventKind::StepReturned(Box::new(returned))
    };
    let Some(tool) = tool_at(&call.program, &call.at) else {
        let class = "the document no longer has this step".to_owned();
        return returned(ToolResult::Failed(ToolFault { class, ..ToolFault::default() }), Spent::default(), false);
    };
    let tool_call = ToolCall {
        id: CallId { iteration: 0, index: 0 },
        at: Some(&call.at),
        request: call.request,
        input: &call.input,
        run_input: &call.header.input.value,
        lists: Some(&call.header.input.lists),
        run_id: &call.header.run_id,
        loop_name: &call.header.loop_name,
        json: call.header.json_rule(),
        now: &call.now,
        model: &call.header.model.name,
        left: call.left,
        deadline: Duration::from_millis(tool.timeout_ms),
        trace: world.trace_context(&call.header.run_id, &call.at),
        answered: &call.answered,
        listener: call.listener,
        wait: Some(wait),
    };
    let mut outcome = world.call_in_turn(tool, &tool_call).await;
    if let Some(asks) = outcome.take_question(call.asked) {
        return EventKind::StepAsks(Box::new(StepAsks { at: call.at.clone(), asks }));
    }
    let attempt = failed.saturating_add(1);
    if let (Some(until_ms), ToolResult::Failed(error)) = (wait.room_at_ms(), &outcome.result) {
        let Spent { tokens, cost_usd, .. } = outcome.spent;
        let (at, why) = (call.at.clone(), error.detail.clone());
        return EventKind::StepWaits(Box::new(StepWaits { at, why, until_ms, tokens, cost_usd }));
    }
    let (spent, transient) = (outcome.spent, outcome.transient);
    let (error, delay, lost) = match retry::next_attempt(tool, attempt, outcome) {
        NextAttempt::None(result) => {
            let may_pass = transient.is_some_and(|failure| failure.may_pass(tool.retry.as_ref()));
            return returned(result, spent, may_pass);
        }
        NextAttempt::After(error, delay) => (error, delay, false),
        NextAttempt::Asked(error) => (error, Duration::ZERO, true),
    };
    let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    if !lost {
        let (run_id, loop_name) = (call.header.run_id.as_str(), call.header.loop_name.as_str());
        RepeatedCall { run_id, loop_name, action: &tool.name, at: &call.at, attempt, error: &error, delay_ms }.log();
    }
    let (at, duration_ms, waited_ms) = (call.at.clone(), duration_ms(), PendingModelCall::waited_ms(Some(wait)));
    EventKind::StepRetried(Box::new(StepRetried { at, attempt, error, duration_ms, waited_ms, delay_ms, lost }))
}

/// Whether a run that failed may succeed when its step runs again.
#[derive(Debug, Clone, Copy, Default)]
struct MayPass {
    /// Whether the same may succeed, by its own error.
    retryable: bool,
    /// Whether the run then continues, and is no other one.
    outage: bool,
    /// Whether its time or its budget ended it, and it continues with more.
    limited: bool,
}

async fn may_pass(engine: &Engine, program: &Program, run_id: &str) -> MayPass {
    match engine.state(program, run_id).await.as_ref().map(|state| &state.phase) {
        Ok(Phase::Ended(ending)) => MayPass {
            retryable: ending.error.as_ref().is_some_and(|error| error.retryable),
            outage: subrun::may_continue(program, ending),
            limited: program.is_flow() && continuation::limit_of(ending).is_some(),
        },
        _ => MayPass::default(),
    }
}

/// The tool that the step at an address calls.
fn tool_at<'p>(program: &'p Program, at: &str) -> Option<&'p Tool> {
    match &program.as_flow()?.step_at(at)?.action {
        StepAction::Call(call) => Some(&call.tool),
        _ => None,
    }
}
