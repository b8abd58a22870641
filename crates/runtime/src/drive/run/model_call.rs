//! A call of the model by the driver, with what can interrupt it.

use std::sync::{Mutex, PoisonError};

use super::Driver;
use super::interrupts::{Interruption, Interrupts, Waited};
use super::live::ReplyReporter;
use super::model_order;
use super::run_log;
use crate::drive::fault::Fault;
use crate::drive::lease_guard::RunLease;
use crate::drive::model::{self, Ask, KnownRequest, PartialReply, ReplyTimeouts, RetriedAttempt};
use crate::drive::notices;
use crate::drive::pending_model_call::PendingModelCall;
use crate::drive::reply_bounds;
use crate::drive::run_meter::RunMeter;
use crate::drive::secret::Vault;
use crate::drive::spending::{SpendingGuard, SpendingRun};
use crate::drive::world::World;
use loopctl_engine::budget;
use loopctl_engine::dialect;
use loopctl_engine::event::{self, EventKind, ModelFaultCode};
use loopctl_engine::history;
use loopctl_engine::notice::{Listener, Notice};
use loopctl_engine::reply::window;
use loopctl_engine::request_length;
use loopctl_engine::state::{LoopState, State};
use loopctl_lang::program::{LoopProgram, Program};

impl Driver<'_> {
    /// What came of asking the model. Failed attempts of a call that something else interrupted are recorded before.
    /// `None`: the run is to stop.
    pub(super) async fn model_event(&mut self) -> Result<Option<EventKind>, Fault> {
        let (interruption, failed) = self.ask_model().await?;
        if !failed.is_empty() {
            self.take(EventKind::AttemptsFailed(failed)).await?;
        }
        Ok(match interruption {
            Interruption::Event(what) => Some(what),
            Interruption::Stop => None,
        })
    }

    /// Asks the model for the next step, or for a summary of the messages that leave the history. The lease is
    /// confirmed right before: a driver that was suspended for longer than its lease makes no call. Also
    /// returns the failed attempts, when something else interrupted their call.
    async fn ask_model(&mut self) -> Result<(Interruption, Vec<event::FailedAttempt>), Fault> {
        self.confirm().await?;
        // The steps of a workflow ask models; it does not.
        let (Program::Loop(program), State::Loop(state)) = (&**self.program, &self.state) else {
            return Ok((Interruption::Stop, Vec::new()));
        };
        let (iteration, properties) = (state.counters.iterations + 1, &program.properties);
        let summary = state.summary_question(program);
        let (sums_up, listener) = (summary.is_some(), self.watch.listener);
        let watching = listener.filter(|listener| !sums_up && listener.wants_deltas());
        let live = watching.map(|listener| {
            let scrubber = self.world.vault.growing();
            Box::new(ReplyReporter::new(listener, iteration, &state.counters.estimator, scrubber))
        });
        let (attempts, stop) = (Mutex::new(Vec::new()), self.watch.stop.as_ref());
        let wait = self.world.model_waits.of(self.lease.run_id.as_str());
        // From its first piece on, the model is there.
        let partial = |reply: PartialReply<'_>| {
            wait.end();
            if let Some(live) = &live {
                live.take(reply);
            }
        };
        let meter = self.meter.as_deref();
        let retried = |attempt: RetriedAttempt| {
            let model = attempt.kept.model.as_deref().unwrap_or(&state.header.model.name).to_owned();
            run_log::model_failed(&state.header, &model, &attempt);
            wait.failed(attempt.shown(model));
            let RetriedAttempt { number, reason, delay_ms, kept, .. } = attempt;
            attempts.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
            announce(meter, listener, Notice::ModelRetried { iteration, attempt: number, reason, delay_ms });
            live.iter().for_each(|live| live.start_again());
        };
        let enough = |failed: &[event::FailedAttempt]| budget::is_enough(program, state, failed);
        // On the heap, because a run that waits for something else has the room for it, too.
        let question = Box::new(question(self.world, self.program, &self.lease, state).within(self.time_left()));
        let order = model_order::order(program, state);
        let ask = Ask {
            order: order.as_deref(),
            conversation: summary.as_ref().unwrap_or(&state.conversation),
            program: (!sums_up).then_some(program),
            selected: state.selected.as_deref(),
            answer: None,
            input: Some(&state.header.input.value),
            max_tokens: if sums_up { history::max_tokens(program, state) } else { window::max_tokens(program, state) },
            temperature: properties.temperature,
            stop: if sums_up { &[] } else { dialect::stop_sequences(properties.dialect) },
            partial: live.is_some().then_some(&partial),
            enough: Some(&enough),
            wait: Some(&question),
            timeouts: ReplyTimeouts::of(properties),
            must_call: !sums_up && state.must_call_a_tool(program),
            empty_is_answered: !sums_up && state.has_answered_an_empty_reply(),
            wants_text: sums_up,
            known: known(program, state, sums_up),
        };
        let left = self.time_left();
        if left.is_zero() {
            // Even the shortest timer takes a moment, and a nearby model answers within it.
            return Ok((Interruption::Event(EventKind::DeadlinePassed), Vec::new()));
        }
        // On the heap, and passed by reference: a future that is moved would take its space in each caller.
        let asked = Box::pin(model::ask(&self.models, &ask, &mut self.wire, &properties.retry, &retried));
        let interrupts = Interrupts { world: self.world, stop, run_id: &self.lease.run_id, left };
        let asked = std::pin::pin!(unless_stopped(asked, Box::pin(question.stopped(stop))));
        let answer = match &live {
            Some(live) => Box::pin(interrupts.wait(live.while_waiting(asked))).await?,
            None => interrupts.wait(asked).await?,
        };
        question.sound()?;
        let failed = || failed_attempts(&self.world.vault, &attempts, &question);
        let what = match answer {
            Waited::Done(Some(Ok(mut reply))) => {
                live.iter().for_each(|live| live.finish(&reply.text));
                reply_bounds::bound(&self.world.vault, &mut reply);
                if sums_up { EventKind::Summarized(reply) } else { EventKind::ModelReplied(reply) }
            }
            Waited::Done(Some(Err(fault))) => model_failed(&self.world.vault, fault, sums_up),
            Waited::Done(None) => return Ok((Interruption::Stop, failed())),
            Waited::Interruption(interruption) => return Ok(interrupted(interruption, failed(), &question)),
        };
        Ok((Interruption::Event(what), Vec::new()))
    }
}

/// The question of a run, with the spending limits that it is held to.
fn question<'s>(
    world: &'s World,
    program: &'s Program,
    lease: &'s RunLease,
    state: &'s LoopState,
) -> PendingModelCall<'s> {
    let (run_id, loop_name, fence) = (lease.run_id.as_str(), state.header.loop_name.as_str(), lease.fence);
    let run = SpendingRun { run_id, fence, loop_name };
    let spending = SpendingGuard::of(&world.journal, program, run);
    PendingModelCall::of(&world.deaths, run_id).shown(world.model_waits.of(run_id)).limited(spending)
}

/// What the run knows of the request. A summary is asked for with other texts.
fn known<'s>(program: &LoopProgram, state: &'s LoopState, sums_up: bool) -> KnownRequest<'s> {
    let most_input = (!sums_up).then(|| request_length::most_tokens_of(program, state));
    KnownRequest { estimator: Some(&state.counters.estimator), most_input, paid: Some(&state.watch.paid) }
}

/// Reports what is no step of the run.
fn announce(meter: Option<&dyn RunMeter>, listener: Option<&dyn Listener>, notice: Notice) {
    if let Some(meter) = meter {
        meter.on(&notice);
    }
    if let Some(listener) = listener {
        notices::report(listener, notice);
    }
}

/// The failed attempts so far, and the one that is under way: nobody will know what it used.
fn failed_attempts(
    vault: &Vault,
    attempts: &Mutex<Vec<event::FailedAttempt>>,
    question: &PendingModelCall<'_>,
) -> Vec<event::FailedAttempt> {
    let mut failed = std::mem::take(&mut *attempts.lock().unwrap_or_else(PoisonError::into_inner));
    failed.extend(question.take_under_way());
    reply_bounds::bound_attempts(vault, &mut failed);
    failed
}

/// What interrupted a call, with the failed attempts. The error of a run whose time ends while its request waits for its turn says so.
fn interrupted(
    by: Interruption,
    mut failed: Vec<event::FailedAttempt>,
    question: &PendingModelCall<'_>,
) -> (Interruption, Vec<event::FailedAttempt>) {
    if matches!(by, Interruption::Event(EventKind::DeadlinePassed)) {
        let in_line = |reason| event::FailedAttempt { reason, in_line: true, ..event::FailedAttempt::default() };
        failed.extend(question.line_in_words().map(in_line));
    }
    (by, failed)
}

fn model_failed(vault: &Vault, mut fault: event::ModelFault, sums_up: bool) -> EventKind {
    reply_bounds::bound_fault(vault, &mut fault);
    if sums_up && fault.retryable && fault.code == ModelFaultCode::ModelRefused {
        // A summary that the model refuses is done without, but not one that only lacks a good key: the messages would be
        // lost.
        fault.code = ModelFaultCode::ModelUnreachable;
    }
    EventKind::ModelFailed(fault)
}

/// What comes of a question, unless a stop comes between two attempts.
async fn unless_stopped<T>(
    mut asked: impl Future<Output = T> + Unpin,
    mut stopped: impl Future<Output = ()> + Unpin,
) -> Option<T> {
    tokio::select! {
        biased;
        answer = &mut asked => Some(answer),
        () = &mut stopped => None,
    }
}
