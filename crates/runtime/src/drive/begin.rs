//! The start of a run: gathers what the run needs, and makes it durable before the first call. Separate from
//! the driving, so that a server can answer its caller before anybody drives the run.

use std::sync::Arc;

use super::audit;
use super::clock;
use super::fault::Fault;
use super::fold::written;
use super::input_files::{given_by_model, taken_by};
use super::lease_guard::{LeaseGuard, RunLease};
use super::line;
use super::model::ModelClient;
use super::read_files;
use super::run::{Driver, HeldRun, run_log};
use super::run_id;
use super::run_result::Finished;
use super::search_text::DescribedRun;
use super::start::{self, Start};
use super::status::status_record;
use super::subrun::SubrunOrigin;
use super::tool::OpenedRun;
use super::world::{Engine, Watch, World};
use crate::journal::{Append, AuditEntry, CancelRequest, Created, LineRule, NewRun};
use loopctl_engine::effect::{Effects, steps_of};
use loopctl_engine::event::{Event, EventKind, ModelFacts, Moment, Started};
use loopctl_engine::notice::Baseline;
use loopctl_engine::outcome::Status;
use loopctl_engine::previous::Earlier;
use loopctl_engine::state::{Phase, State};
use loopctl_engine::step::step;
use loopctl_lang::program::Program;
use loopctl_lang::program::bind::refused_input;
use loopctl_lang::program::bind::run_input::RunInput;

/// The outcome of starting a run.
pub enum Begin {
    /// The run is in the store, and the caller drives it.
    New(Box<StartedRun>),
    /// A run with this id, document and input exists.
    Same(String),
}

/// A run that was started and that nobody drives yet. When this is dropped, the run stays in the store and can
/// be resumed.
pub struct StartedRun {
    state: State,
    effects: Effects,
    models: Vec<Arc<ModelClient>>,
    lease: RunLease,
}

impl StartedRun {
    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.lease.run_id
    }

    /// Whether its first event ended it, or left it waiting: no driver takes it up because of that.
    pub fn is_settled(&self) -> bool {
        self.state.status() != Status::Running
    }

    /// Leaves the run for later: nobody drives it. The next driver knows that none of its steps was made. What its first
    /// event settled is logged and counted now, as a driver does.
    ///
    /// # Errors
    /// When the store fails; the run stays in the store.
    pub async fn leave(self, engine: &Engine, program: &Program) -> Result<(), Fault> {
        if self.is_settled() {
            run_log::first_event(program, &self.state);
            if let Some(meters) = &engine.world.meters {
                let meter = meters.of(&self.state.header, program);
                let notices = Baseline::of_start().notices(program, &self.state, &self.effects);
                notices.iter().for_each(|notice| meter.on(notice));
                if let Phase::Ended(ending) = &self.state.phase {
                    meter.ended(ending);
                }
            }
        }
        let Self { effects, lease: RunLease { run_id, fence, events, mut guard }, .. } = self;
        if !steps_of(&effects).is_empty() {
            let at = Moment { wall_ms: clock::wall_ms(), active_ms: 0 };
            let event = written(&Event { at, kind: EventKind::Left })?;
            let append = Append { release: true, ..Append::new(run_id, fence, events, event) };
            guard.journal().append(append).await.map_err(Fault::Store)?;
            guard.released();
        }
        guard.give_back().await.map_err(Fault::Store)
    }

    /// The driver of the run, and its first effects. Not async, and of the box, so that no future holds the moved
    /// values or the place where they were.
    fn driver<'a>(
        self: Box<Self>,
        world: &'a Arc<World>,
        program: &'a Arc<Program>,
        watch: Watch<'a>,
    ) -> (Box<Driver<'a>>, Effects) {
        let Self { state, effects, models, lease } = *self;
        let driver = Driver::new(world, program, models, HeldRun { state, lease, is_new: false }, watch);
        (driver, effects)
    }
}

/// After this many new ids that other runs have already, the run is not started.
const MOST_TAKEN: u32 = 16;

/// What each attempt to create a run needs.
struct StartParts<'a> {
    origin: Option<&'a SubrunOrigin>,
    models: Vec<Arc<ModelClient>>,
    facts: ModelFacts,
    earlier: Option<Earlier>,
}

impl Engine {
    /// Creates a run in the store. Nothing else is done yet.
    ///
    /// # Errors
    /// When the run can't be started, its id is another run's, or the store fails.
    pub async fn begin(&self, program: &Arc<Program>, start: Start) -> Result<Begin, Fault> {
        self.begin_from(program, start, None).await
    }

    /// Drives a started run until it ends, waits for a human, or is stopped.
    ///
    /// # Errors
    /// When the store fails under way.
    pub async fn drive(
        &self,
        program: &Arc<Program>,
        started: Box<StartedRun>,
        watch: Watch<'_>,
    ) -> Result<Finished, Fault> {
        // A fork waits for its place where the copied steps end, and not in front of its first one.
        let may_wait = started.state.waits_in_line() || started.state.header.fork.is_some();
        let waits = may_wait && Box::pin(self.without_place(program, &started.state, &watch)).await?.is_some();
        let run = OpenedRun {
            run_id: started.run_id().to_owned(),
            returned: started.state.returned(),
            caller: started.state.header.caller.as_ref().map(|caller| caller.run_id.clone()),
        };
        let _tools = self.world.toolbox.open(run);
        let (driver, effects) = started.driver(&self.world, program, watch.clone());
        driver.report_start(&effects, waits);
        let finished = if waits { driver.leave().await? } else { driver.drive(effects).await? };
        // On the heap, because it begins when the run no longer waits.
        Box::pin(self.left(program, finished, &watch)).await
    }

    /// The same as [`Engine::begin`]; `origin` says which run calls it.
    pub(super) async fn begin_from(
        &self,
        program: &Arc<Program>,
        mut start: Start,
        origin: Option<&SubrunOrigin>,
    ) -> Result<Begin, Fault> {
        self.world.vault.find_all();
        start.identify();
        let needs = match origin {
            // It was checked with its caller.
            Some(_) => Ok(()),
            None => self.has_all(program, start.model.as_deref()),
        };
        let models = match needs.and_then(|()| self.models_of(program, start.model.as_deref())) {
            Ok(models) => models,
            Err(fault) => return self.there(program, &mut start, origin, fault).await,
        };
        let facts = models.first().map(|model| model.known_facts()).unwrap_or_default();
        // A sub-run receives what its caller gives it, and nothing else.
        let earlier = match origin {
            Some(_) => None,
            None if start.fork.is_some() => {
                self.can_call(program, &models)?;
                None
            }
            None => {
                self.can_call(program, &models)?;
                match self.earlier(program, &start).await {
                    Ok(earlier) => earlier,
                    Err(fault) => return self.there(program, &mut start, origin, fault).await,
                }
            }
        };
        if let Some(why) = start.run_id.as_deref().filter(|_| origin.is_none()).and_then(run_id::wrong_id) {
            return Err(Fault::refused(why));
        }
        let parts = StartParts { origin, models, facts, earlier };
        let mut taken = 0;
        loop {
            let run_id = start.id(program, taken);
            let begin = self.create(program, &mut start, &parts, run_id).await?;
            // A new id that is another run's: also when that run is the same loop with the same input.
            match begin {
                Begin::Same(_) if start.run_id.is_none() && taken < MOST_TAKEN => taken += 1,
                Begin::Same(run_id) if start.run_id.is_none() => return Err(Fault::Conflict(run_id)),
                begin => return Ok(begin),
            }
        }
    }

    /// Creates a run with this id. An id of our own that is taken is reported as that of the same run.
    async fn create(
        &self,
        program: &Arc<Program>,
        start: &mut Start,
        parts: &StartParts<'_>,
        run_id: String,
    ) -> Result<Begin, Fault> {
        let StartParts { origin, models, facts, earlier } = parts;
        if let Some(name) = origin.and_then(|_| given_by_model(program, &start.input)) {
            let message = format!("`{name}` is a file, which a model can't give: leave it out");
            return Err(Fault::Diagnostics(refused_input(program, &format!("/{name}"), message)));
        }
        let mut started = start.event(program, run_id.clone(), Some(facts.clone()), &self.world.texts)?;
        taken_by(&started.files, models)?;
        // A fork has what the run had at its start.
        if started.fork.is_none() {
            if let Some(session) = &started.session {
                started.memory = self.world.journal.recall(session).await.map_err(Fault::Store)?;
            }
            started.read = read_files::read(&self.world.root, program, &self.world.texts)?;
            started.previous = earlier.clone().map(|earlier| earlier.give(&mut started.memory));
        }
        let identity = identity(&mut started, start, *origin)?;
        started.scripted = self.world.is_scripted;
        // A run that another run starts belongs to the organisation of that one, and has the turns of its token.
        if let Some(origin) = origin
            && let Some(caller) = self.find(&origin.caller.run_id).await?
        {
            (start.org, start.token) = (caller.org, caller.token.map(String::from));
        }
        let is_below = origin.is_some_and(|origin| !origin.is_own);
        let line = line::of_new(program, &started.input, start.org.as_deref(), is_below)?;
        started.in_line = line.is_some();
        let (loop_name, session) = (started.loop_name.clone(), started.session.clone());
        let at = Moment { wall_ms: clock::wall_ms(), active_ms: 0 };
        let event = Event { at, kind: EventKind::Started(Box::new(started)) };
        let (at_ms, text, texts) = (event.at.wall_ms, written(&event)?, event.kind.texts());
        // A run that can't start leaves nothing in the store.
        let mut state = State::new(program);
        let effects = step(program, &mut state, event)?;
        let described = DescribedRun::of(program, &state.header);
        let new = NewRun {
            run_id: run_id.clone(),
            loop_name,
            session,
            org: start.org.clone(),
            token: start.token.clone(),
            callback_url: start.callback_url.clone(),
            parent_run_id: origin.filter(|origin| !origin.is_own).map(|origin| origin.caller.run_id.clone()),
            identity: identity.clone(),
            start_key: start.key.clone(),
            at_ms,
            event: text,
            texts,
            scheduled: start.scheduled.clone(),
            status_record: Some(status_record(program, &state)),
            search_text: Some(described.search_text),
            title: Some(described.title),
            audit: start_line(start, at_ms, *origin),
            line,
        };
        match self.world.journal.create(new).await.map_err(Fault::Store)? {
            Created::New(lease) => {
                let guard = LeaseGuard::new(&self.world.journal, &run_id, &lease);
                let lease = RunLease { run_id, fence: lease.fence, events: 1, guard };
                self.world.meters.iter().for_each(|meters| meters.created(&state.header, start.within.as_ref()));
                let started = Box::new(StartedRun { state, effects, models: models.clone(), lease });
                Box::pin(self.unless_refused(program, started)).await
            }
            Created::LineFull(by) => Err(Fault::LineFull { by }),
            Created::KeyTaken(by) => self.of_key(by, &identity).await,
            Created::Same | Created::Conflict if start.run_id.is_none() => {
                // The next attempt needs it.
                let RunInput { value, lists } = state.header.input.clone();
                (start.input, start.lists) = (value, lists);
                Ok(Begin::Same(run_id))
            }
            Created::Same => Ok(Begin::Same(run_id)),
            Created::Conflict => self.of_older(program, start, *origin, &state).await,
        }
    }

    /// A run that was created, unless another one joined its line at the same time before it, and it is to be refused then.
    async fn unless_refused(&self, program: &Program, started: Box<StartedRun>) -> Result<Begin, Fault> {
        if !line::is_in_line(program, &started.state) || started.state.header.caller.is_some() {
            return Ok(Begin::New(started));
        }
        let line = self.line(started.run_id()).await?;
        if line.rule == LineRule::Replace && !line.has_place() {
            // Before it has a slot: those that it replaces may hold all of them.
            Box::pin(self.end_ahead(program, started.run_id(), &line.ahead)).await?;
        }
        let (true, Some(first)) = (line.rule == LineRule::Refuse && !line.has_place(), line.ahead.into_iter().next())
        else {
            return Ok(Begin::New(started));
        };
        let run_id = started.run_id().to_owned();
        started.leave(self, program).await?;
        let reason = Some(format!("run {} was started at the same time, before it", first.run_id));
        self.cancel(program, &run_id, CancelRequest { reason, by: None }).await?;
        Err(Fault::LineFull { by: first.run_id })
    }

    /// The run that has the id of a start, if an older version identified it otherwise.
    async fn of_older(
        &self,
        program: &Program,
        start: &mut Start,
        origin: Option<&SubrunOrigin>,
        state: &State,
    ) -> Result<Begin, Fault> {
        let run_id = state.header.run_id.clone();
        let RunInput { value, lists } = state.header.input.clone();
        (start.input, start.lists) = (value, lists);
        let there = self.find(&run_id).await?;
        let again = start.event(program, run_id.clone(), None, &self.world.texts)?;
        let is_same =
            there.is_some_and(|run| origin.is_none() && start::is_same_as_older(&run.identity, &again, start));
        if is_same { Ok(Begin::Same(run_id)) } else { Err(Fault::Conflict(run_id)) }
    }

    /// The run that has the key of a start, if it is the same.
    async fn of_key(&self, run_id: String, identity: &str) -> Result<Begin, Fault> {
        let there = self.find(&run_id).await?;
        let is_same = there.is_some_and(|run| run.identity == identity);
        if is_same { Ok(Begin::Same(run_id)) } else { Err(Fault::Conflict(run_id)) }
    }

    /// The run of this id, for a start that has no model, or whose previous run is missing: a run that has
    /// ended is returned without it.
    async fn there(
        &self,
        program: &Program,
        start: &mut Start,
        origin: Option<&SubrunOrigin>,
        missing: Fault,
    ) -> Result<Begin, Fault> {
        let Some(run_id) = start.run_id.clone() else { return Err(missing) };
        let Some(run) = self.find(&run_id).await? else { return Err(missing) };
        let mut started = start.event(program, run_id.clone(), None, &self.world.texts)?;
        let identity = identity(&mut started, start, origin)?;
        let is_same =
            run.identity == identity || origin.is_none() && start::is_same_as_older(&run.identity, &started, start);
        if is_same { Ok(Begin::Same(run_id)) } else { Err(Fault::Conflict(run_id)) }
    }
}

/// What two starts must have in common to be the same; a sub-run is marked as one.
fn identity(started: &mut Started, start: &Start, origin: Option<&SubrunOrigin>) -> Result<String, Fault> {
    match origin {
        Some(origin) => origin.mark(started),
        None => Ok(start::identity(started, start)),
    }
}

/// Who starts a run, for the list of what was done; nothing of a run that a call or a step of another one starts.
fn start_line(start: &Start, at_ms: i64, origin: Option<&SubrunOrigin>) -> Option<Box<AuditEntry>> {
    match origin {
        None => Some(audit::of_start(start, at_ms, None)),
        Some(origin) if origin.is_own => Some(audit::of_start(start, at_ms, Some(&origin.caller.run_id))),
        Some(_) => None,
    }
}
