//! Plays a scenario: offline by construction, on a simulated clock, and with a journal in memory. In a live play the models
//! of the document are asked, and time passes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

use super::decisions::{Answered, after_crash, answered, is_for_crashes, kept_for, wait_ends_at_ms};
use super::journal::{CrashPoint, StoppableJournal};
use super::judge::Failure;
use super::story::{Journals, RunStory, StoryPause};
use crate::drive::clock::{self, simulated};
use crate::drive::engine::{Engine, EngineBuilder, Resume, Watch};
use crate::drive::fault::Fault;
use crate::drive::stage::{Stage, StagePlan, StagedCall};
use crate::drive::start::Start;
use crate::engine::event::{Event, EventKind};
use crate::engine::outcome::{Status, Termination};
use crate::engine::state::{Phase, State};
use crate::engine::step::step;
use crate::engine::wait_deadline::{away_model, due_at_ms};
use crate::journal::Journal;
use crate::language::Project;
use crate::language::recording::Recording;
use crate::language::scenario::ScenarioDecision;
use crate::program::{Program, Tool};

/// The id of the run of a scenario: always the same, so that its prompts and keys are, too.
pub const RUN_ID: &str = "scenario";

/// The id under which a recording is played: that of its run, which tools may have been given.
pub fn run_id_of(recording: &Recording) -> &str {
    recording.run_id.as_deref().filter(|run_id| !run_id.is_empty()).unwrap_or(RUN_ID)
}

/// The maximum number of pauses after crashes that are decided; a run that asks more often does not end.
const MAX_PAUSES: usize = 1_000;

/// A run to be played.
pub struct Play<'a> {
    /// The document.
    pub program: &'a Arc<Program>,
    pub run_id: &'a str,
    /// The folder of its relative paths.
    pub root: &'a Path,
    /// What is played in place of the world.
    pub plan: StagePlan,
    /// The run's input; none for the document's own.
    pub input: Option<Value>,
    /// When it starts, in milliseconds since 1970.
    pub start_ms: i64,
    /// The decisions of a human.
    pub decisions: &'a [ScenarioDecision],
    /// Whether the run is to be left waiting: then an event that no decision is left for does not pass its time.
    pub is_left_waiting: bool,
    /// The engine of the program whose tools are called where the plan has no answer.
    pub host: Option<&'a Engine>,
    /// Where the process dies.
    pub crash: Option<CrashPoint>,
    /// Whether the journal acknowledges events that it has not stored.
    #[cfg(test)]
    pub stores_late: bool,
}

/// A run that was played.
pub struct Played {
    /// Its story; none if it could not start.
    pub story: Option<RunStory>,
    /// The calls that were made.
    pub calls: Vec<StagedCall>,
    /// How many replies of the models of `llm` actions were used.
    pub questions: BTreeMap<String, usize>,
    /// What kept it from being played to its end.
    pub faults: Vec<PlayError>,
    /// How many events were written.
    pub events: usize,
    /// The events of the run and of those below it.
    pub journals: BTreeMap<String, Vec<Event>>,
    /// How many times a human was asked whether a call had happened before a crash, and for which tools.
    pub asked_after_crash: Vec<String>,
    /// The calls that were made again although their results were stored.
    pub repeated: Vec<String>,
    /// The places of the decisions that are kept for crashes, and that nothing waited for.
    pub kept: Vec<usize>,
}

impl Played {
    /// The tools whose calls failed after a crash, because their `on_uncertain` says so.
    pub fn failed_by_document(&self) -> &[String] {
        self.story.as_ref().map_or(&[], |story| story.failed_by_document.as_slice())
    }
}

/// What kept a run from being played to its end.
#[derive(Debug, Clone, PartialEq)]
pub enum PlayError {
    /// It could not start, or the engine failed.
    Run(String),
    /// A decision, by its place, does not fit.
    Decision(usize, String),
    /// These decisions, from a place on, were not needed.
    UnusedDecisions(usize),
}

/// A moment in milliseconds since 1970; `check` reports what is none.
pub fn moment_ms(now: &str) -> i64 {
    now.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_millisecond)
}

impl Play<'_> {
    /// Plays the run to its end, or to a pause that no decision is left for.
    pub fn perform(self) -> Played {
        let failed = |why: String| Played {
            story: None,
            calls: Vec::new(),
            questions: BTreeMap::new(),
            faults: vec![PlayError::Run(why)],
            events: 0,
            journals: BTreeMap::new(),
            asked_after_crash: Vec::new(),
            repeated: Vec::new(),
            kept: Vec::new(),
        };
        let (project, _databases) = match project_on_stage(self.program) {
            Ok(made) => made,
            Err(error) => return failed(format!("the folder for its databases can't be made: {error}")),
        };
        let stage = Arc::new(Stage::new(self.plan.clone()));
        let journal = StoppableJournal::new(self.crash);
        #[cfg(test)]
        let journal = if self.stores_late { StoppableJournal::storing_late(self.crash) } else { journal };
        let start_ms = self.start_ms;
        let mut performance = Performance {
            play: &self,
            project: Arc::new(project),
            stage,
            journal,
            faults: Vec::new(),
            pauses: Vec::new(),
            asked_after_crash: Vec::new(),
            taken: BTreeMap::new(),
            stored: None,
            journals: BTreeMap::new(),
        };
        let played = if self.plan.is_live {
            simulated::run_live(start_ms, performance.perform())
        } else {
            simulated::run(start_ms, performance.perform())
        };
        match played {
            Ok(story) => Played {
                story,
                calls: performance.stage.calls(),
                questions: performance.stage.questions(),
                events: performance.journal.events(),
                repeated: performance.repeated(),
                kept: performance.kept(),
                journals: performance.journals,
                faults: performance.faults,
                asked_after_crash: performance.asked_after_crash,
            },
            Err(error) => failed(format!("no runtime can be made: {error}")),
        }
    }
}

/// A run that is being played.
struct Performance<'a> {
    play: &'a Play<'a>,
    project: Arc<Project>,
    stage: Arc<Stage>,
    journal: Arc<StoppableJournal>,
    faults: Vec<PlayError>,
    pauses: Vec<StoryPause>,
    asked_after_crash: Vec<String>,
    /// The decisions kept for crashes that were taken without one, by their places, and for what kind of pause.
    taken: BTreeMap<usize, Termination>,
    /// At the crash: the keys of the calls whose results were stored, and how many calls there were.
    stored: Option<(Vec<String>, usize)>,
    /// The events of all runs, at the end.
    journals: BTreeMap<String, Vec<Event>>,
}

impl<'a> Performance<'a> {
    fn engine(&self) -> Engine {
        let journal: Arc<dyn Journal> = Arc::<StoppableJournal>::clone(&self.journal);
        let builder = Engine::builder(Arc::clone(&self.project), self.play.root);
        let builder = self.play.host.into_iter().fold(builder, EngineBuilder::tools_of);
        builder.journal(journal).stage(Arc::clone(&self.stage)).build()
    }

    async fn perform(&mut self) -> Option<RunStory> {
        let mut engine = self.engine();
        let program = self.play.program;
        let decisions = self.play.decisions.iter().enumerate().filter(|(_, decision)| !is_for_crashes(decision));
        let mut decisions = decisions.peekable();
        // The last decision, the pause that it was for, and how many were stored before it: one that was not stored is given
        // again.
        let mut given: Option<(usize, Phase, usize)> = None;
        let mut resume: Option<Resume> = None;
        // The pause that is to pass its time, and until when.
        let mut expiring: Option<(u32, i64)> = None;
        for _ in 0..MAX_PAUSES {
            let driven = match resume.take() {
                None => engine.run(program, self.start(), Watch::default()).await,
                Some(resume) => engine.resume(program, self.play.run_id, resume, Watch::default()).await,
            };
            // Runs that this one started without waiting for them are a part of what it does.
            engine.started_runs_ended().await;
            let has_died = self.restarted(&mut engine).await;
            let state = match driven {
                Ok(finished) => finished.state,
                Err(_) if has_died => match self.stored_outage(&engine).await {
                    Some(paused) => paused,
                    // A run that was not stored is started again.
                    None => {
                        resume = self.journal.runs().iter().any(|run| run == self.play.run_id).then(Resume::default);
                        continue;
                    }
                },
                Err(fault) => {
                    self.faults.push(PlayError::Run(sentence(&fault)));
                    break;
                }
            };
            self.note_pause(&state);
            let Phase::Paused { pause, .. } = &state.phase else { break };
            // Before it expires, its questions are to be posted, perhaps several times.
            let expires_at_ms = expiring.filter(|(number, _)| *number == pause.number).map(|(_, at_ms)| at_ms);
            if let Some(at_ms) = expires_at_ms.filter(|at_ms| *at_ms > clock::wall_ms()) {
                resume = Some(self.after(at_ms, &state).await);
                continue;
            }
            if let Some(decided) = self.decide_after_crash(&state) {
                resume = Some(decided);
                continue;
            }
            // A decision that was lost with its driver is given again, before the next one.
            let stored = self.stored_decisions(&engine).await;
            let is_lost = |(_, pause, before): &&(usize, Phase, usize)| *pause == state.phase && *before == stored;
            let again = given.as_ref().filter(|_| self.stored.is_some()).filter(is_lost);
            let again = again.and_then(|(index, ..)| Some((*index, self.play.decisions.get(*index)?)));
            let before = decisions.peek().map_or(self.play.decisions.len(), |(index, _)| *index);
            let again = again.or_else(|| self.take_kept(before, &state));
            let next = again.or_else(|| decisions.peek().copied());
            if next.is_none() && self.play.is_left_waiting && pause.question.kind == Termination::WaitingEvent {
                break;
            }
            if let Some(at_ms) = wait_ends_at_ms(&state, next.map(|(_, decision)| decision)) {
                resume = Some(self.after(at_ms, &state).await);
                continue;
            }
            let Some((index, decision)) = again.or_else(|| decisions.next()) else { break };
            given = Some((index, state.phase.clone(), stored));
            match answered(decision, &state) {
                Ok(Answered::Resume(decided)) => resume = Some(*decided),
                Ok(Answered::Expires(at_ms)) => {
                    expiring = Some((pause.number, at_ms));
                    resume = Some(self.after(at_ms, &state).await);
                }
                Err(why) => {
                    self.faults.push(PlayError::Decision(index, why));
                    break;
                }
            }
        }
        if let Some((index, _)) = decisions.next().filter(|_| self.faults.is_empty()) {
            self.faults.push(PlayError::UnusedDecisions(index));
        }
        self.story(&engine).await
    }

    /// Makes a new engine where the driver died. Returns whether it did.
    async fn restarted(&mut self, engine: &mut Engine) -> bool {
        let has_died = self.journal.is_stopped();
        if has_died {
            self.journal.restart();
            *engine = self.engine();
            let keys = self.stored_keys(engine).await;
            self.stage.died(&keys, &self.stored_attempts(engine).await);
            self.stored = Some((keys, self.stage.calls().len()));
        }
        if self.stored.is_some() {
            self.take_up_started(engine).await;
        }
        has_died
    }

    /// Nothing happens until this moment, in milliseconds since 1970, or until the run is to be taken up before it.
    async fn after(&self, at_ms: i64, state: &State) -> Resume {
        let next_ms = due_at_ms(state).map_or(at_ms, |due_ms| due_ms.min(at_ms));
        let left = u64::try_from(next_ms.saturating_sub(clock::wall_ms())).unwrap_or_default();
        simulated::skip(std::time::Duration::from_millis(left), self.play.plan.is_live).await;
        Resume::default()
    }

    /// Drives the runs that the run started without waiting for them, and that died with their driver: as the queue of a
    /// server would.
    async fn take_up_started(&mut self, engine: &Engine) {
        for run_id in self.journal.runs() {
            let Ok(Some(run)) = engine.find(&run_id).await else { continue };
            let is_left = run.status == Status::Running && !run.driven && run.parent_run_id.is_none();
            let program = if is_left { started_by(self.play.program, &run.loop_name) } else { None };
            if let Some(program) = program.filter(|_| run_id != self.play.run_id) {
                self.drive_started(engine, program, &run_id).await;
            }
        }
    }

    /// Drives a run that was started, until it ends or waits for something else than what a crash left open.
    async fn drive_started(&mut self, engine: &Engine, program: &Arc<Program>, run_id: &str) {
        let mut resume = Resume::default();
        for _ in 0..MAX_PAUSES {
            // A fault is that of the run: its story shows how far it came.
            let Ok(driven) = engine.resume(program, run_id, resume, Watch::default()).await else { return };
            let Some(open) = after_crash(&driven.state, &self.said(), &self.stage.calls()) else { return };
            self.asked_after_crash.extend(StoryPause::of(&driven.state).and_then(|pause| pause.about.first().cloned()));
            resume = open;
        }
    }

    fn start(&self) -> Start {
        let input = self.play.input.clone().unwrap_or_default();
        Start { input, run_id: Some(self.play.run_id.to_owned()), ..Start::default() }
    }

    fn decide_after_crash(&mut self, state: &State) -> Option<Resume> {
        self.play.crash?;
        let calls = self.stage.calls();
        let resume = after_crash(state, &self.said(), &calls)?;
        let about = self.pauses.pop().map(|pause| pause.about.first().cloned().unwrap_or_default());
        self.asked_after_crash.extend(about);
        Some(resume)
    }

    /// The decisions that a call may need which a crash left open: those about an answer that was lost without one are taken.
    fn said(&self) -> Vec<&'a ScenarioDecision> {
        let is_left = |index: &usize| self.taken.get(index) != Some(&Termination::Uncertain);
        self.play
            .decisions
            .iter()
            .enumerate()
            .filter(|(index, _)| is_left(index))
            .map(|(_, decision)| decision)
            .collect()
    }

    /// The first of the decisions before this place that are kept for crashes, and that the run waits for now. Each is taken once.
    fn take_kept(&mut self, before: usize, state: &State) -> Option<(usize, &'a ScenarioDecision)> {
        let decisions = self.play.decisions.get(..before)?.iter().enumerate();
        let mut left = decisions.filter(|(index, _)| !self.taken.contains_key(index));
        let (index, decision, kind) =
            left.find_map(|(index, decision)| Some((index, decision, kept_for(decision, state)?)))?;
        self.taken.insert(index, kind);
        Some((index, decision))
    }

    /// The places of the decisions that are kept for crashes, and that nothing waited for.
    fn kept(&self) -> Vec<usize> {
        let decisions = self.play.decisions.iter().enumerate();
        let kept = decisions.filter(|(index, decision)| is_for_crashes(decision) && !self.taken.contains_key(index));
        kept.map(|(index, _)| index).collect()
    }

    fn note_pause(&mut self, state: &State) {
        let Some(pause) = StoryPause::of(state) else { return };
        if self.pauses.last().is_none_or(|last| last.number != pause.number) {
            self.pauses.push(pause);
        }
    }

    /// The state of a run whose pause for its model is stored: to resume it without a decision would be one, to ask the model again.
    async fn stored_outage(&self, engine: &Engine) -> Option<State> {
        let mut state = State::new(self.play.program);
        for event in engine.events(self.play.run_id).await.ok()? {
            step(self.play.program, &mut state, event).ok()?;
        }
        Some(state).filter(|state| away_model(state).is_some())
    }

    /// The events of all runs, by id.
    async fn events(&self, engine: &Engine) -> BTreeMap<String, Vec<Event>> {
        let mut all = BTreeMap::new();
        for run_id in self.journal.runs() {
            if let Ok(events) = engine.events(&run_id).await {
                all.insert(run_id, events);
            }
        }
        all
    }

    /// How many decisions of humans are stored; 0 in a play without a crash, which loses none.
    async fn stored_decisions(&self, engine: &Engine) -> usize {
        if self.play.crash.is_none() {
            return 0;
        }
        let events = self.events(engine).await;
        events.values().flatten().filter(|event| matches!(event.kind, EventKind::Human(_))).count()
    }

    /// The keys of the calls whose results are stored.
    async fn stored_keys(&self, engine: &Engine) -> Vec<String> {
        let mut keys = Vec::new();
        for (run_id, events) in self.events(engine).await {
            keys.extend(events.iter().filter_map(|event| match &event.kind {
                EventKind::ToolReturned(returned) => {
                    Some(format!("{run_id}-{}-{}", returned.call.iteration, returned.call.index))
                }
                EventKind::StepReturned(returned) => Some(format!("{run_id}-{}", returned.at)),
                _ => None,
            }));
        }
        keys
    }

    /// How many attempts at each call are stored that did not end it, by its key.
    async fn stored_attempts(&self, engine: &Engine) -> BTreeMap<String, usize> {
        let mut attempts = BTreeMap::new();
        for (run_id, events) in self.events(engine).await {
            let keys = events.iter().filter_map(|event| match &event.kind {
                EventKind::ToolRetried(retried) => {
                    Some(format!("{run_id}-{}-{}", retried.call.iteration, retried.call.index))
                }
                EventKind::StepRetried(retried) => Some(format!("{run_id}-{}", retried.at)),
                // The question of its server is what the attempt gave.
                EventKind::ToolAsks(asks) => Some(format!("{run_id}-{}-{}", asks.call.iteration, asks.call.index)),
                EventKind::StepAsks(asks) => Some(format!("{run_id}-{}", asks.at)),
                _ => None,
            });
            for key in keys {
                *attempts.entry(key).or_default() += 1;
            }
        }
        attempts
    }

    /// The calls that were made again although their results were stored.
    fn repeated(&self) -> Vec<String> {
        let Some((keys, before)) = &self.stored else { return Vec::new() };
        let calls = self.stage.calls();
        let again = calls.iter().skip(*before).filter(|call| keys.contains(&call.key));
        again.map(|call| call.action.clone()).collect()
    }

    async fn story(&mut self, engine: &Engine) -> Option<RunStory> {
        self.journals = self.events(engine).await;
        if !self.journals.contains_key(self.play.run_id) {
            return None;
        }
        let journals = Journals { program: self.play.program, run_id: self.play.run_id, events: &self.journals };
        match RunStory::new(&journals, &self.stage.calls(), std::mem::take(&mut self.pauses)) {
            Ok(story) => Some(story),
            Err(why) => {
                self.faults.push(PlayError::Run(why));
                None
            }
        }
    }
}

/// The loop or workflow of a name that a program's runs start, or those that they call. Chains of calls are bounded: the
/// recursion ends.
fn started_by<'p>(program: &'p Arc<Program>, name: &str) -> Option<&'p Arc<Program>> {
    let started = program.all_tools().into_iter().filter_map(Tool::launched).find(|started| started.name == name);
    started.or_else(|| program.called_loops().into_iter().find_map(|called| started_by(called, name)))
}

/// Why a run can't continue, in a sentence without a final stop.
fn sentence(fault: &Fault) -> String {
    match fault {
        Fault::Diagnostics(faults) => faults.iter().map(|fault| fault.message.as_str()).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

/// The settings of the project as a stage has them: without the secrets of tools, and with databases of its own, which are
/// gone when the folder is dropped.
fn project_on_stage(program: &Program) -> std::io::Result<(Project, Option<TempDir>)> {
    let mut project = (*program.project).clone();
    project.orgconfig.clear();
    if project.datasources.is_empty() {
        return Ok((project, None));
    }
    let folder = TempDir::new()?;
    // A server is not called, and a file in its place would not read its SQL: the scenario answers for its tools.
    project.datasources.retain(|_, datasource| datasource.server().is_none());
    for (index, datasource) in project.datasources.values_mut().enumerate() {
        let file = folder.path().join(format!("{index}.db"));
        datasource.url = format!("sqlite:{}", file.display());
    }
    Ok((project, Some(folder)))
}

/// Failures of a play at the places of a scenario.
pub fn failures_of(faults: &[PlayError], at: &str) -> Vec<Failure> {
    let failure = |pointer: String, message: String| Failure { pointer, key: "run", message, near: None };
    faults
        .iter()
        .map(|fault| match fault {
            PlayError::Run(why) => failure(format!("{at}/name"), why.clone()),
            PlayError::Decision(index, why) => failure(format!("{at}/decisions/{index}"), why.clone()),
            PlayError::UnusedDecisions(index) => {
                let message = "this decision is left over: the run does not wait any more".to_owned();
                failure(format!("{at}/decisions/{index}"), message)
            }
        })
        .collect()
}
