//! The engine as an embedder sees it: run, resume, cancel, read.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::begin::Begin;
pub use super::builder::EngineBuilder;
use super::clock;
use super::decision_queue::{DecidedElsewhere, QueuedResume};
use super::document_change::Adoption;
use super::fault::Fault;
use super::fold;
use super::lease_guard::RunLease;
use super::lease_guard::{Leased, LeasedRun};
use super::line;
use super::missing_requirement::Missing;
use super::model::{Ask, ModelClient, ReplyTimeouts, Wire};
use super::outside_events::{awaited, mark, unmark};
use super::question_owner;
use super::run::{Driver, HeldRun};
pub use super::run_result::{AnswerError, Finished};
use super::start::{self, Start};
use super::stop::Stop;
use super::tool::OpenedRun;
pub use super::world::{Engine, Resume, Watch};
use crate::journal::{Journal, ListedStatus, ModelWait, RunFilter, RunSummary, StoreError};
use loopctl_engine::dialect;
use loopctl_engine::event::{Decided, Event, EventKind, FailedParts, Moment, Retried};
use loopctl_engine::flow::has_handled_failure;
use loopctl_engine::open_posts::next_post_ms;
use loopctl_engine::outcome::Status;
use loopctl_engine::reply::window;
use loopctl_engine::state::{Phase, State};
use loopctl_engine::step::step;
use loopctl_engine::wait_deadline::{away_model, due_at_ms, due_times, waits_for_room};
use loopctl_lang::compile::ToolSignature;
use loopctl_lang::language::Project;
use loopctl_lang::program::Program;

impl Engine {
    /// The wait of a run that is driven here for a model that failed; else that of the first run, or call, below that waits so.
    pub fn model_wait(&self, run_id: &str) -> Option<ModelWait> {
        self.world.model_waits.find(run_id)
    }

    /// Begins an engine for a project in its folder: relative paths start there.
    pub fn builder(project: Arc<Project>, root: &Path) -> EngineBuilder {
        EngineBuilder::new(project, root)
    }

    /// The registered tools, as the compiler knows them. Their JSON is the file that a project names as `embedded`.
    pub fn signatures(&self) -> Vec<ToolSignature> {
        self.world.toolbox.signatures()
    }

    /// The store.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.world.journal
    }

    /// Runs a loop until it ends, waits for a human, or is stopped. A `run_id` that is taken by the
    /// same document and input continues or returns that run.
    ///
    /// # Errors
    /// When the run can't be started, or the store fails under way.
    pub fn run<'a>(
        &'a self,
        program: &'a Arc<Program>,
        start: Start,
        watch: Watch<'a>,
    ) -> impl Future<Output = Result<Finished, Fault>> + Send + 'a {
        // On the heap, and dropped when the run is driven: each of a thousand waiting runs holds its driver
        // only.
        let begin = Box::pin(self.begin(program, start));
        async move { self.run_created(program, begin.await?, watch).await }
    }

    /// [`Engine::run`] for a run that [`Engine::begin`] made durable.
    ///
    /// # Errors
    /// When the store fails under way.
    pub async fn run_created(&self, program: &Arc<Program>, begin: Begin, watch: Watch<'_>) -> Result<Finished, Fault> {
        let started = match begin {
            Begin::New(started) => started,
            Begin::Same(run_id) => return Box::pin(self.join(program, &run_id, watch)).await,
        };
        let finished = self.drive(program, started, watch.clone()).await?;
        Box::pin(self.in_its_turn(program, finished, watch)).await
    }

    /// Resumes a run: with what a human decided, or where it was cut off. A run that has ended, or waits for a
    /// human who has not decided, is returned unchanged.
    ///
    /// # Errors
    /// When the decision does not fit, the document has changed, another driver has the run, or the
    /// store fails.
    pub async fn resume(
        &self,
        program: &Arc<Program>,
        run_id: &str,
        resume: Resume,
        watch: Watch<'_>,
    ) -> Result<Finished, Fault> {
        let resume = self.its_own(run_id, resume).await?;
        loop {
            match self.resumed(program, run_id, resume.clone(), watch.clone()).await {
                Err(Fault::Store(StoreError::Driven(driven))) if driven == run_id && resume.is_decision_alone() => {}
                other => {
                    let finished = Box::pin(self.with_what_is_queued(program, other?, &watch)).await?;
                    return Box::pin(self.in_its_turn(program, finished, watch)).await;
                }
            }
            // The process that drives the run takes the decision; this one waits for the run, and drives it after that.
            let mut read = self.read(program, run_id).await?;
            match Box::pin(self.decide_elsewhere(program, &mut read, &resume)).await? {
                DecidedElsewhere::NotDriven => {}
                DecidedElsewhere::Taken | DecidedElsewhere::Queued => {
                    watch.accepted();
                    return Box::pin(self.join(program, run_id, watch)).await;
                }
            }
        }
    }

    /// The same, also for a sub-run.
    pub(super) async fn resumed(
        &self,
        program: &Arc<Program>,
        run_id: &str,
        resume: Resume,
        watch: Watch<'_>,
    ) -> Result<Finished, Fault> {
        let leased = Leased::take(&self.world.journal, run_id).await.map_err(Fault::Store)?;
        // If this fails, the drop releases the lease.
        let events = self.events(run_id).await?;
        self.resume_leased(program, LeasedRun { leased, events, state: None }, resume, watch).await
    }

    /// [`Engine::resume`] for a run whose lease and events the caller has.
    ///
    /// # Errors
    /// As those of [`Engine::resume`].
    pub async fn resume_leased(
        &self,
        program: &Arc<Program>,
        run: LeasedRun,
        resume: Resume,
        watch: Watch<'_>,
    ) -> Result<Finished, Fault> {
        self.world.vault.find_all();
        let LeasedRun { leased: Leased { run_id, lease, guard }, events, state } = run;
        let run_id = run_id.as_str();
        let was_left = events.iter().skip(1).all(|event| matches!(event.kind, EventKind::Left));
        let known = RunToResume { events, state };
        let JudgedResumption { resume, queued: TakenFromQueue { decision: queued_decision, marked }, resumption } =
            match Box::pin(self.judged(program, run_id, known, resume)).await {
                Ok(judged) => judged,
                Err(fault) => {
                    // The fault is what the caller must get; a lease that could not be released expires.
                    drop(guard.give_back().await);
                    return Err(fault);
                }
            };
        let (state, what, events, models) = match resumption {
            Resumption::AsItIs(state) => {
                guard.give_back().await.map_err(Fault::Store)?;
                return Ok(Finished { state });
            }
            Resumption::Up { state, what, events, models } => (state, what, events, models),
        };
        let waits = match state.phase {
            Phase::Ended(_) => None,
            _ => Box::pin(self.without_place(program, &state, &watch)).await?,
        };
        if let Some(line) = waits {
            guard.give_back().await.map_err(Fault::Store)?;
            if resume.decided.is_some() {
                return Err(line::undecided(&line));
            }
            return self.left(program, Finished { state }, &watch).await;
        }
        self.world.deaths.resumed_after(lease.failed_take_ups);
        let returned = state.returned();
        let caller = state.header.caller.as_ref().map(|caller| caller.run_id.clone());
        let due_at_ms = queued_decision.as_ref().and_then(|_| due_at_ms(&state));
        let _tools = self.world.toolbox.open(OpenedRun { run_id: run_id.to_owned(), returned, caller });
        let run_lease = RunLease { run_id: run_id.to_owned(), fence: lease.fence, events, guard };
        // The start of one that its first event settled was reported then.
        let is_new = was_left && state.status() == Status::Running;
        let held = HeldRun { state, lease: run_lease, is_new };
        let mut driver = Driver::new(&self.world, program, models, held, watch.clone());
        (driver.answer_token, driver.queued_decision) = (resume.answer_token, queued_decision.clone());
        driver.after_on_failure = resume.after_on_failure;
        match driver.go_on(what).await {
            Err(Fault::Refused(why)) => {
                // Else the next driver would take the same one.
                if let Some(id) = queued_decision {
                    unmark(&*self.world.journal, run_id, marked).await.map_err(Fault::Store)?;
                    self.refuse_queued(run_id, &id, why.to_string(), due_at_ms).await?;
                }
                Err(Fault::Refused(why))
            }
            finished => self.left(program, finished?, &watch).await,
        }
    }

    /// How a run is resumed, by one fold of its events.
    async fn judged(
        &self,
        program: &Program,
        run_id: &str,
        run: RunToResume,
        resume: Resume,
    ) -> Result<JudgedResumption, Fault> {
        let held = self.held(program, run_id, run, &resume).await?;
        let (resume, queued) = self.with_queued(program, run_id, &held.state, resume).await?;
        let resumption = self.take_up(program, held, &resume).await?;
        Ok(JudgedResumption { resume, queued, resumption })
    }

    /// What a run is resumed with, and the queued decision that this is: a plain resumption takes the first that
    /// is stored, and no decision passes one about the same step that was stored before it.
    async fn with_queued(
        &self,
        program: &Program,
        run_id: &str,
        state: &State,
        resume: Resume,
    ) -> Result<(Resume, TakenFromQueue), Fault> {
        let is_plain = resume.is_plain();
        if !is_plain && resume.decided.is_none() {
            return Ok((resume, TakenFromQueue::default()));
        }
        // Each is held against the run, and many may be queued.
        let most = if is_plain { 1 } else { usize::MAX };
        let queued = self.queued_resumes(program, run_id, state, most).await?;
        if is_plain {
            let Some(queued) = queued.into_iter().next() else { return Ok((resume, TakenFromQueue::default())) };
            // Only what is taken now is marked: the others stay in the queue, and may yet be for another run.
            let marked = mark(&*self.world.journal, run_id, &queued.passed).await.map_err(Fault::Store)?;
            let taken = TakenFromQueue { decision: Some(queued.id.clone()), marked };
            return Ok((queued.resume(), taken));
        }
        let is_same = |other: &Decided| {
            resume.decided.as_ref().is_some_and(|own| own.at.is_none() || other.at.is_none() || own.at == other.at)
        };
        if queued.iter().map(|QueuedResume { passed, .. }| &passed.decided).any(is_same) {
            return Err(Fault::refused("another decision about this step is about to be taken".to_owned()));
        }
        Ok((resume, TakenFromQueue::default()))
    }

    /// The state of a run under the document that it is resumed with.
    pub(super) async fn held(
        &self,
        program: &Program,
        run_id: &str,
        run: RunToResume,
        resume: &Resume,
    ) -> Result<HeldState, Fault> {
        let RunToResume { events, state } = run;
        let adoption = match fold::same_document(program, &events) {
            Err(Fault::Changed { .. }) if resume.new_document => Some(self.adoption(program, run_id, &events)?),
            other => other.map(|()| None)?,
        };
        let count = u64::try_from(events.len()).unwrap_or(u64::MAX);
        let state = match state.filter(|_| adoption.is_none()) {
            Some(state) => Ok(state),
            None => fold::fold(program, run_id, events),
        };
        let had_ended = adoption.is_some() && self.had_ended(run_id).await?;
        let state = if adoption.is_some() { fold::adoptable(state, had_ended, resume.reopens())? } else { state? };
        Ok(HeldState { state, adoption, had_ended, events: count })
    }

    pub(super) async fn take_up(
        &self,
        program: &Program,
        held: HeldState,
        resume: &Resume,
    ) -> Result<Resumption, Fault> {
        let HeldState { state, adoption, had_ended, events } = held;
        let resume = if had_ended { &again(program, &state, resume)? } else { resume };
        if adoption.is_some() {
            Box::pin(self.fits_below(program, &state)).await?;
        }
        self.may_rejoin(program, &state, resume).await?;
        let Some(what) = self.next_events(program, &state, resume, adoption).await? else {
            return Ok(Resumption::AsItIs(state));
        };
        if resume.does_again() {
            Box::pin(self.accept_again_below(program, &state, resume.after_on_failure)).await?;
        }
        let model = Some(state.header.model.name.as_str()).filter(|name| !name.is_empty());
        if state.header.caller.is_none() {
            self.has_all(program, model).map_err(|fault| self.without_script(&state, fault))?;
        }
        let models = self.models_of(program, model).map_err(|fault| self.without_script(&state, fault))?;
        Ok(Resumption::Up { state, what, events, models })
    }

    /// What a run needs that began with a script, and is to continue without one.
    fn without_script(&self, state: &State, fault: Fault) -> Fault {
        match fault {
            fault @ (Fault::Missing(_) | Fault::NoModel) if state.header.scripted && !self.world.is_scripted => {
                Fault::NoScript(fault.to_string())
            }
            fault => fault,
        }
    }

    /// Whether a run has ended by the documents that it had so far.
    async fn had_ended(&self, run_id: &str) -> Result<bool, Fault> {
        let run = self.find(run_id).await?;
        Ok(run.is_some_and(|run| match run.status {
            Status::Completed | Status::Failed => true,
            // Without a termination it was interrupted, and can be resumed.
            Status::Cancelled => run.termination.is_some(),
            _ => false,
        }))
    }

    /// The events that resume a run; none when it stays as it is.
    async fn next_events(
        &self,
        program: &Program,
        state: &State,
        resume: &Resume,
        adoption: Option<Adoption>,
    ) -> Result<Option<Vec<EventKind>>, Fault> {
        let is_over = matches!(state.phase, Phase::Ended(_));
        let is_adopted = adoption.is_some();
        let Adoption { events: adopted, changed, ended } = adoption.unwrap_or_default();
        // By the document that it followed: by another one, steps for its failure may be under way that were never requested.
        let is_handled = match &ended {
            Some(ended) => ended.is_handled,
            None => is_over && has_handled_failure(state),
        };
        let does_again = resume.does_again();
        if does_again && !resume.after_on_failure && is_handled {
            return Err(Fault::FailureHandled);
        }
        if ended.as_ref().is_some_and(|ended| ended.is_cancelled) && !is_over {
            return Err(Fault::refused(
                "the run was cancelled, and has not by the new document: it continues with none. A rerun starts a new run with its \
                 input",
            ));
        }
        let stale = question_owner::asked_by_another(self, program, state, None).await?;
        let unseen = |decided: &Decided| decided.hash.is_none() && question_owner::needs_sight(decided);
        let blind = |decided: &Decided| is_adopted && unseen(decided) || stale && question_owner::needs_sight(decided);
        let what = match (&state.phase, &resume.decided) {
            // The events that make it continue come first.
            (Phase::Ended(_), _) if resume.reopens() => resume.decided.clone().map(EventKind::Human),
            (Phase::Ended(_), None) => return Ok(None),
            (_, _) if resume.retried.is_some() => None,
            (Phase::Paused { .. }, None) if waits_for_room(state) => Some(EventKind::Resumed),
            // Nobody decided in time; the approvals of a sub-run expire there.
            (Phase::New, None) if !state.interrupted => None,
            (Phase::Paused { .. }, None) if resume.models_rest && is_due(due_times(state).own) => {
                Some(EventKind::ApprovalExpired)
            }
            (Phase::Paused { .. }, None)
                if resume.models_rest && is_due(next_post_ms(state)) && !is_due(due_times(state).below) =>
            {
                return Ok(Some(Vec::new()));
            }
            // No human has to decide anything about a model: it is asked again. What has expired meanwhile, the driver sees.
            (Phase::Paused { .. }, None) if away_model(state).is_some() => Some(EventKind::Resumed),
            (Phase::Paused { .. }, None) if is_due(due_times(state).own) => Some(EventKind::ApprovalExpired),
            (Phase::Paused { .. }, None) if is_due(due_times(state).below) => Some(EventKind::Resumed),
            // Its driver posts what it asks.
            (Phase::Paused { .. }, None)
                if !is_adopted && !stale && resume.raised.is_none() && is_due(next_post_ms(state)) =>
            {
                return Ok(Some(Vec::new()));
            }
            // Its driver looks at the events that came before: one may have found another decision in its place.
            (Phase::Paused { .. }, None)
                if !is_adopted && !stale && resume.raised.is_none() && !awaited(state).is_empty() =>
            {
                return Ok(Some(Vec::new()));
            }
            (Phase::Paused { .. }, None) if !is_adopted && !stale && resume.raised.is_none() => return Ok(None),
            // The waiting call is shown again, under the new document, by the run that asks.
            (Phase::Paused { .. }, None) => stale.then_some(EventKind::Resumed),
            (Phase::Paused { .. }, Some(decided)) if blind(decided) => {
                return Err(Fault::Unseen);
            }
            // A driver died, or was stopped, while steps were under way beside the one that is decided.
            (Phase::Stepping, Some(decided)) => {
                if is_adopted && unseen(decided) {
                    return Err(Fault::Unseen);
                }
                // Whether it fits is known once the run is resumed: what was under way may be uncertain then.
                let human = EventKind::Human(decided.clone());
                let raised = resume.raised.clone().map(EventKind::LimitsRaised);
                return Ok(Some(adopted.into_iter().chain(raised).chain([EventKind::Resumed, human]).collect()));
            }
            (_, Some(decided)) => {
                question_owner::fits(self, program, state, decided).await?;
                Some(EventKind::Human(decided.clone()))
            }
            (_, None) => Some(EventKind::Resumed),
        };
        let raised = resume.raised.clone().map(EventKind::LimitsRaised);
        let changed: Vec<String> = changed.into_iter().collect();
        let failed = ended.and_then(|ended| ended.failed).filter(|_| !is_over && does_again);
        let retried = resume.retried.clone().map(|retried| EventKind::Retried(Retried { changed, failed, ..retried }));
        Ok(Some(adopted.into_iter().chain(raised).chain(retried).chain(what).collect()))
    }

    /// A repeated start: waits while another driver has the run, resumes it when it was cut off.
    ///
    /// # Errors
    /// Those of [`Engine::resume`]; when it is stopped while another driver has the run.
    pub async fn join(&self, program: &Arc<Program>, run_id: &str, watch: Watch<'_>) -> Result<Finished, Fault> {
        loop {
            match self.resume(program, run_id, Resume::default(), watch.clone()).await {
                Err(Fault::Store(StoreError::Driven(_))) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    if watch.stop.as_ref().is_some_and(Stop::is_asked) {
                        return Err(Fault::Store(StoreError::Driven(run_id.to_owned())));
                    }
                }
                other => return other,
            }
        }
    }

    /// A run's events in their order.
    ///
    /// # Errors
    /// When there is no such run, or its journal can't be read.
    pub async fn events(&self, run_id: &str) -> Result<Vec<Event>, Fault> {
        let texts = self.world.journal.read(run_id).await.map_err(Fault::Store)?;
        if texts.is_empty() {
            return Err(Fault::Store(StoreError::NoSuchRun(run_id.to_owned())));
        }
        let shared = self.world.journal.texts(run_id).await.map_err(Fault::Store)?;
        fold::events(run_id, &texts, &shared)
    }

    /// A run's state: the fold of its journal.
    ///
    /// # Errors
    /// When there is no such run, or its journal can't be read.
    pub async fn state(&self, program: &Program, run_id: &str) -> Result<State, Fault> {
        fold::fold(program, run_id, self.events(run_id).await?)
    }

    /// A run as lists show it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find(&self, run_id: &str) -> Result<Option<RunSummary>, Fault> {
        self.world.journal.find(run_id).await.map_err(Fault::Store)
    }

    /// The runs of a document that nobody drives and that continue when they are resumed, the oldest first: a process left them
    /// ([`Stop::leave`]), interrupted them ([`Stop::after_step`], [`Stop::now`]), or died. What waits for a human is not among them,
    /// nor are runs that others called: those continue with their callers.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn unfinished(&self, program: &Program) -> Result<Vec<RunSummary>, Fault> {
        let filter = RunFilter {
            statuses: vec![ListedStatus::Queued],
            interrupted: true,
            loop_name: Some(program.name.clone()),
            oldest_first: true,
            ..RunFilter::default()
        };
        self.world.journal.list(filter).await.map_err(Fault::Store)
    }

    /// Somebody waits for a run that begins. Until the server of a model was reached, one where nothing listens is asked for ten
    /// seconds and not for two minutes, unless the document has a `retry` of its own, and the failure asks whether it runs.
    pub fn await_first_contact(&self) {
        self.world.models.await_first_contact();
    }

    /// The bytes of the first request that a run would send. Nothing is sent.
    ///
    /// # Errors
    /// When the run could not be started, or asks no model itself.
    pub async fn prompt(&self, program: &Arc<Program>, start: &Start) -> Result<Bytes, Fault> {
        let asks_none = || {
            Fault::refused(format!(
                "the {} `{}` asks no model itself, so it has no prompt: give a loop of mode `react`",
                program.word(),
                program.name
            ))
        };
        let Program::Loop(of_loop) = &**program else { return Err(asks_none()) };
        let models = self.models(program, start.model.as_deref())?;
        if program.budget.as_ref().is_some_and(|budget| budget.cost_usd.is_some()) {
            models.iter().try_for_each(|model| start::priced(&model.facts, None))?;
        }
        let Some(model) = models.first() else { return Ok(Bytes::new()) };
        let earlier = self.earlier(program, start).await?;
        let run_id = start.id(program, 0);
        let mut started = start.clone().event(program, run_id, Some(model.known_facts()), &self.world.texts)?;
        started.previous = earlier.map(|earlier| earlier.give(&mut started.memory));
        let mut state = State::new(program);
        let at = Moment { wall_ms: clock::wall_ms(), active_ms: 0 };
        step(program, &mut state, Event { at, kind: EventKind::Started(Box::new(started)) })?;
        let Some(state) = state.as_loop() else { return Err(asks_none()) };
        let ask = Ask {
            program: Some(of_loop),
            selected: state.selected.as_deref(),
            input: Some(&state.header.input.value),
            temperature: of_loop.properties.temperature,
            stop: dialect::stop_sequences(of_loop.properties.dialect),
            timeouts: ReplyTimeouts::of(&of_loop.properties),
            must_call: state.must_call_a_tool(of_loop),
            ..Ask::lone(&state.conversation, window::max_tokens(of_loop, state))
        };
        Ok(model.request(&ask, &mut Wire::default()))
    }

    /// The same, but a workflow without a model has none: its steps may name theirs.
    pub(super) fn models_of(&self, program: &Program, name: Option<&str>) -> Result<Vec<Arc<ModelClient>>, Fault> {
        // One that was called by such a workflow inherits an empty name.
        let name = name.filter(|name| !name.is_empty());
        match self.models(program, name) {
            Err(_) if program.is_flow() && name.is_none() => Ok(Vec::new()),
            models => models,
        }
    }

    /// The run's model and its fallbacks.
    pub(super) fn models(&self, program: &Program, name: Option<&str>) -> Result<Vec<Arc<ModelClient>>, Fault> {
        let first = name.or(program.model());
        if !self.world.models.are_named(first) {
            return Err(Fault::NoModel);
        }
        let get = |name: Option<&str>| {
            self.world.models.get(name).map_err(|why| {
                let name = name.or(program.project.model.as_deref()).unwrap_or_default().to_owned();
                Fault::missing(Missing::Model { name }, why)
            })
        };
        let mut models = vec![get(first)?];
        for fallback in program.fallback_models() {
            models.push(get(Some(fallback.name()))?);
        }
        Ok(models)
    }
}

/// How a run that had ended continues with other documents. By these it may not have ended: then what is under way by them
/// was never requested.
///
/// # Errors
/// When a decision is given with it: nobody has seen the question.
fn again(program: &Program, state: &State, resume: &Resume) -> Result<Resume, Fault> {
    let is_over = matches!(state.phase, Phase::Ended(_));
    if !is_over && resume.decided.is_some() {
        return Err(Fault::refused(
            "the run has ended, and waits for no human: have it continue with the new document first".to_owned(),
        ));
    }
    let mut again = resume.clone();
    if program.is_flow() {
        let by = resume.retried.as_ref().and_then(|retried| retried.by.clone());
        let by = by.or_else(|| resume.raised.as_ref()?.by.clone());
        // What failed is known of the former document.
        let failed = resume.reopens().then(FailedParts::default);
        let anew = Retried { by, anew: true, changed: Vec::new(), failed };
        again.retried = match &resume.retried {
            Some(_) => Some(anew),
            None => (!is_over).then_some(anew),
        };
    } else if !is_over {
        // A loop asks its model again, as after an interruption.
        again.retried = None;
    }
    Ok(again)
}

/// Whether an approval that expires at a moment has expired.
fn is_due(at_ms: Option<i64>) -> bool {
    at_ms.is_some_and(|at_ms| at_ms <= clock::wall_ms())
}

/// What is known of a run that is resumed.
pub(super) struct RunToResume {
    pub events: Vec<Event>,
    /// Their fold by the document that the run follows; none if it was not made yet.
    pub state: Option<State>,
}

/// The state of a run under the document that it is resumed with.
pub(super) struct HeldState {
    state: State,
    /// What follows from that document, when it is new.
    adoption: Option<Adoption>,
    /// Whether the run had ended by its former document.
    had_ended: bool,
    /// How many events the run has.
    events: u64,
}

/// How a run is resumed.
struct JudgedResumption {
    resume: Resume,
    queued: TakenFromQueue,
    resumption: Resumption,
}

/// The queued decision that a run is resumed with.
#[derive(Debug, Default)]
struct TakenFromQueue {
    /// Its id in the queue; none if it came by itself.
    decision: Option<String>,
    /// The id of the event that decides, if it is marked for this run.
    marked: Option<String>,
}

pub(super) enum Resumption {
    AsItIs(State),
    Up { state: State, what: Vec<EventKind>, events: u64, models: Vec<Arc<ModelClient>> },
}
