//! Drives a run until it ends or waits for a human: what all commands that start or resume one have in common. The process
//! then waits for the runs that this one launched, and says what became of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::decide_commands::DecideCommands;
use super::exit::Exit;
use super::failure::CommandError;
use super::foreground_wait;
use super::interactive;
use super::next_commands::NextCommands;
use super::output::{Output, conclude, shown};
use super::process::acting_user;
use super::run_document::ScriptArgs;
use super::store::StorePlace;
use super::surface::Surface;
use super::watch::{WatchArgs, Watched};
use crate::diagnostic::Source;
use crate::drive::answer_hint::AnswerHints;
use crate::drive::engine::{Engine, Finished, Resume};
use crate::drive::fault::Fault;
use crate::drive::run_meter::RunMeters;
use crate::drive::start::Start;
use crate::engine::address::is_at;
use crate::engine::decision::takes;
use crate::engine::event::{Decided, Decision};
use crate::engine::flow::waiting_steps;
use crate::engine::outcome::{Status, Termination};
use crate::engine::state::{Phase, State};
use crate::journal::Journal;
use crate::language::{Project, Script};
use crate::program::Program;
use crate::project::load::Loaded;
use crate::trace::{Redaction, escape, result};

/// The document of a run, compiled.
pub struct CurrentDocument {
    pub program: Arc<Program>,
    /// The folder that its files are relative to.
    pub root: PathBuf,
    pub sources: Vec<Source>,
}

impl CurrentDocument {
    /// The document as a run of this store recorded it.
    pub fn recorded(program: Arc<Program>, place: &StorePlace) -> Self {
        let root = place.home().unwrap_or_else(|| PathBuf::from("."));
        Self { sources: program.sources.clone(), program, root }
    }
}

impl From<Loaded> for CurrentDocument {
    fn from(loaded: Loaded) -> Self {
        Self { program: loaded.program, root: loaded.root, sources: loaded.sources }
    }
}

/// What is done with the run.
pub enum DriveAction {
    Start(Box<Start>),
    /// The run of this id is resumed.
    Resume(String, Box<Resume>),
}

/// A run to be driven, and how it is shown.
pub struct RunToDrive {
    pub document: CurrentDocument,
    pub place: StorePlace,
    pub journal: Arc<dyn Journal>,
    pub action: DriveAction,
    /// The script that replaces the models, and the files that the next command names again.
    pub script: Option<Script>,
    pub files: ScriptArgs,
    pub watch: WatchArgs,
}

impl RunToDrive {
    /// Drives the run until it ends or waits for a human.
    ///
    /// # Errors
    /// When it can't be started or resumed, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let Self { document: CurrentDocument { program, root, sources }, place, journal, files, watch, .. } = self;
        let watched = Watched::new(surface, &watch, &program);
        let next = |run_id: &str| NextCommands {
            script: files.script.clone(),
            actions: files.actions.clone(),
            ..NextCommands::new(run_id, &place)
        };
        let hints: Arc<dyn AnswerHints> = Arc::new(DecideCommands(next("")));
        let meters = watched.meters();
        let engine = engine(program.project.clone(), &root, Arc::clone(&journal), self.script, meters, Some(hints));
        let decided = match &self.action {
            DriveAction::Resume(run_id, resume) => resume.decided.clone().map(|decided| (run_id.clone(), decided)),
            DriveAction::Start(_) => None,
        };
        let mut finished = match self.action {
            DriveAction::Start(start) => {
                let start = Start { by: acting_user(), ..*start };
                let known = match &start.run_id {
                    Some(run_id) => engine.find(run_id).await?,
                    None => None,
                };
                if known.is_none() {
                    engine.await_first_contact();
                }
                if let Some(known) = known.filter(|known| known.driven && watch.output == Output::Human) {
                    let run_id = escape::line(&known.run_id);
                    watched.note(&format!("{run_id} is being driven by another process: waiting for its end"));
                }
                watched.drive(engine.run(&program, start, watched.watch())).await
            }
            DriveAction::Resume(run_id, resume) => {
                watched.drive(engine.resume(&program, &run_id, *resume, watched.watch())).await
            }
        };
        finished = foreground_wait::in_foreground(&watched, &engine, &program, finished).await;
        if watch.interactive {
            finished = interactive::decide(surface, &watched, &engine, &program, finished).await;
        }
        wait_for_launched(&watched, &engine, &next, finished.is_none()).await;
        let finished = watched.drained(finished).await;
        let finished = match (watched.finished(finished, &next, &sources), decided) {
            (Err(CommandError::Fault { fault: Fault::Refused(why), sources, .. }), Some((run_id, decided))) => {
                let state = engine.state(&program, &run_id).await.ok();
                let resume = state.and_then(|state| meant(&program, &state, &decided, &next(&run_id)));
                return Err(CommandError::Fault { fault: Fault::Refused(why), sources, resume });
            }
            (finished, _) => finished?,
        };
        match finished {
            Some(finished) => {
                let mut next = next(&finished.state.header.run_id);
                next.is_handled = engine.has_handled_failure(&program, &finished.state).await;
                let exit = conclude(surface, watch.output, &program, &finished.state, &next);
                watch.on_pause.tell(surface, &watched.pause_seen, &program, &finished.state).await;
                exit
            }
            None => {
                // Closing a store waits for pending writes, and that may hang. What was acknowledged is stored, and the next
                // driver sees that this one has gone.
                std::mem::forget(journal);
                Ok(Exit::Cancelled)
            }
        }
    }
}

/// An engine for a store; a script replaces every model.
pub fn engine(
    project: Arc<Project>,
    root: &Path,
    journal: Arc<dyn Journal>,
    script: Option<Script>,
    meters: Option<Arc<dyn RunMeters>>,
    hints: Option<Arc<dyn AnswerHints>>,
) -> Engine {
    let mut builder = Engine::builder(project, root).journal(journal);
    if let Some(script) = script {
        builder = builder.script(script);
    }
    if let Some(meters) = meters {
        builder = builder.meters(meters);
    }
    if let Some(hints) = hints {
        builder = builder.answer_hints(hints);
    }
    builder.build()
}

/// The commands that were meant, when the decision is of a kind that nothing takes of what waits.
fn meant(program: &Program, state: &State, decided: &Decided, next: &NextCommands) -> Option<String> {
    let mut waiting = waiting_steps(state);
    waiting.retain(|question| decided.at.as_ref().is_none_or(|at| is_at(&question.at, at)));
    // A no declines what the server of a tool asks.
    if matches!(decided.decision, Decision::Deny(_)) && waiting.iter().any(|step| step.asked_by.is_some()) {
        return None;
    }
    let kinds: Vec<Termination> = match &state.phase {
        _ if !waiting.is_empty() => waiting.iter().map(|step| step.question.kind).collect(),
        Phase::Paused { pause, .. } => vec![pause.question.kind],
        _ => Vec::new(),
    };
    if kinds.iter().any(|kind| takes(*kind, &decided.decision)) {
        return None;
    }
    let redact = Redaction::new(&program.project.redact);
    next.deciding(&result(shown(program), state, &redact))
}

/// Waits for the runs that a run started, and those that they started. `is_cut`: the process ends at once, and nothing is
/// waited for.
async fn wait_for_launched(watched: &Watched, engine: &Engine, next: &dyn Fn(&str) -> NextCommands, mut is_cut: bool) {
    loop {
        let runs = engine.spawned();
        let open: Vec<String> = runs
            .iter()
            .filter(|run| !run.task.is_finished())
            .map(|run| format!("{} ({})", escape::line(&run.run_id), escape::line(&run.program.name)))
            .collect();
        if !open.is_empty() && !is_cut {
            watched.note(&format!("waiting for what it started: {}", open.join(", ")));
        }
        if runs.is_empty() {
            return;
        }
        for run in runs {
            let ended = if is_cut { None } else { watched.drive(run.task).await };
            is_cut |= ended.is_none();
            let resume = next(&run.run_id).command("resume", "");
            let is_sound = matches!(ended, Some(Ok(Ok(_))));
            let what = match ended {
                Some(Ok(Ok(finished))) => outcome(&finished, &resume),
                Some(Ok(Err(Fault::Store(fault) | Fault::Cut(fault)))) => {
                    format!("was cut off: {fault}; resume it with: {resume}")
                }
                Some(Ok(Err(fault))) => format!("could not be driven: {fault}"),
                Some(Err(_)) | None => format!("was cut off; resume it with: {resume}"),
            };
            let line = format!("run {} {}", escape::line(&run.run_id), escape::line(&what));
            if is_sound { watched.note(&line) } else { watched.remark(&line) }
        }
    }
}

fn outcome(finished: &Finished, resume: &str) -> String {
    match finished.status() {
        Status::Paused if finished.pause().is_some_and(|pause| pause.question.kind.is_wait()) => {
            format!("waits for a time: {resume}")
        }
        Status::Paused => format!("waits for a human: {resume}"),
        Status::Running | Status::Quarantined => format!("was stopped; resume it with: {resume}"),
        status => status.word().to_owned(),
    }
}
