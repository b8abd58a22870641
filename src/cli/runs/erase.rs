//! `loopctl runs erase`.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::output::{ListOutput, json_line};
use crate::cli::process::acting_user;
use crate::cli::store::StoreArgs;
use crate::cli::surface::Surface;
use crate::drive::clock;
use crate::engine::outcome::Status;
use crate::journal::prune::prune_all;
use crate::journal::{AuditAction, AuditEntry, AuditLine, Journal, PruneQuery, RunFilter, RunSummary};
use crate::serve::view::session_in_store;
use crate::trace::escape;
use crate::trace::units::plural;

/// Delete these runs now, or all runs of a session with what it remembers
///
/// Each run is deleted with the runs that it called. A run that has not ended stays, and so does one whose result is still to be
/// posted: it is named, and the command ends with 1. The memory of a session stays as long as one of its runs does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl runs erase refund-7k2m9q4x
  loopctl runs erase --session ada --dry-run
  loopctl runs --search ada@example.com --limit 0 --ids | xargs loopctl runs erase")]
pub struct EraseTask {
    /// The runs, by their whole ids
    #[arg(value_name = "RUN", required_unless_present = "session")]
    runs: Vec<String>,
    /// All runs of this session too, and what it remembers
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// The organisation that the session belongs to
    #[arg(long, value_name = "NAME", requires = "session")]
    org: Option<String>,
    /// Count what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    store: StoreArgs,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    output: ListOutput,
}

/// What was deleted.
#[derive(Default)]
struct Erased {
    runs: u64,
    /// The values that the session remembered; none where no session is named, or its memory stays.
    memory: Option<u64>,
    /// The runs that are still there.
    stay: Vec<RunSummary>,
}

impl EraseTask {
    /// Deletes them.
    ///
    /// # Errors
    /// When there is no store or no such run, or the store fails.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let (journal, place) = self.store.open()?;
        let ids = self.ids(&journal).await?;
        let which = PruneQuery::of_runs(ids.iter().cloned().collect());
        let session = self.session.as_deref().map(|session| session_in_store(self.org.as_deref(), session));
        let mut erased = Erased::default();
        if self.dry_run {
            erased.runs = journal.prune(PruneQuery { dry_run: true, ..which }).await?;
        } else {
            erased.runs = prune_all(&*journal, &which).await?;
            for id in &ids {
                erased.stay.extend(journal.find(id).await?);
            }
        }
        if let Some(session) = session.filter(|_| erased.stay.is_empty()) {
            erased.memory = Some(match self.dry_run {
                true => u64::try_from(journal.recall(&session).await?.len()).unwrap_or(u64::MAX),
                false => journal.forget(&session).await?,
            });
        }
        let has_deleted = erased.runs > 0 || erased.memory.is_some_and(|values| values > 0);
        if has_deleted && !self.dry_run {
            let detail = if self.session.is_some() { "erased, a session" } else { "erased" };
            let entry = AuditEntry::new(clock::wall_ms(), AuditAction::Pruned, acting_user().as_deref(), Some(detail));
            journal.note_audit(vec![AuditLine { times: erased.runs, ..AuditLine::new(entry) }]).await?;
        }
        match self.output {
            ListOutput::Json => {
                let stay: Vec<&str> = erased.stay.iter().map(|run| run.run_id.as_str()).collect();
                let shown =
                    json!({ "runs": erased.runs, "memory": erased.memory, "stay": stay, "dry_run": self.dry_run });
                surface.print(&json_line(&shown)?)?;
            }
            ListOutput::Human => {
                surface.print(&erased.shown(self.session.is_some(), self.dry_run))?;
                if let Some(space) = place.space_of_deleted().filter(|_| erased.runs > 0 && !self.dry_run) {
                    surface.say(&format!("{space}\n"));
                }
            }
        }
        Ok(if erased.stay.is_empty() { Exit::Completed } else { Exit::Failed })
    }

    /// The ids of the runs that are meant.
    async fn ids(&self, journal: &Arc<dyn Journal>) -> Result<BTreeSet<String>, CommandError> {
        let mut ids = BTreeSet::new();
        for id in &self.runs {
            let shown = escape::line(id);
            let Some(run) = journal.find(id).await? else {
                return Err(CommandError::usage_help(
                    format!("there is no run {shown}"),
                    "name whole ids, as `loopctl runs --ids` lists them; nothing was deleted",
                ));
            };
            if let Some(caller) = &run.parent_run_id {
                return Err(CommandError::usage_help(
                    format!("run {shown} was called by run {}", escape::line(caller)),
                    "name the run that called it: both are deleted together",
                ));
            }
            ids.insert(run.run_id);
        }
        if let Some(session) = &self.session {
            let session = Some(session_in_store(self.org.as_deref(), session));
            let runs = journal.list(RunFilter { session, ..RunFilter::default() }).await?;
            ids.extend(runs.into_iter().map(|run| run.run_id));
        }
        Ok(ids)
    }
}

impl Erased {
    fn shown(&self, has_session: bool, is_dry: bool) -> String {
        let what = if is_dry { "would be deleted" } else { "deleted" };
        let mut text = format!("{} {what}\n", plural(self.runs, "run"));
        if let Some(values) = self.memory {
            text.push_str(&format!("{} of the session's memory {what}\n", plural(values, "value")));
        }
        for run in &self.stay {
            text.push_str(&format!("run {} stays: {}\n", escape::line(&run.run_id), why(run)));
        }
        if has_session && !self.stay.is_empty() {
            text.push_str("the session keeps its memory while one of these runs stays\n");
        }
        text
    }
}

/// Why a run is not deleted.
fn why(run: &RunSummary) -> String {
    let status = run.listed_status();
    match run.status {
        Status::Running | Status::Paused | Status::Quarantined => {
            format!("it is {}; end it first: loopctl cancel {}", status.word(), escape::line(&run.run_id))
        }
        Status::Cancelled if run.termination.is_none() => {
            format!(
                "a signal stopped it, and it can continue; end it first: loopctl cancel {}",
                escape::line(&run.run_id)
            )
        }
        Status::Completed | Status::Failed | Status::Cancelled => {
            "a process has it, its result is still to be posted, or a run that it called has not ended: try again later"
                .to_owned()
        }
    }
}
