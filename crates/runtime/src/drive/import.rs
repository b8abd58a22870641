//! Reads a file of runs into a store. The whole file is read and folded before anything is written. A run that is there
//! already, as this file has it, stays as it is; another run of its id is never changed. Nobody drives an imported run,
//! unless that is asked for; and then not before all is there that it called.

use std::io::BufRead;
use std::sync::Arc;

use super::export::folded;
use super::fault::Fault;
use super::line;
use super::run_file::{FORMAT, FileHead, RunFileFault, RunHeadLine, RunLine, RunLineReader};
use super::run_id::unreadable;
use super::search_text::DescribedRun;
use super::status::status_record;
use super::unfinished_run::UnfinishedRun;
use crate::journal::{Created, Journal, NewRun, RunSummary, StatusRecord, StoreError};
use loopctl_engine::blob::Blob;
use loopctl_engine::event::Event;
use loopctl_engine::state::{Phase, State};
use loopctl_lang::diagnostic::Source;
use loopctl_lang::policy::json_text;
use loopctl_lang::policy::redact::HIDDEN;
use loopctl_lang::program::Program;

/// The most bytes that the events and texts of one run have.
const MAX_RUN_BYTES: usize = 512 << 20;
/// The most characters of an id, also of a run that others called and whose id has theirs in it, and of the name of an organisation.
const MAX_ID_CHARS: usize = 4_096;

/// Why a file is not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportFault {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A line of the file is refused.
    #[error(transparent)]
    File(#[from] RunFileFault),
}

/// How runs are imported.
pub struct Import {
    /// Where they are to be.
    pub to: Arc<dyn Journal>,
    /// The project file, for runs whose documents need it.
    pub project: Option<Source>,
    /// Whether servers continue the runs that have not ended.
    pub continues: bool,
}

/// How many runs were imported, with those that other runs called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportedRuns {
    /// By this call.
    pub imported: u64,
    /// Before it.
    pub there: u64,
    /// Those of both that have not ended, without the store's own.
    pub open: u64,
}

/// A run of the file: its events fold to a state.
struct FileRun {
    head: RunHeadLine,
    /// The line where it begins.
    line: u64,
    events: Vec<String>,
    texts: Vec<Blob>,
    program: Arc<Program>,
    state: State,
    /// Whether values of it are hidden in the file.
    hides: bool,
    /// Whether it becomes a copy that nobody continues.
    is_copy: bool,
}

/// The last run of the file that no other one called.
struct FileRoot {
    run_id: String,
    /// Whether servers are to continue it.
    continues: bool,
    is_copy: bool,
}

/// The runs of a file, one after the other.
struct RunReader<R> {
    lines: RunLineReader<R>,
    project: Option<Source>,
    runs: u64,
    /// Whether secrets are hidden in it.
    redacted: bool,
    continues: bool,
    root: Option<FileRoot>,
}

impl Import {
    /// Reads the whole file, and looks for other runs of the same ids. Nothing is written.
    ///
    /// # Errors
    /// When a line is refused, or the store fails.
    pub async fn check(&self, from: impl BufRead) -> Result<(), ImportFault> {
        let mut reader = RunReader::new(from, self)?;
        while let Some(run) = reader.next_run()? {
            if let Some(there) = self.to.find(&run.head.run_id).await? {
                self.is_same(&run, &there).await?;
            }
        }
        Ok(())
    }

    /// Imports the runs of a file that was checked. A run that called others is finished after them.
    ///
    /// # Errors
    /// As for [`Import::check`]. The runs before the line stay imported, and are there for the next call.
    pub async fn import(&self, from: impl BufRead) -> Result<ImportedRuns, ImportFault> {
        let mut reader = RunReader::new(from, self)?;
        let (mut done, mut caller) = (ImportedRuns::default(), None);
        while let Some(run) = reader.next_run()? {
            if run.head.called_by.is_none() {
                self.finish(caller.take()).await?;
            }
            let is_open = u64::from(!matches!(run.state.phase, Phase::Ended(_)));
            match self.put(&run).await? {
                None => {
                    done.there += 1;
                    let there = self.to.find(&run.head.run_id).await?;
                    // The others are the store's own.
                    done.open += if there.is_some_and(|there| there.is_imported()) { is_open } else { 0 };
                }
                Some(written) => {
                    done.imported += 1;
                    done.open += is_open;
                    match run.head.called_by {
                        None => caller = Some(written),
                        Some(_) => self.finish(Some(written)).await?,
                    }
                }
            }
        }
        self.finish(caller).await?;
        Ok(done)
    }

    async fn finish(&self, run: Option<UnfinishedRun>) -> Result<(), StoreError> {
        match run {
            Some(run) => run.finish(&*self.to).await,
            None => Ok(()),
        }
    }

    /// Whether the store has this run, or the first events of it; returns how many events it has.
    async fn is_same(&self, run: &FileRun, there: &RunSummary) -> Result<usize, ImportFault> {
        let run_id = &run.head.run_id;
        if there.original_identity() != run.head.identity {
            return Err(other_run(run).into());
        }
        let events = self.to.read(run_id).await?;
        // The run that the file was written of, with all that is in the file: what is secret may be hidden there.
        let is_same = |(there, event): (&String, &String)| there == event || at_same_moment(there, event);
        let is_there = !there.is_unfinished() && events.len() >= run.events.len();
        if is_there && !there.is_imported() && events.iter().zip(&run.events).all(is_same) {
            return Ok(events.len());
        }
        let common = events.len().min(run.events.len());
        if events.get(..common) != run.events.get(..common) {
            return Err(other_run(run).into());
        }
        match (there.is_imported(), run.is_copy) {
            (true, true) | (false, false) => Ok(events.len()),
            (true, false) => Err(run.fault(format!(
                "run {run_id} is there already, as a copy that nobody continues: delete it with `loopctl runs prune`, or \
                 import into another store"
            ))),
            (false, true) => Err(other_run(run).into()),
        }
    }

    /// Puts a run into the store; returns it, unless it was there as a whole.
    async fn put(&self, run: &FileRun) -> Result<Option<UnfinishedRun>, ImportFault> {
        let run_id = &run.head.run_id;
        let there = match self.to.find(run_id).await? {
            None => match self.to.create(self.made(run)?).await? {
                Created::New(lease) => Some((lease.fence, 1)),
                // Another import made it at this moment.
                _ => None,
            },
            Some(there) => {
                let events = self.is_same(run, &there).await?;
                if !there.is_unfinished() && events >= run.events.len() {
                    return Ok(None);
                }
                Some((self.to.lease(run_id).await?.fence, events))
            }
        };
        let (fence, next) = there.ok_or_else(|| other_run(run))?;
        let written = UnfinishedRun { run_id: run_id.clone(), fence, record: run.record() };
        written.write(&*self.to, &run.events, next, &run.texts).await?;
        Ok(Some(written))
    }

    /// The run as it is made in the store. Nobody can drive it before it is finished.
    fn made(&self, run: &FileRun) -> Result<NewRun, ImportFault> {
        let header = &run.state.header;
        let (org, is_below) = (run.head.org.as_deref(), run.head.called_by.is_some());
        let line = line::of_imported(&run.program, &run.state, org, is_below);
        let line = line.map_err(|why| run.fault(format!("run {}: {why}", run.head.run_id)))?;
        let described = DescribedRun::of(&run.program, header);
        let new = NewRun {
            run_id: run.head.run_id.clone(),
            loop_name: header.loop_name.clone(),
            session: header.session.clone(),
            org: run.head.org.clone(),
            token: None,
            callback_url: None,
            parent_run_id: run.head.called_by.clone(),
            identity: run.head.identity.clone(),
            start_key: None,
            at_ms: header.at_ms,
            event: run.events.first().cloned().unwrap_or_default(),
            texts: run.texts.clone(),
            scheduled: None,
            status_record: Some(run.unfinished()),
            search_text: Some(described.search_text),
            title: Some(described.title),
            audit: None,
            line,
        };
        Ok(match (run.is_copy, run.hides) {
            (false, _) => new,
            (true, false) => new.to_imported(),
            (true, true) => new.to_imported_with_hidden(),
        })
    }
}

impl FileRun {
    fn unfinished(&self) -> StatusRecord {
        StatusRecord::unfinished(self.state.header.at_ms)
    }

    fn record(&self) -> StatusRecord {
        let record = status_record(&self.program, &self.state);
        if self.is_copy { record.to_read_only_copy() } else { record }
    }

    fn fault(&self, why: String) -> ImportFault {
        ImportFault::File(RunFileFault { line: self.line, why })
    }
}

/// Whether two events are of the same kind, and happened at the same time by both clocks of a run.
fn at_same_moment(one: &str, other: &str) -> bool {
    let read = |event: &str| json_text::read::<Event>(event).ok();
    let Some((one, other)) = read(one).zip(read(other)) else { return false };
    one.at == other.at && std::mem::discriminant(&one.kind) == std::mem::discriminant(&other.kind)
}

fn other_run(run: &FileRun) -> RunFileFault {
    let why = format!(
        "the store has another run {}: nothing of it was changed; import into another store, or delete that run",
        run.head.run_id
    );
    RunFileFault { line: run.line, why }
}

impl<R: BufRead> RunReader<R> {
    /// Reads the head of a file.
    fn new(from: R, import: &Import) -> Result<Self, RunFileFault> {
        let mut lines = RunLineReader::new(from);
        let (project, continues) = (import.project.clone(), import.continues);
        match lines.next_line()? {
            Some(RunLine::Runs(FileHead { format: FORMAT, redacted, .. })) => {
                Ok(Self { lines, project, runs: 0, redacted, continues, root: None })
            }
            Some(RunLine::Runs(head)) => Err(lines.fault(format!(
                "its format is {}, and this loopctl reads {FORMAT}: take loopctl {} or later",
                head.format, head.loopctl
            ))),
            Some(_) => Err(lines.fault("the first line of the file is missing")),
            None => Err(lines.fault("the file is empty")),
        }
    }

    fn line(&mut self) -> Result<RunLine, RunFileFault> {
        match self.lines.next_line()? {
            Some(line) => Ok(line),
            None => Err(self.lines.fault("the file ends here, and its last line is missing: it was cut off")),
        }
    }

    /// The next run; none after the last one.
    fn next_run(&mut self) -> Result<Option<FileRun>, RunFileFault> {
        let head = match self.line()? {
            RunLine::Run(head) => *head,
            RunLine::End(end) if end.runs == self.runs => {
                return match self.lines.next_line()? {
                    None => Ok(None),
                    Some(_) => Err(self.lines.fault("it follows the last line of the file")),
                };
            }
            RunLine::End(end) => {
                let why = format!("the file has {} runs, and this line counts {}", self.runs, end.runs);
                return Err(self.lines.fault(why));
            }
            RunLine::Runs(_) | RunLine::Text(_) | RunLine::Event(_) => {
                return Err(self.lines.fault("it belongs to no run"));
            }
        };
        self.runs += 1;
        self.check_head(&head)?;
        let line = self.lines.number;
        let (mut bytes, mut texts, mut events) = (0_usize, Vec::new(), Vec::new());
        for _ in 0..head.texts {
            let RunLine::Text(text) = self.line()? else {
                return Err(self.lines.fault("it is no text of the run"));
            };
            bytes = self.counted(bytes, text.len())?;
            texts.push(Blob::new(text));
        }
        for _ in 0..head.events {
            let RunLine::Event(event) = self.line()? else {
                return Err(self.lines.fault("it is no event of the run"));
            };
            bytes = self.counted(bytes, event.get().len())?;
            events.push(String::from(Box::<str>::from(event)));
        }
        let fault = |why: String| RunFileFault { line, why };
        let folded = folded(&head.run_id, &events, &texts, self.project.clone());
        let (program, state) = folded.map_err(|why: Fault| fault(format!("run {}: {why}", head.run_id)))?;
        if state.header.run_id != head.run_id {
            return Err(fault(format!("its events are those of run {}", state.header.run_id)));
        }
        let is_hidden = |text: &str| text.contains(HIDDEN);
        // Files of earlier versions do not say it of each run.
        let found = || events.iter().any(|event| is_hidden(event)) || texts.iter().any(|text| is_hidden(text));
        let hides = head.hidden || self.redacted && found();
        let is_copy = self.is_copy(&head, &state, hides).map_err(fault)?;
        Ok(Some(FileRun { head, line, events, texts, program, state, hides, is_copy }))
    }

    /// Whether a run becomes a copy that nobody continues.
    ///
    /// # Errors
    /// When it would continue with a hidden value, or is not one of those that the run before it called.
    fn is_copy(&mut self, head: &RunHeadLine, state: &State, hides: bool) -> Result<bool, String> {
        let run_id = &head.run_id;
        let below = |root: &&FileRoot| run_id.strip_prefix(root.run_id.as_str()).is_some_and(|id| id.starts_with('.'));
        let (continues, is_copy) = match (&head.called_by, self.root.as_ref().filter(below)) {
            (None, _) => {
                let continues = self.continues && !matches!(state.phase, Phase::Ended(_));
                let is_copy = !self.continues || hides;
                self.root = Some(FileRoot { run_id: run_id.clone(), continues, is_copy });
                (continues, is_copy)
            }
            (Some(_), Some(root)) => (root.continues, root.is_copy || hides),
            (Some(caller), None) => {
                return Err(format!("run {run_id} was called by run {caller}, which does not come before it"));
            }
        };
        if continues && hides {
            return Err(format!(
                "run {run_id} has values that are hidden, and would go on with `{HIDDEN}` in their place: continue it from a \
                 file with its secrets"
            ));
        }
        Ok(is_copy)
    }

    fn counted(&self, bytes: usize, more: usize) -> Result<usize, RunFileFault> {
        let all = bytes.saturating_add(more);
        if all > MAX_RUN_BYTES {
            return Err(self.lines.fault(format!("the run has more than {} MiB", MAX_RUN_BYTES >> 20)));
        }
        Ok(all)
    }

    fn check_head(&self, head: &RunHeadLine) -> Result<(), RunFileFault> {
        for id in [Some(&head.run_id), head.called_by.as_ref(), head.org.as_ref()].into_iter().flatten() {
            let is_long = || (id.chars().count() > MAX_ID_CHARS).then_some("it is too long");
            if let Some(why) = unreadable(id).or_else(is_long) {
                return Err(self.lines.fault(format!("it has an id that no run has: {why}")));
            }
        }
        if head.events == 0 {
            return Err(self.lines.fault("the run has no events"));
        }
        let is_below =
            |caller: &String| head.run_id.strip_prefix(caller.as_str()).is_some_and(|rest| rest.starts_with('.'));
        match &head.called_by {
            Some(caller) if !is_below(caller) => Err(self.lines.fault(format!("run {caller} calls no run of this id"))),
            _ => Ok(()),
        }
    }
}
