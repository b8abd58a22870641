//! Reads a file of runs into a store. The whole file is read and folded before anything is written. A run that is there
//! already, as this file has it, stays as it is; another run of its id is never changed. Nobody drives an imported run,
//! unless that is asked for.

use std::io::BufRead;
use std::sync::Arc;

use super::export::folded;
use super::fault::Fault;
use super::run_file::{FORMAT, RunFileFault, RunHeadLine, RunLine, RunLineReader};
use super::search_text::DescribedRun;
use super::status::status_record;
use crate::journal::{Append, Created, Journal, NewRun, StatusRecord, StoreError};
use loopctl_engine::blob::Blob;
use loopctl_engine::event::Event;
use loopctl_engine::outcome::Status;
use loopctl_engine::state::{Phase, State};
use loopctl_lang::diagnostic::Source;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::Program;

/// The most bytes that the events and texts of one run have.
const MAX_RUN_BYTES: usize = 512 << 20;
/// The most characters of an id, and of the name of an organisation.
const MAX_ID_CHARS: usize = 512;
/// The maximum number of events that wait for the store at a time.
const IN_FLIGHT: usize = 128;

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
    /// Those of both that have not ended.
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
}

/// The runs of a file, one after the other.
struct RunReader<R> {
    lines: RunLineReader<R>,
    project: Option<Source>,
    runs: u64,
}

impl Import {
    /// Reads the whole file, and looks for other runs of the same ids. Nothing is written.
    ///
    /// # Errors
    /// When a line is refused, or the store fails.
    pub async fn check(&self, from: impl BufRead) -> Result<(), ImportFault> {
        let mut reader = RunReader::new(from, self.project.clone())?;
        while let Some(run) = reader.next_run()? {
            if let Some(there) = self.to.find(&run.head.run_id).await? {
                let is_same = there.identity == self.made(&run).identity;
                let is_there = is_same && self.has(&run).await? || self.has_origin(&run).await?;
                if !is_there {
                    return Err(other_run(&run).into());
                }
            }
        }
        Ok(())
    }

    /// Imports the runs of a file that was checked.
    ///
    /// # Errors
    /// As for [`Import::check`]. The runs before the line stay imported, and are there for the next call.
    pub async fn import(&self, from: impl BufRead) -> Result<ImportedRuns, ImportFault> {
        let mut reader = RunReader::new(from, self.project.clone())?;
        let mut done = ImportedRuns::default();
        while let Some(run) = reader.next_run()? {
            if self.put(&run).await? {
                done.imported += 1;
            } else {
                done.there += 1;
            }
            done.open += u64::from(!matches!(run.state.phase, Phase::Ended(_)));
        }
        Ok(done)
    }

    /// Whether the store has the events of a run, or the first of them.
    async fn has(&self, run: &FileRun) -> Result<bool, StoreError> {
        let there = self.to.read(&run.head.run_id).await?;
        let common = there.len().min(run.events.len());
        Ok(there.get(..common) == run.events.get(..common))
    }

    /// Whether the store has the run that the file was written of, with all that is in the file: what is secret may be hidden there.
    async fn has_origin(&self, run: &FileRun) -> Result<bool, StoreError> {
        let run_id = &run.head.run_id;
        let identity = self.to.find(run_id).await?.map(|there| there.identity);
        if identity.as_ref() != Some(&run.head.identity) {
            return Ok(false);
        }
        let there = self.to.read(run_id).await?;
        let same = |there: &String, event: &String| there == event || at_same_moment(there, event);
        Ok(there.len() >= run.events.len() && there.iter().zip(&run.events).all(|(there, event)| same(there, event)))
    }

    /// Puts a run into the store; returns whether something of it was not there.
    async fn put(&self, run: &FileRun) -> Result<bool, ImportFault> {
        let run_id = &run.head.run_id;
        let has_one = run.events.len() == 1;
        let (fence, next) = match self.to.create(self.made(run)).await? {
            Created::New(lease) => (lease.fence, 1),
            Created::Same if self.has(run).await? => {
                let there = self.to.read(run_id).await?.len();
                if there >= run.events.len() {
                    return Ok(false);
                }
                (self.to.lease(run_id).await?.fence, there)
            }
            Created::Same | Created::Conflict if self.has_origin(run).await? => return Ok(false),
            Created::Same | Created::Conflict | Created::KeyTaken(_) | Created::LineFull(_) => {
                return Err(other_run(run).into());
            }
        };
        let last = run.events.len().saturating_sub(1);
        let mut waiting = Vec::new();
        for (seq, event) in run.events.iter().enumerate().skip(next) {
            let number = u64::try_from(seq).unwrap_or(u64::MAX);
            let mut entry = Append::new(run_id.clone(), fence, number, event.clone());
            if seq == last {
                (entry.release, entry.status_record) = (true, Some(self.record(run)));
                entry.texts.clone_from(&run.texts);
            }
            waiting.push(self.to.append(entry));
            if waiting.len() == IN_FLIGHT || seq == last {
                for appended in waiting.drain(..) {
                    appended.await?;
                }
            }
        }
        if has_one {
            self.to.release(run_id, fence).await?;
        }
        Ok(true)
    }

    /// The run as it is made in the store. Until its last event is there, it is a run that a signal stopped: nobody claims
    /// it.
    fn made(&self, run: &FileRun) -> NewRun {
        let header = &run.state.header;
        let described = DescribedRun::of(&run.program, header);
        let began = StatusRecord::new(Status::Cancelled, header.at_ms);
        let record = if run.events.len() == 1 { self.record(run) } else { began };
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
            status_record: Some(record),
            search_text: Some(described.search_text),
            title: Some(described.title),
            audit: None,
            line: None,
        };
        if self.continues { new } else { new.to_imported() }
    }

    fn record(&self, run: &FileRun) -> StatusRecord {
        let record = status_record(&run.program, &run.state);
        if self.continues { record } else { record.to_read_only_copy() }
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
    fn new(from: R, project: Option<Source>) -> Result<Self, RunFileFault> {
        let mut lines = RunLineReader::new(from);
        match lines.next_line()? {
            Some(RunLine::Runs(head)) if head.format == FORMAT => Ok(Self { lines, project, runs: 0 }),
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
        Ok(Some(FileRun { head, line, events, texts, program, state }))
    }

    fn counted(&self, bytes: usize, more: usize) -> Result<usize, RunFileFault> {
        let all = bytes.saturating_add(more);
        if all > MAX_RUN_BYTES {
            return Err(self.lines.fault(format!("the run has more than {} MiB", MAX_RUN_BYTES >> 20)));
        }
        Ok(all)
    }

    fn check_head(&self, head: &RunHeadLine) -> Result<(), RunFileFault> {
        let is_plain = |id: &str| {
            (1..=MAX_ID_CHARS).contains(&id.chars().count()) && !id.chars().any(|c| c.is_control() || c.is_whitespace())
        };
        if ![Some(&head.run_id), head.called_by.as_ref(), head.org.as_ref()]
            .into_iter()
            .flatten()
            .all(|id| is_plain(id))
        {
            return Err(self.lines.fault("it has an id that no run has"));
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
