//! The driver of one run: the only loop that awaits. It performs an effect, applies the outcome to the state,
//! makes it durable, and only then performs the next effect.

mod in_line;
mod interrupts;
mod live;
mod model_call;
mod model_order;
pub(super) mod run_log;
pub(super) mod spender;
mod unsent_calls;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::audit;
use super::clock;
use super::fault::Fault;
use super::fold::written;
use super::lease_guard::RunLease;
use super::model::{ModelClient, Wire};
use super::model_waits::DrivenHere;
use super::posts_under_way::PostsUnderWay;
use super::question_owner;
use super::run_meter::RunMeter;
use super::run_result::Finished;
use super::status::{progress, status_record};
use super::stop::Stop;
use super::subrun;
use super::subrun_budget::SubrunBudgetGuard;
use super::unused_events::pass_on_unused;
use super::world::{Engine, Watch, World};
use crate::drive::notices::report;
use crate::journal::{Append, Ticket, failpoint};
pub(super) use interrupts::CANCEL_POLL_INTERVAL;
use interrupts::cancel_request;
pub(super) use interrupts::{Interruption, Interrupts, Waited};
use loopctl_engine::address::StepAddress;
use loopctl_engine::decision::approval;
use loopctl_engine::effect::{Effect, Effects, calls_of, steps_of};
use loopctl_engine::event::{Decision, Event, EventKind, Moment, Tokens};
use loopctl_engine::flow::first_waiting;
use loopctl_engine::notice::{Baseline, Notice};
use loopctl_engine::outcome::Status;
use loopctl_engine::state::{Phase, State};
use loopctl_engine::step::step;
use loopctl_engine::wait_deadline::{due_times, waits_beside_since_ms, waits_for_room};
use loopctl_lang::program::Program;
use run_log::LoggedChange;
use spender::{LostSpend, Spender};

/// What lists show of the steps that wait for a human beside others: since when, and the question of the first one.
#[derive(PartialEq)]
struct ListedWait {
    since_ms: i64,
    first: Option<StepAddress>,
}

impl ListedWait {
    fn of(state: &State) -> Option<Self> {
        waits_beside_since_ms(state).map(|since_ms| Self { since_ms, first: first_waiting(state).cloned() })
    }
}

/// Drives one run.
pub(super) struct Driver<'a> {
    pub(super) world: &'a Arc<World>,
    pub(super) program: &'a Arc<Program>,
    models: Vec<Arc<ModelClient>>,
    pub(super) state: State,
    pub(super) lease: RunLease,
    pub(super) watch: Watch<'a>,
    wire: Wire,
    /// The active time before this driver, and when this driver began.
    pub(super) active: (u64, Instant),
    /// When the driver last checked for a request to end the run; none before the first check of a resumed run.
    checked_at: Option<Instant>,
    /// The runs that it calls, and those that they call; none for a loop that calls no loop.
    pub(super) budget: Option<SubrunBudgetGuard<'a>>,
    /// The hash of the answer token that the next decision uses up.
    pub(super) answer_token: Option<String>,
    /// The id of the queued decision that the next decision is.
    pub(super) queued_decision: Option<String>,
    /// Whether runs of steps continue although the steps of their `on_failure` have run.
    pub(super) after_on_failure: bool,
    /// What waits for a human beside what is under way, as lists show it; none while that is not known, because another
    /// driver wrote it.
    listed_wait: Option<Option<ListedWait>>,
    /// Whether the log has no line yet that the run started.
    is_new: bool,
    /// What counts for it; none where nobody asks for that.
    meter: Option<Box<dyn RunMeter>>,
    /// Rows of the run may say that its model is away for as long as it is driven.
    _driven_here: DrivenHere,
    /// The steps whose events were looked for among those that came before.
    pub(super) looked_for: BTreeSet<String>,
    /// The questions that are being posted.
    pub(super) posts: PostsUnderWay,
    /// Whether another event follows at once that makes a run continue: it is not over, although its state says so.
    continues: bool,
    /// Whether it looks for room in the spending limits that were full before a human decided.
    looks_for_room: bool,
}

/// An event that was applied to the state, and handed to the journal.
pub(super) struct HandedOver {
    stored: Ticket<()>,
    /// Whether the lease is released with it: nothing follows the end of a run.
    releases: bool,
    followed: FollowedEvent,
}

/// What follows an event once it is durable.
struct FollowedEvent {
    notices: Vec<Notice>,
    effects: Effects,
    /// What the log has a line about.
    logged: Option<LoggedChange>,
    /// What the event spent, if that is counted.
    spent: Option<SpentByEvent>,
}

/// What an event spent of the run itself.
struct SpentByEvent {
    spender: Spender,
    tokens: Tokens,
    cost_usd: f64,
    /// What of it was lost in failed attempts.
    lost: Vec<LostSpend>,
    /// Whether the run ended with it.
    ends: bool,
}

/// An event that was applied to the state, and that the journal does not have yet.
struct AppliedEvent {
    append: Append,
    followed: FollowedEvent,
}

/// A run to be driven: its state, and the lease on it.
pub(super) struct HeldRun {
    pub state: State,
    pub lease: RunLease,
    /// Whether it waited for a driver since it was created, and no one has reported its start.
    pub is_new: bool,
}

impl<'a> Driver<'a> {
    pub fn new(
        world: &'a Arc<World>,
        program: &'a Arc<Program>,
        models: Vec<Arc<ModelClient>>,
        run: HeldRun,
        watch: Watch<'a>,
    ) -> Box<Self> {
        let HeldRun { state, lease, is_new } = run;
        let mut wire = Wire::default();
        wire.skip_replies(usize::try_from(state.model_calls()).unwrap_or(usize::MAX));
        wire.play(state.header.caller.as_ref().map(|_| state.header.loop_name.as_str()), program.step().is_some());
        wire.of_run(&state.header.run_id);
        let now = clock::instant();
        let active = (state.now.active_ms, now);
        // The request may be older than the driver that resumes the run.
        let checked_at = (lease.events <= 1).then_some(now);
        let listed_wait = (lease.events <= 1 || !program.is_flow()).then(|| ListedWait::of(&state));
        let budget = SubrunBudgetGuard::of(world, program, &state.header);
        let meter = world.meters.as_ref().map(|meters| meters.of(&state.header, program));
        let caller = state.header.caller.as_ref().map(|caller| caller.run_id.as_str());
        let driven_here = world.model_waits.driven(&lease.run_id, caller, lease.fence);
        // On the heap: moving a future then moves a pointer, and the driver exists once.
        Box::new(Self {
            world,
            program,
            models,
            state,
            lease,
            watch,
            wire,
            active,
            checked_at,
            budget,
            answer_token: None,
            queued_decision: None,
            listed_wait,
            is_new,
            meter,
            _driven_here: driven_here,
            looked_for: BTreeSet::new(),
            after_on_failure: false,
            posts: PostsUnderWay::default(),
            continues: false,
            looks_for_room: false,
        })
    }

    /// Reports the start of the run to the listener. The log says that it started when it has its place in its line.
    pub fn report_start(&self, effects: &Effects, waits_in_line: bool) {
        if !waits_in_line {
            run_log::first_event(self.program, &self.state);
        }
        self.report(Baseline::of_start(), effects);
        if let (Some(meter), Phase::Ended(ending)) = (&self.meter, &self.state.phase) {
            meter.ended(ending);
        }
    }

    /// Resumes the run with these events, one after the other. All must fit before the first one is stored: one that does
    /// not fit leaves none behind.
    pub async fn go_on(mut self: Box<Self>, what: Vec<EventKind>) -> Result<Finished, Fault> {
        let refused = |fault| match fault {
            // Nothing was under way yet: the request was refused, or could not be stored.
            Fault::Cut(fault) => Fault::Store(fault),
            other => other,
        };
        if self.is_new {
            run_log::started(&self.state);
        }
        let is_called = self.state.header.caller.is_some();
        if let Some(member) = self.budget.as_ref().filter(|_| !is_called && !self.program.is_flow()) {
            // Including the sub-runs of earlier drivers.
            match self.world.journal.called_under(&self.lease.run_id).await {
                Ok(called) => member.had(called),
                Err(fault) => {
                    drop(self.lease.guard.give_back().await);
                    return Err(Fault::Store(fault));
                }
            }
        }
        let continues = matches!(self.state.phase, Phase::Ended(_));
        self.looks_for_room =
            what.iter().any(|what| matches!(what, EventKind::Human(decided) if decided.decision != Decision::Retry));
        match self.take_resuming(what).await {
            Ok(effects) => {
                self.watch.accepted();
                self.drive_in_line(effects, continues).await
            }
            Err(fault) => {
                drop(self.lease.guard.give_back().await);
                Err(refused(fault))
            }
        }
    }

    /// The same as `take_all`, behind the events that take calls back of which nothing was sent.
    async fn take_resuming(&mut self, what: Vec<EventKind>) -> Result<Effects, Fault> {
        let mut left = Box::pin(self.left_unsent(&what)).await?;
        if left.is_empty() {
            return self.take_all(what).await;
        }
        left.extend(what);
        let effects = self.take_all(left).await?;
        Box::pin(self.forget_unsent()).await?;
        Ok(effects)
    }

    /// Applies these events and makes them durable. Gives the effects that follow.
    async fn take_all(&mut self, what: Vec<EventKind>) -> Result<Effects, Fault> {
        let mut applied = Vec::with_capacity(what.len());
        let mut what = what.into_iter().peekable();
        while let Some(kind) = what.next() {
            if let (EventKind::Human(decided), false) = (&kind, applied.is_empty()) {
                // What is asked may be another question after the events before it.
                let engine = Engine { world: Arc::clone(self.world) };
                Box::pin(question_owner::accepts(&engine, self.program, &self.state, decided)).await?;
            }
            self.close_below(&kind).await?;
            self.continues = what.peek().is_some();
            applied.push(self.apply(kind)?);
        }
        // One write: a process that dies leaves all of them, or none.
        let (entries, followed): (Vec<Append>, Vec<FollowedEvent>) =
            applied.into_iter().map(|applied| self.numbered(applied)).unzip();
        let releases = entries.iter().any(|entry| entry.release);
        let handed_at = self.meter.as_ref().map(|_| clock::instant());
        self.world.journal.append_all(entries).await.map_err(Fault::Cut)?;
        self.world.model_waits.row_replaced(&self.lease.run_id);
        if releases {
            self.lease.guard.released();
        }
        let mut effects = Effects::new();
        for followed in followed {
            let next = self.follow(followed, handed_at);
            match self.program.is_flow() {
                true => effects.extend(next),
                false => effects = next,
            }
        }
        Ok(effects)
    }

    /// The same as [`Driver::drive`] for a run that is resumed. `continues`: after it had ended, so that it needs a place anew.
    async fn drive_in_line(mut self: Box<Self>, effects: Effects, continues: bool) -> Result<Finished, Fault> {
        let engine = Engine { world: Arc::clone(self.world) };
        if continues && Box::pin(self.left_in_line(&engine)).await? {
            // Whoever drives it when it has a place asks what it asks.
            return self.leave().await;
        }
        self.drive(effects).await
    }

    /// Drives the run until it ends, waits for a human, or is stopped.
    pub async fn drive(mut self: Box<Self>, effects: Effects) -> Result<Finished, Fault> {
        let driven = self.performed(effects).await;
        if matches!(self.state.phase, Phase::Ended(_)) {
            Box::pin(pass_on_unused(&*self.world.journal, &self.state)).await;
        }
        let Self { state, lease, .. } = *self;
        let released = lease.guard.give_back().await;
        driven?;
        released.map_err(Fault::Cut)?;
        Ok(Finished { state })
    }

    async fn performed(&mut self, mut effects: Effects) -> Result<(), Fault> {
        loop {
            if self.should_stop() {
                return self.stopped().await;
            }
            if self.look_due()
                && let Some(request) = self.cancel_request().await?
            {
                effects = self.take(request).await?;
                continue;
            }
            if self.state.waits_in_line() {
                if self.watch.stop.as_ref().is_some_and(Stop::is_asked) {
                    return self.stopped().await;
                }
                effects = self.take(EventKind::Admitted).await?;
                continue;
            }
            let (calls, steps) = (calls_of(&effects), steps_of(&effects));
            if !steps.is_empty() {
                effects = match Box::pin(self.run_steps(steps)).await? {
                    Some(effects) => effects,
                    None => return self.stopped().await,
                };
            } else if !calls.is_empty() {
                effects = match self.call_tools(&calls).await? {
                    Some(effects) => effects,
                    // Also when the run was asked to leave: then its sub-runs are left too.
                    None => return self.stopped().await,
                };
            } else if effects.contains(&Effect::CallModel) || effects.contains(&Effect::Summarize) {
                // A run that waits for its model holds none.
                drop(effects);
                let Some(what) = self.model_event().await? else { return self.stopped().await };
                effects = self.take(what).await?;
            } else if let Some(next) = Box::pin(self.take_kept_events()).await? {
                effects = next;
            } else if let Some(what) = self.due_in_pause() {
                effects = self.take(what).await?;
            } else if let Some(next) = Box::pin(self.post_questions()).await? {
                effects = next;
            } else {
                return Ok(());
            }
        }
    }

    /// What is due of a run that pauses, before it is left: what expired while its models were asked, and a look for room in a spending
    /// limit that was full before a human decided. It may have been raised while the run waited for that human.
    fn due_in_pause(&mut self) -> Option<EventKind> {
        let waits_for_room = waits_for_room(&self.state);
        if std::mem::take(&mut self.looks_for_room) && waits_for_room {
            return Some(EventKind::Resumed);
        }
        let is_flow = self.program.is_flow() && matches!(self.state.phase, Phase::Paused { .. });
        let is_due = is_flow && due_times(&self.state).own.is_some_and(|at_ms| at_ms <= clock::wall_ms());
        is_due.then_some(EventKind::ApprovalExpired)
    }

    /// Applies an event to the state and makes it durable. The effects may be performed only after that.
    pub(super) async fn take(&mut self, what: EventKind) -> Result<Effects, Fault> {
        self.close_below(&what).await?;
        let cancelled = match &what {
            EventKind::Cancelled(cancelled) => Some(cancelled.clone()),
            _ => None,
        };
        let taken = self.hand_over(what)?;
        let effects = self.durable(taken).await?;
        if let Some(cancelled) = cancelled {
            run_log::cancelled(&self.state, &cancelled);
        }
        Ok(effects)
    }

    /// Ends the sub-runs if the run ends with an event.
    async fn close_below(&self, what: &EventKind) -> Result<(), Fault> {
        let ends = match what {
            // The runs of a workflow's steps end by themselves in their time.
            EventKind::DeadlinePassed => !self.program.is_flow(),
            EventKind::Cancelled(_) => true,
            EventKind::ApprovalExpired => approval::fails_by(&self.state, clock::wall_ms()),
            _ => false,
        };
        if ends {
            // Before the append: if the process dies now, no sub-run outlives its caller.
            subrun::close(self.world, self.program, &self.state).await?;
        }
        Ok(())
    }

    /// Applies an event to the state, and hands it to the journal.
    pub(super) fn hand_over(&mut self, what: EventKind) -> Result<HandedOver, Fault> {
        let applied = self.apply(what)?;
        Ok(self.send(applied))
    }

    /// Applies an event to the state.
    fn apply(&mut self, what: EventKind) -> Result<AppliedEvent, Fault> {
        let event = Event { at: self.moment(), kind: what };
        let (text, texts, mut audit) = (written(&event)?, event.kind.texts(), audit::of_event(&event));
        let (names_nothing, decisions) = (audit::names_nothing(&event.kind), self.state.decisions.len());
        let baseline = Baseline::new(&self.state, &event.kind);
        let (answer_token, decision) = match event.kind {
            EventKind::Human(_) => (self.answer_token.take(), self.queued_decision.take()),
            _ => (None, None),
        };
        let (before, progressed) = (self.state.status(), progress(&self.state));
        let had_ended = matches!(self.state.phase, Phase::Ended(_));
        let is_cancel = matches!(event.kind, EventKind::Cancelled(_));
        let (unlogged, interrupts) = (run_log::LoggedState::of(&self.state), run_log::is_interruption(&event.kind));
        let counted = self.meter.as_ref().map(|_| (Spender::of(&event.kind, self.program, &self.state), self.spent()));
        let attempts = spender::attempts(&self.state);
        let effects = step(self.program, &mut self.state, event)?;
        if names_nothing {
            let new = self.state.decisions.get(decisions..).unwrap_or_default();
            audit = audit.map(|line| Box::new(audit::with_places(&line, new)));
        }
        let listed_wait = Some(ListedWait::of(&self.state));
        let changed = self.state.status() != before
            || !matches!(self.state.status(), Status::Running)
            || self.listed_wait != listed_wait
            || progress(&self.state) != progressed;
        self.listed_wait = listed_wait;
        let append = Append {
            run_id: self.lease.run_id.clone(),
            fence: self.lease.fence,
            seq: self.lease.events,
            event: text,
            texts,
            status_record: changed.then(|| status_record(self.program, &self.state)),
            remember: self.remembered(&effects),
            reopens: had_ended,
            takes_cancel: is_cancel && !matches!(self.state.phase, Phase::Ended(_)),
            answer_token,
            decision,
            release: matches!(self.state.phase, Phase::Ended(_)) && !self.continues,
            audit,
        };
        let is_heard = self.watch.listener.is_some() || self.meter.is_some();
        let notices = if is_heard { baseline.notices(self.program, &self.state, &effects) } else { Vec::new() };
        let spent = counted.map(|(spender, (tokens, cost_usd))| {
            let (tokens_now, cost_now) = self.spent();
            let ends = matches!(self.state.phase, Phase::Ended(_)) && !had_ended;
            let lost = spender::lost(&self.state, attempts);
            SpentByEvent { spender, tokens: tokens_now.minus(tokens), cost_usd: cost_now - cost_usd, lost, ends }
        });
        let logged = unlogged.and_then(|before| before.changed(&self.state, interrupts));
        Ok(AppliedEvent { append, followed: FollowedEvent { notices, effects, logged, spent } })
    }

    /// Hands an event that was applied to the journal.
    fn send(&mut self, applied: AppliedEvent) -> HandedOver {
        let (append, followed) = self.numbered(applied);
        let releases = append.release;
        HandedOver { stored: self.world.journal.append(append), releases, followed }
    }

    /// What is stored of an event that was applied, as the next one of the run, and what follows it.
    fn numbered(&mut self, applied: AppliedEvent) -> (Append, FollowedEvent) {
        let AppliedEvent { mut append, followed } = applied;
        append.seq = self.lease.events;
        self.lease.events += 1;
        (append, followed)
    }

    /// Waits until an event is durable, and reports it. Its effects may be performed after that.
    pub(super) async fn durable(&mut self, taken: HandedOver) -> Result<Effects, Fault> {
        let HandedOver { stored, releases, followed } = taken;
        let handed_at = self.meter.as_ref().map(|_| clock::instant());
        stored.await.map_err(Fault::Cut)?;
        self.world.model_waits.row_replaced(&self.lease.run_id);
        if releases {
            self.lease.guard.released();
        }
        Ok(self.follow(followed, handed_at))
    }

    /// Reports an event that is durable.
    fn follow(&self, followed: FollowedEvent, handed_at: Option<Instant>) -> Effects {
        let FollowedEvent { notices, effects, logged, spent } = followed;
        if let Some(change) = logged {
            run_log::changed(change, self.program, &self.state);
        }
        if let Some(meter) = &self.meter {
            handed_at.into_iter().for_each(|handed_at| meter.stored(clock::elapsed(handed_at)));
            self.count(&**meter, &notices, spent.as_ref());
        }
        self.hear(notices);
        effects
    }

    /// What was spent so far, with what the runs below spent.
    fn spent(&self) -> (Tokens, f64) {
        (self.state.counters.tokens, self.state.counters.cost_usd)
    }

    /// Counts an event that is durable.
    fn count(&self, meter: &dyn RunMeter, notices: &[Notice], spent: Option<&SpentByEvent>) {
        // First what was spent: it says which model replied.
        if let Some(SpentByEvent { spender, tokens, cost_usd, lost, .. }) = spent {
            spender.each(&self.state.header, &(*tokens, *cost_usd), lost, &mut |spend| meter.spent(spend));
        }
        notices.iter().for_each(|notice| meter.on(notice));
        let ends = spent.is_some_and(|spent| spent.ends);
        if let Phase::Ended(ending) = &self.state.phase
            && ends
        {
            meter.ended(ending);
        }
    }

    fn hear(&self, notices: Vec<Notice>) {
        if let Some(listener) = self.watch.listener {
            notices.into_iter().for_each(|notice| report(listener, notice));
        }
    }

    fn remembered(&self, effects: &Effects) -> Vec<(String, serde_json::Value)> {
        let Some(state) = self.state.as_loop() else { return Vec::new() };
        effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Remember(key) => state.memory.get(key).map(|value| (key.clone(), value.clone())),
                Effect::CallModel | Effect::Summarize | Effect::CallTool(_) | Effect::RunStep(_) => None,
            })
            .collect()
    }

    /// Stops between two steps: the run is left as it is, or interrupted.
    async fn stopped(&mut self) -> Result<(), Fault> {
        if self.watch.stop.as_ref().is_some_and(Stop::is_leaving) {
            return Ok(());
        }
        self.interrupt().await
    }

    /// Stops between two steps, so that the run can be resumed.
    async fn interrupt(&mut self) -> Result<(), Fault> {
        self.take(EventKind::Interrupted).await.map(drop)
    }

    /// A stop after the step waits for the calls of the turn: calls that were requested and not made would be
    /// uncertain without need.
    fn should_stop(&self) -> bool {
        matches!(self.state.phase, Phase::Thinking { .. } | Phase::Summarizing { .. })
            && self.watch.stop.as_ref().is_some_and(Stop::is_asked)
    }

    fn look_due(&mut self) -> bool {
        let due = self.checked_at.is_none_or(|checked_at| clock::elapsed(checked_at) >= CANCEL_POLL_INTERVAL);
        if due {
            self.checked_at = Some(clock::instant());
        }
        due && !matches!(self.state.phase, Phase::Ended(_))
    }

    pub(super) async fn cancel_request(&self) -> Result<Option<EventKind>, Fault> {
        cancel_request(self.world, &self.lease.run_id).await
    }

    pub(super) async fn confirm(&self) -> Result<(), Fault> {
        self.world.journal.confirm(&self.lease.run_id, self.lease.fence).await.map_err(Fault::Cut)?;
        failpoint::before_effect();
        Ok(())
    }

    fn moment(&self) -> Moment {
        Moment { wall_ms: clock::wall_ms(), active_ms: self.active_ms() }
    }

    pub(super) fn active_ms(&self) -> u64 {
        self.active.0.saturating_add(clock::elapsed_ms(self.active.1))
    }

    /// The active time that is left.
    pub(super) fn time_left(&self) -> Duration {
        let bound = match self.state.phase {
            // The last call has a time of its own, from the moment that it was asked for.
            Phase::Thinking { forced: Some(_) } => {
                let last_call_ms = self.program.as_loop().map_or(0, |program| program.properties.last_call_timeout_ms);
                self.state.now.active_ms.saturating_add(last_call_ms)
            }
            _ => self.state.timeout_ms(),
        };
        Duration::from_millis(bound.saturating_sub(self.active_ms()))
    }

    /// Reports a step to the listener.
    fn report(&self, baseline: Baseline, effects: &Effects) {
        if self.watch.listener.is_none() && self.meter.is_none() {
            return;
        }
        let notices = baseline.notices(self.program, &self.state, effects);
        if let Some(meter) = &self.meter {
            self.count(&**meter, &notices, None);
        }
        self.hear(notices);
    }
}
