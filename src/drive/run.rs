//! The driver of one run: the only loop that awaits. It performs an effect, takes what came of it into
//! the state, makes it durable, and only then performs the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::clock;
use super::engine::{Finished, Watch, World, standing, written};
use super::fault::Fault;
use super::hold::Hold;
use super::model::{self, Ask, Attempt, Model, Wire};
use super::stop::Stop;
use super::tool::ToolCall;
use crate::compile::Program;
use crate::engine::dialect;
use crate::engine::effect::{Effect, Effects};
use crate::engine::event::{CallId, Cancelled, Event, Finish, Moment, ToolFault, ToolResult, ToolReturned, What};
use crate::engine::notice::{Listener, Mark, Notice};
use crate::engine::outcome::{Status, Termination};
use crate::engine::state::{Phase, State};
use crate::engine::step::step;
use crate::journal::{Append, failpoint};

/// How often a run looks whether its end was asked for.
const LOOK: Duration = Duration::from_millis(250);
/// How long the last call of `on_limit: answer` may take when the run's time is over.
const LAST_WORD_MS: u64 = 60_000;
/// The longest reply that is kept; what is longer can't be read anyway.
const REPLY_BYTES: usize = 4 * 1024 * 1024 + 1024;

/// The driver's place in the journal.
pub(super) struct Seat {
    /// The run.
    pub run_id: String,
    /// The lease's number.
    pub fence: u64,
    /// How many events the run has.
    pub events: u64,
    /// The lease: it goes back when the driver leaves, however it does.
    pub hold: Hold,
}

/// Drives one run.
pub(super) struct Driver<'a> {
    world: &'a World,
    program: &'a Arc<Program>,
    models: Vec<Arc<Model>>,
    state: State,
    seat: Seat,
    watch: Watch<'a>,
    wire: Wire,
    /// The active time before this driver, and when it began.
    active: (u64, Instant),
    /// When it was last looked whether the run's end was asked for; never yet in a run that is taken up.
    looked: Option<Instant>,
}

/// What came while an effect was performed.
enum Came {
    Event(What),
    Stop,
}

impl<'a> Driver<'a> {
    pub fn new(
        world: &'a World,
        program: &'a Arc<Program>,
        models: Vec<Arc<Model>>,
        (state, seat): (State, Seat),
        watch: Watch<'a>,
    ) -> Box<Self> {
        let mut wire = Wire::default();
        let used = state.tally.iterations.saturating_add(state.tally.model_retries);
        wire.skip_replies(usize::try_from(used).unwrap_or(usize::MAX));
        let now = clock::instant();
        let active = (state.now.active_ms, now);
        // A request may be older than the driver who takes the run up.
        let looked = (seat.events <= 1).then_some(now);
        // On the heap: a future that is moved moves a pointer, and holds the driver once.
        Box::new(Self { world, program, models, state, seat, watch, wire, active, looked })
    }

    /// Tells the listener that the run begins, or goes on.
    pub fn tell_start(&self, resumed: bool) {
        let begun = &self.state.begun;
        self.tell(|| {
            if resumed {
                Notice::RunResumed {
                    run_id: begun.run_id.clone(),
                    loop_name: begun.loop_name.clone(),
                    iterations: self.state.tally.iterations,
                }
            } else {
                Notice::RunStarted {
                    run_id: begun.run_id.clone(),
                    loop_name: begun.loop_name.clone(),
                    model: begun.model.name.clone(),
                    objective: begun.objective.clone(),
                    max_iterations: self.program.properties.max_iterations,
                }
            }
        });
    }

    /// Goes on with what came from outside, one after the other.
    pub async fn go_on(mut self: Box<Self>, what: Vec<What>) -> Result<Finished, Fault> {
        let refused = |fault| match fault {
            // Nothing was under way yet: what was asked was refused, or could not be kept.
            Fault::Cut(fault) => Fault::Store(fault),
            other => other,
        };
        let mut effects = Effects::new();
        for what in what {
            match self.take(what).await {
                Ok(next) => effects = next,
                Err(fault) => {
                    drop(self.seat.hold.give_back().await);
                    return Err(refused(fault));
                }
            }
        }
        self.drive(effects).await
    }

    /// Drives the run until it ends, waits for a human, or is stopped.
    pub async fn drive(mut self: Box<Self>, effects: Effects) -> Result<Finished, Fault> {
        let driven = self.performed(effects).await;
        let Self { state, seat, .. } = *self;
        let released = seat.hold.give_back().await;
        driven?;
        released.map_err(Fault::Cut)?;
        Ok(Finished { state })
    }

    async fn performed(&mut self, mut effects: Effects) -> Result<(), Fault> {
        loop {
            if self.should_stop() {
                if self.watch.stop.as_ref().is_some_and(Stop::is_leaving) {
                    return Ok(());
                }
                return self.interrupt().await;
            }
            if self.look_due()
                && let Some(request) = self.cancel_request().await?
            {
                effects = self.take(request).await?;
                continue;
            }
            let calls: Vec<CallId> = effects
                .iter()
                .filter_map(|effect| match effect {
                    Effect::CallTool(id) => Some(*id),
                    Effect::CallModel | Effect::Remember(_) => None,
                })
                .collect();
            if !calls.is_empty() {
                effects = match self.call_tools(&calls).await? {
                    Some(effects) => effects,
                    None => return self.interrupt().await,
                };
            } else if effects.contains(&Effect::CallModel) {
                let came = self.ask_model().await?;
                effects = match came {
                    Came::Event(what) => self.take(what).await?,
                    Came::Stop => return self.interrupt().await,
                };
            } else {
                return Ok(());
            }
        }
    }

    /// Takes what came into the state and makes it durable: after that, and not before, the effects may
    /// be performed.
    async fn take(&mut self, what: What) -> Result<Effects, Fault> {
        let event = Event { at: self.moment(), what };
        let text = written(&event)?;
        let mark = Mark::of(&self.state);
        let before = self.state.status();
        let effects = step(self.program, &mut self.state, event)?;
        let changed = self.state.status() != before || !matches!(self.state.status(), Status::Running);
        let append = Append {
            run_id: self.seat.run_id.clone(),
            fence: self.seat.fence,
            seq: self.seat.events,
            event: text,
            standing: changed.then(|| standing(&self.state)),
            remember: self.remembered(&effects),
        };
        self.world.journal.append(append).await.map_err(Fault::Cut)?;
        self.seat.events += 1;
        if let Some(listener) = self.watch.listener {
            for notice in mark.since(&self.state) {
                listener.on(notice);
            }
        }
        Ok(effects)
    }

    fn remembered(&self, effects: &Effects) -> Vec<(String, serde_json::Value)> {
        effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Remember(key) => self.state.memory.get(key).map(|value| (key.clone(), value.clone())),
                Effect::CallModel | Effect::CallTool(_) => None,
            })
            .collect()
    }

    /// Asks the model. Right before, the lease is looked at: a driver that was asleep for longer than
    /// its lease makes no call.
    async fn ask_model(&mut self) -> Result<Came, Fault> {
        self.confirm().await?;
        let iteration = self.state.tally.iterations + 1;
        self.tell(|| Notice::ModelAsked { iteration });
        let properties = &self.program.properties;
        let listener = self.watch.listener;
        let delta = |text: &str| {
            if let Some(listener) = listener {
                listener.on(Notice::ModelDelta { iteration, text: text.to_owned() });
            }
        };
        let retried = |attempt: Attempt| {
            if let Some(listener) = listener {
                let Attempt { number, reason, delay_ms } = attempt;
                listener.on(Notice::ModelRetried { iteration, attempt: number, reason, delay_ms });
            }
        };
        let ask = Ask {
            conversation: &self.state.conversation,
            max_tokens: properties.max_tokens,
            temperature: properties.temperature,
            stop: dialect::stop_sequences(properties.dialect),
            deltas: listener.is_some_and(Listener::wants_deltas).then_some(&delta),
        };
        // Pinned here and lent: a future that is handed on would take its place in each that holds it.
        let asked = std::pin::pin!(model::ask(&self.models, &ask, &mut self.wire, &properties.retry, &retried));
        let left = time_left(&self.state, self.active);
        let around = Around { world: self.world, stop: self.watch.stop.as_ref(), run_id: &self.seat.run_id, left };
        let answer = around.wait(asked).await?;
        let what = match answer {
            Waited::Done(Ok(mut reply)) => {
                reply.text = self.world.vault.scrub(reply.text);
                if reply.text.len() > REPLY_BYTES {
                    reply.text.truncate(reply.text.floor_char_boundary(REPLY_BYTES));
                    reply.finish = Finish::Length;
                }
                What::ModelReplied(reply)
            }
            Waited::Done(Err(fault)) => What::ModelFailed(fault),
            Waited::Came(came) => return Ok(came),
        };
        Ok(Came::Event(what))
    }

    /// Makes the calls of a turn side by side, each durable as it returns. `None`: stopped.
    async fn call_tools(&mut self, calls: &[CallId]) -> Result<Option<Effects>, Fault> {
        self.confirm().await?;
        let now = clock::rfc3339(clock::wall_ms());
        let model = self.state.begun.model.name.clone();
        let run_input = self.state.begun.input.clone();
        let run_id = self.seat.run_id.clone();
        let program = Arc::clone(self.program);
        let world = self.world;
        let mut under_way = FuturesUnordered::new();
        for id in calls {
            let Some(call) = self.state.call(*id) else { continue };
            self.tell(|| Notice::ToolCalled { call: *id, action: call.tool.clone(), action_input: call.input.clone() });
            let (name, input) = (call.tool.clone(), call.input.clone());
            let (program, run_input, run_id, now, model) = (&program, &run_input, &run_id, &now, &model);
            under_way.push(async move {
                let began = clock::instant();
                let Some(tool) = program.tool(&name) else {
                    let class = "the document no longer has this tool".to_owned();
                    let result = ToolResult::Failed(ToolFault { class, detail: String::new() });
                    return ToolReturned { call: *id, result, duration_ms: 0, tokens: None };
                };
                let deadline = Duration::from_millis(tool.timeout_ms);
                let call = ToolCall { id: *id, input: &input, run_input, run_id, now, model, deadline };
                let called = world.toolbox.call(tool, &call).await;
                let duration_ms = clock::elapsed_ms(began);
                ToolReturned { call: *id, result: called.result, duration_ms, tokens: called.tokens }
            });
        }
        let mut effects = Effects::new();
        loop {
            let left = time_left(&self.state, self.active);
            let around = Around { world: self.world, stop: self.watch.stop.as_ref(), run_id: &self.seat.run_id, left };
            match around.wait(under_way.next()).await? {
                Waited::Done(Some(returned)) => effects.extend(self.take(What::ToolReturned(returned)).await?),
                Waited::Done(None) => return Ok(Some(effects)),
                Waited::Came(Came::Event(what)) => return self.take(what).await.map(Some),
                Waited::Came(Came::Stop) => return Ok(None),
            }
        }
    }

    /// Stops between two steps, so that the run can be resumed.
    async fn interrupt(&mut self) -> Result<(), Fault> {
        self.take(What::Interrupted).await?;
        self.tell(|| Notice::RunEnded { status: Status::Cancelled, termination: Termination::Cancelled });
        Ok(())
    }

    /// A stop after the step waits for the turn's calls: what was asked for and not made would be
    /// uncertain without need.
    fn should_stop(&self) -> bool {
        matches!(self.state.phase, Phase::Thinking { .. }) && self.watch.stop.as_ref().is_some_and(Stop::is_asked)
    }

    fn look_due(&mut self) -> bool {
        let due = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK);
        if due {
            self.looked = Some(clock::instant());
        }
        due && !matches!(self.state.phase, Phase::Ended(_))
    }

    async fn cancel_request(&self) -> Result<Option<What>, Fault> {
        cancel_request(self.world, &self.seat.run_id).await
    }

    async fn confirm(&self) -> Result<(), Fault> {
        self.world.journal.confirm(&self.seat.run_id, self.seat.fence).await.map_err(Fault::Cut)?;
        failpoint::before_effect();
        Ok(())
    }

    fn moment(&self) -> Moment {
        let active_ms = self.active.0.saturating_add(clock::elapsed_ms(self.active.1));
        Moment { wall_ms: clock::wall_ms(), active_ms }
    }

    fn tell(&self, notice: impl FnOnce() -> Notice) {
        if let Some(listener) = self.watch.listener {
            listener.on(notice());
        }
    }
}

/// The active time that is left.
fn time_left(state: &State, (before, began): (u64, Instant)) -> Duration {
    let active = before.saturating_add(clock::elapsed_ms(began));
    let bound = match state.phase {
        // The last word has a time of its own, from the moment that it was asked for.
        Phase::Thinking { forced: Some(_) } => state.now.active_ms.saturating_add(LAST_WORD_MS),
        _ => state.begun.timeout_ms,
    };
    Duration::from_millis(bound.saturating_sub(active))
}

async fn cancel_request(world: &World, run_id: &str) -> Result<Option<What>, Fault> {
    let request = world.journal.cancel_requested(run_id).await.map_err(Fault::Cut)?;
    Ok(request.map(|request| What::Cancelled(Cancelled { reason: request.reason })))
}

/// What is looked at while an effect is performed: the run's time, a stop, a request to end.
struct Around<'a> {
    world: &'a World,
    stop: Option<&'a Stop>,
    run_id: &'a str,
    left: Duration,
}

enum Waited<T> {
    Done(T),
    Came(Came),
}

impl Around<'_> {
    async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<Waited<T>, Fault> {
        let stopped = async {
            match self.stop {
                Some(stop) => stop.asked_now().await,
                None => std::future::pending().await,
            }
        };
        let asked_to_end = async {
            loop {
                tokio::time::sleep(LOOK).await;
                match cancel_request(self.world, self.run_id).await {
                    Ok(None) => {}
                    Ok(Some(what)) => return Ok(what),
                    Err(fault) => return Err(fault),
                }
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(Waited::Done(done)),
            () = stopped => Ok(Waited::Came(Came::Stop)),
            () = tokio::time::sleep(self.left) => Ok(Waited::Came(Came::Event(What::DeadlinePassed))),
            request = asked_to_end => Ok(Waited::Came(Came::Event(request?))),
        }
    }
}
