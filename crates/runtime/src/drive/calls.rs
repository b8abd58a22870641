//! The calls of a turn, made concurrently, each durable as it returns.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use super::clock;
use super::fault::Fault;
use super::launch;
use super::pending_model_call::{Deaths, PendingModelCall};
use super::retry::{self, NextAttempt};
use super::run::run_log::RepeatedCall;
use super::run::{Driver, Interruption, Interrupts, Waited};
use super::spending::SpendingGuard;
use super::stop::Stop;
use super::subrun::{self, PerformedCall, SubrunRequest};
use super::subrun_budget::SubrunBudgetGuard;
use super::tool::{Spent, ToolCall};
use super::world::World;
use crate::drive::future::BoxFuture;
use loopctl_engine::budget;
use loopctl_engine::call_attempt::CallAttempt;
use loopctl_engine::effect::{Effect, Effects, calls_of};
use loopctl_engine::event::{
    Allowance, CallId, EventKind, ToolAsks, ToolFault, ToolLeft, ToolResult, ToolRetried, ToolReturned,
};
use loopctl_engine::notice::Listener;
use loopctl_engine::operation::Call;
use loopctl_engine::server_question::AnsweredQuestion;
use loopctl_engine::state::RunHeader;
use loopctl_lang::program::{Program, Tool};

/// What the calls of a turn share.
struct TurnContext<'a> {
    program: Arc<Program>,
    header: Arc<RunHeader>,
    /// The lease of the driver.
    fence: u64,
    now: String,
    left: Allowance,
    listener: Option<&'a dyn Listener>,
}

impl<'a> Driver<'a> {
    /// Makes the calls of a turn. `None`: the run was stopped.
    pub(super) async fn call_tools(&mut self, calls: &[CallId]) -> Result<Option<Effects>, Fault> {
        self.confirm().await?;
        let mut under_way: FuturesUnordered<_> = self.begin_calls(calls).into_iter().collect();
        let (mut effects, mut stopped) = (Effects::new(), false);
        let interruption = loop {
            let left = self.time_left();
            let interrupts =
                Interrupts { world: self.world, stop: self.watch.stop.as_ref(), run_id: &self.lease.run_id, left };
            let done = match interrupts.wait(under_way.next()).await? {
                Waited::Done(done) => done,
                Waited::Interruption(interruption) => break interruption,
            };
            let what = match done.transpose()? {
                Some(PerformedCall::Event(what)) => {
                    // Its call is not made by this driver.
                    stopped |= matches!(what, EventKind::ToolLeft(_));
                    what
                }
                Some(PerformedCall::Partly(returned)) => EventKind::ToolReturned(returned),
                Some(PerformedCall::Stopped) => {
                    stopped = true;
                    continue;
                }
                None => return Ok((!stopped).then_some(effects)),
            };
            let next = self.take(what).await?;
            // A call that was held starts as soon as the call before it has returned.
            let released = calls_of(&next);
            if !released.is_empty() {
                self.confirm().await?;
                under_way.extend(self.begin_calls(&released));
            }
            effects.extend(next.into_iter().filter(|effect| !matches!(effect, Effect::CallTool(_))));
        };
        // Dropping a sub-run releases its lease, so that it can be ended.
        drop(under_way);
        match interruption {
            Interruption::Event(what) => self.take(what).await.map(Some),
            Interruption::Stop => Ok(None),
        }
    }

    fn begin_calls(&self, calls: &[CallId]) -> Vec<BoxFuture<'a, Result<PerformedCall, Fault>>> {
        // With a budget, calls that spend are made one after the other: this one may use all that is left.
        let bound = budget::left(self.program, &self.state);
        let turn = Arc::new(TurnContext {
            program: Arc::clone(self.program),
            header: Arc::clone(&self.state.header),
            fence: self.lease.fence,
            now: clock::rfc3339(clock::wall_ms()),
            left: bound,
            listener: self.watch.listener,
        });
        let called = |name: &str| match self.program.tool(name) {
            Some(tool) if !self.world.toolbox.is_scripted(tool) => {
                Some((tool, tool.called_loop().or(tool.launched())?))
            }
            _ => None,
        };
        let mut performed: Vec<BoxFuture<'a, Result<PerformedCall, Fault>>> = Vec::with_capacity(calls.len());
        for call in calls.iter().filter_map(|id| self.state.call(*id)) {
            performed.push(match called(&call.name) {
                Some((tool, called)) => {
                    let time = Duration::from_millis(tool.timeout_ms);
                    let budget = self.budget.as_ref().map(SubrunBudgetGuard::budget).unwrap_or_default();
                    let (world, stop) = (Arc::clone(self.world), self.watch.stop.clone());
                    if tool.launched().is_some() {
                        let request = SubrunRequest::of_own(&self.state, call, called, time);
                        launch::call(world, request, stop, budget)
                    } else {
                        let time = time.min(self.time_left());
                        let request = SubrunRequest::new(&self.state, call, called, time, bound);
                        subrun::call(world, request, stop, budget)
                    }
                }
                None => {
                    let (world, turn, stop) = (Arc::clone(self.world), Arc::clone(&turn), self.watch.stop.clone());
                    let attempt = Attempt::of(call);
                    let tool = self.program.tool(&call.name);
                    let after_crash = tool.map(Tool::after_crash).unwrap_or_default();
                    let own = tool.map(|tool| Duration::from_millis(tool.timeout_ms));
                    let left = self.time_left();
                    let time = own.into_iter().chain([left]).min().unwrap_or_default();
                    Box::pin(async move {
                        if !attempt.timer.due(&world.deaths, &turn.header.run_id, stop.as_ref()).await {
                            return Ok(PerformedCall::Stopped);
                        }
                        let wait = PendingModelCall::of(&world.deaths, &turn.header.run_id)
                            .shown(world.model_waits.of_call(&turn.header.run_id, attempt.id, after_crash))
                            .within(time)
                            .in_turn_within(left)
                            .limited(SpendingGuard::of_call(&world.journal, &turn.program, &turn.header, turn.fence));
                        tokio::select! {
                            biased;
                            made = make(&world, &turn, &attempt, &wait) => wait.sound().map(|()| made),
                            () = wait.stopped(stop.as_ref()) => {
                                let Spent { tokens, cost_usd, .. } = wait.spent();
                                let left = ToolLeft { call: attempt.id, tokens, cost_usd };
                                Ok(PerformedCall::Event(EventKind::ToolLeft(left)))
                            }
                        }
                    })
                }
            });
        }
        performed
    }
}

/// An attempt at a call of a tool that is no loop.
struct Attempt {
    id: CallId,
    tool: String,
    input: Arc<Value>,
    /// What its server asked, and was answered, and how often it asked.
    answered: Vec<AnsweredQuestion>,
    asked: u32,
    timer: AttemptTimer,
}

impl Attempt {
    fn of(call: &Call) -> Self {
        let (tool, input) = (call.name.clone(), call.input.clone());
        let (answered, asked) = (call.answered.clone(), call.asked);
        Self { id: call.address, tool, input, answered, asked, timer: AttemptTimer::after(&call.attempts) }
    }
}

/// When the next attempt at a call is due.
pub(super) struct AttemptTimer {
    /// How many attempts failed before.
    pub failed: u32,
    /// When it is due, in milliseconds since 1970, and the whole wait before it; none for a first attempt.
    due: Option<(i64, u64)>,
}

impl AttemptTimer {
    /// The attempt after these.
    pub fn after(attempts: &[CallAttempt]) -> Self {
        let due_at = |last: &CallAttempt| {
            (last.at_ms.saturating_add(i64::try_from(last.delay_ms).unwrap_or(i64::MAX)), last.delay_ms)
        };
        let failed = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
        Self { failed, due: attempts.last().map(due_at) }
    }

    /// Waits until it is due: after a crash, for what is left of the wait. Returns `false` if the run is to stop: an
    /// attempt that waits is not under way.
    pub async fn due(&self, deaths: &Deaths, run_id: &str, stop: Option<&Stop>) -> bool {
        let Some((due_ms, delay_ms)) = self.due else { return true };
        let left_ms = u64::try_from(due_ms.saturating_sub(clock::wall_ms())).unwrap_or(0).min(delay_ms);
        if left_ms > 0 {
            deaths.only_waits(run_id).await;
        }
        let stopped = async {
            match stop {
                Some(stop) => stop.asked().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stopped => false,
            () = clock::sleep(Duration::from_millis(left_ms)) => true,
        }
    }
}

/// Makes an attempt. One that failed and is followed by another one is not the end of the call.
async fn make(world: &World, turn: &TurnContext<'_>, attempt: &Attempt, wait: &PendingModelCall<'_>) -> PerformedCall {
    let began = clock::instant();
    let (id, name, input) = (attempt.id, attempt.tool.as_str(), &attempt.input);
    // What a call waits for its turn is no time of it.
    let duration_ms = || clock::elapsed_ms(began).saturating_sub(PendingModelCall::waited_ms(Some(wait)));
    let returned = |result, spent: Spent| {
        let duration_ms = duration_ms();
        let Spent { tokens, cost_usd, estimated, at_most } = spent;
        PerformedCall::Event(EventKind::ToolReturned(ToolReturned {
            call: id,
            result,
            duration_ms,
            waited_ms: PendingModelCall::waited_ms(Some(wait)),
            tokens,
            cost_usd,
            estimated,
            at_most,
            run_id: None,
            attempts: wait.take_attempts(),
        }))
    };
    let Some(tool) = turn.program.tool(name) else {
        let class = "the document no longer has this tool".to_owned();
        return returned(ToolResult::Failed(ToolFault { class, ..ToolFault::default() }), Spent::default());
    };
    let call = ToolCall {
        id,
        at: None,
        request: 0,
        input,
        run_input: turn.program.input_of(&turn.header.input.value),
        lists: None,
        run_id: &turn.header.run_id,
        loop_name: &turn.header.loop_name,
        json: turn.header.json_rule(),
        now: &turn.now,
        model: &turn.header.model.name,
        left: turn.left,
        deadline: Duration::from_millis(tool.timeout_ms),
        trace: world.trace_context(&turn.header.run_id, &id.to_string()),
        answered: &attempt.answered,
        listener: turn.listener,
        wait: Some(wait),
    };
    let mut outcome = world.call_in_turn(tool, &call).await;
    if let Some(asks) = outcome.take_question(attempt.asked) {
        return PerformedCall::Event(EventKind::ToolAsks(Box::new(ToolAsks { call: id, asks })));
    }
    let number = attempt.timer.failed.saturating_add(1);
    let spent = outcome.spent;
    let (error, delay, lost) = match retry::next_attempt(tool, number, outcome) {
        NextAttempt::None(result) => return returned(result, spent),
        NextAttempt::After(error, delay) => (error, delay, false),
        NextAttempt::Asked(error) => (error, Duration::ZERO, true),
    };
    let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    if !lost {
        let (run_id, loop_name) = (turn.header.run_id.as_str(), turn.header.loop_name.as_str());
        RepeatedCall { run_id, loop_name, action: name, at: &id, attempt: number, error: &error, delay_ms }.log();
    }
    let duration_ms = duration_ms();
    PerformedCall::Event(EventKind::ToolRetried(ToolRetried {
        call: id,
        attempt: number,
        error,
        duration_ms,
        waited_ms: PendingModelCall::waited_ms(Some(wait)),
        delay_ms,
        lost,
    }))
}
