//! `loopctl record`.

mod scenario_text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::Value;

use super::exit::Exit;
use super::failure::CommandError;
use super::output_file;
use super::recorded_run::RecordedRun;
use super::store::StoreArgs;
use super::surface::Surface;
use crate::drive::engine::Engine;
use crate::drive::fold;
use crate::drive::secret::Vault;
use crate::engine::event::{Event, EventKind};
use crate::engine::outcome::Status;
use crate::journal::set_aside::set_aside_by;
use crate::language::{Project, Recording, SecretSource};
use crate::policy::json_text;
use crate::policy::model_header;
use crate::program::Program;
use crate::project::guarded_read::ReadError;
use crate::project::{self, ProjectFile, guarded_read};
use crate::scenario::record::RunJournals;
use crate::scenario::record::finished_recording::{self, FinishedRecording};
use crate::syntax::MAX_BYTES;
use crate::trace::units::plural;
use scenario_text::TestFileText;

/// Record a run of a store, as a test: what models said, what tools gave, what humans decided
///
/// The run has ended, or waits for a human. Secrets are hidden as in traces; `loopctl test` plays the file in a scenario
/// with `"recording": FILE`.
/// Exit codes: 0 recorded, 2 not recorded: no such run, one that can't be played, or a secret in it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl record triage-7k2m9q4x -o recordings/refund.json
  loopctl record last -o recordings/refund.json --scenario refund-is-paid-once")]
pub struct RecordCommand {
    /// The run: its id, the beginning of its id, `last` or `last:LOOP`
    pub run: String,
    /// The file of the recording
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Also append a scenario of this name to the test file beside the document, with what held in the run
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,
    /// Keep the reasoning of replies as providers want it back
    #[arg(long)]
    pub raw: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

impl RecordCommand {
    /// Records.
    ///
    /// # Errors
    /// When there is no such run, it can't be played, a secret is in it, or a file can't be written.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let (journal, place) = self.store.open()?;
        let RecordedRun { id: run, program, state, engine } = RecordedRun::named(&self.run, &journal, &place).await?;
        let mut status = state.status();
        if status == Status::Running {
            let set_aside = set_aside_by(&*journal, engine.find(&run).await?.as_ref()).await?;
            status = if set_aside.is_some() { Status::Quarantined } else { status };
            return Err(CommandError::usage_help(
                format!("{run} can't be recorded: it is {}", status.word()),
                "a run is recorded when it has ended or waits for a human",
            ));
        }
        let mut events = BTreeMap::new();
        collect(&engine, &run, &mut events).await?;
        let main = main_document(&events, &run);
        let root = main.as_deref().map_or_else(|| PathBuf::from("."), project_folder);
        let finished = self.finished(&program, &run, &events, &root)?;
        let text = finished_recording::text(&finished.recording);
        if holds_secret(&program.project, &root, &text) {
            return Err(CommandError::usage_help(
                format!("{run} is not recorded: a secret of `orgconfig` is in it"),
                "name the field that holds it under `redact` in loopctl.json",
            ));
        }
        // All that can be refused is refused before the first file is written.
        may_replace(&self.output, &run, &root)?;
        let scenario = match &self.scenario {
            Some(name) => {
                let main =
                    main.ok_or_else(|| CommandError::usage("the run does not say which file its document is"))?;
                Some(scenario_text::appended(&main, name, &self.output, &finished)?)
            }
            None => None,
        };
        write(&self.output, &text)?;
        surface.say(&format!("recorded {run} in {}\n{}", self.output.display(), hidden(&finished)));
        if let Some(TestFileText { file, text }) = scenario.map(TestFileText::checked).transpose()? {
            output_file::write(&file, &text)?;
            surface.say(&format!("appended the scenario to {}\n", file.display()));
        }
        Ok(Exit::Completed)
    }

    /// Plays the run once, in a thread of its own: a play has its own runtime.
    fn finished(
        &self,
        program: &Arc<Program>,
        run: &str,
        events: &BTreeMap<String, Vec<Event>>,
        root: &Path,
    ) -> Result<FinishedRecording, CommandError> {
        let journals = RunJournals { program, run_id: run, events, is_raw: self.raw };
        let played = std::thread::scope(|scope| scope.spawn(|| finished_recording::recorded(&journals, root)).join());
        let finished = played.unwrap_or_else(|_| Err("it can't be played".to_owned()));
        finished.map_err(|why| CommandError::usage(format!("{run} can't be recorded: {why}")))
    }
}

/// The events of a run and of all its sub-runs.
async fn collect(engine: &Engine, run: &str, all: &mut BTreeMap<String, Vec<Event>>) -> Result<(), CommandError> {
    let mut open = vec![run.to_owned()];
    while let Some(run) = open.pop() {
        if all.contains_key(&run) {
            continue;
        }
        let events = engine.events(&run).await.map_err(CommandError::from)?;
        open.extend(events.iter().filter_map(|event| match &event.kind {
            EventKind::ToolReturned(returned) => returned.run_id.clone(),
            EventKind::ToolPaused(paused) => Some(paused.run_id.clone()),
            EventKind::StepReturned(returned) => returned.run_id.clone(),
            EventKind::StepPaused(paused) => Some(paused.run_id.clone()),
            _ => None,
        }));
        all.insert(run, events);
    }
    Ok(())
}

/// The file of the run's document, as it was opened.
fn main_document(events: &BTreeMap<String, Vec<Event>>, run: &str) -> Option<PathBuf> {
    fold::documents(events.get(run)?)?.first().map(|document| PathBuf::from(&document.file))
}

/// The folder of a document's project, which its secrets and files are named from.
fn project_folder(document: &Path) -> PathBuf {
    let folder = project::folder_of(document);
    ProjectFile::find(&folder).map_or(folder, |file| file.folder)
}

/// What was hidden, in a line, and what was left.
fn hidden(finished: &FinishedRecording) -> String {
    let hidden = &finished.hidden;
    let names: Vec<String> = hidden.hidden.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let mut line = format!("{} hidden", plural(hidden.total(), "secret"));
    if !names.is_empty() {
        line.push_str(&format!(" ({})", names.join(", ")));
    }
    if !hidden.doubtful.is_empty() {
        let begins = hidden.doubtful.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        let looks = if hidden.doubtful.len() == 1 { "text looks" } else { "texts look" };
        line.push_str(&format!("; {} {looks} like a secret and stayed: {begins}", hidden.doubtful.len()));
    }
    line.push('\n');
    line
}

/// Refuses to write over a file that is no recording, and over the recording of another run that a scenario plays.
fn may_replace(output: &Path, run: &str, root: &Path) -> Result<(), CommandError> {
    let text = match guarded_read::text(output, MAX_BYTES) {
        Ok(text) => text,
        Err(ReadError::Failed(error)) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        // A pipe or a terminal keeps nothing that could be lost.
        Err(ReadError::Irregular) => return Ok(()),
        Err(unread) => {
            return Err(CommandError::usage(format!("{}: {}", output.display(), unread.reason(MAX_BYTES))));
        }
    };
    let recording = json_text::read::<Recording>(&text).ok();
    let help = "name another file";
    let Some(recording) = recording else {
        let message = format!("{} is no recording, and is not written over", output.display());
        return Err(CommandError::usage_help(message, help));
    };
    if recording.run_id.as_deref() == Some(run) {
        return Ok(());
    }
    let Some(scenario) = playing(output, root) else { return Ok(()) };
    let of = recording.run_id.unwrap_or_else(|| "another run".to_owned());
    let message = format!("{} is the recording of {of}, which a scenario of {scenario} plays", output.display());
    Err(CommandError::usage_help(message, help))
}

/// A file of scenarios below the project's folder that plays a recording.
fn playing(recording: &Path, root: &Path) -> Option<String> {
    let real = recording.canonicalize().ok()?;
    let files = project::targets(&[root.to_owned()]).ok()?.files;
    let plays = |path: &Path| {
        let source = project::read(path).ok().filter(|source| source.text.contains("\"recording\""))?;
        let value = json_text::read::<Value>(&source.text).ok()?;
        let folder = project::folder_of(path);
        let scenarios = value.get("scenarios")?.as_array()?;
        let named = scenarios.iter().filter_map(|scenario| scenario.get("recording")?.as_str());
        named.into_iter().any(|named| folder.join(named).canonicalize().ok().as_ref() == Some(&real)).then_some(())
    };
    files.into_iter().find(|target| plays(&target.path).is_some()).map(|target| target.path.display().to_string())
}

fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| CommandError::file("made", folder, &error))?;
    }
    output_file::write(file, text)
}

/// Whether a secret of the project is in a text, in a spelling that we know.
fn holds_secret(project: &Project, root: &Path, text: &str) -> bool {
    let vault = Vault::new(project.orgconfig.clone(), root);
    vault.find_all();
    let sources = project.models.values().flat_map(|model| model.api_key.iter().chain(model.headers.values()));
    for key in sources.filter_map(SecretSource::written).filter(|text| model_header::is_source(text)) {
        // A key that is not set here is in no run of this machine.
        drop(vault.read(key));
    }
    vault.scrub(text.to_owned()) != text
}
