//! `loopctl runs prune`.

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::output::{ListOutput, json_line};
use crate::cli::process::acting_user;
use crate::cli::run_filter::age_ms;
use crate::cli::store::StoreArgs;
use crate::cli::surface::Surface;
use crate::drive::clock;
use crate::engine::outcome::Status;
use crate::journal::prune::prune_all;
use crate::journal::{AuditAction, AuditEntry, AuditLine, PruneQuery};
use crate::trace::units::plural;

/// Delete runs that ended long ago
///
/// A run that is in progress or waits stays, and so does one that called such a run. So does a run that a signal
/// stopped, and one whose result is still to be posted. Sub-runs are deleted with their caller. The memory of sessions
/// stays.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl runs prune --older-than 30d --dry-run
  loopctl runs prune --older-than 30d --status completed")]
pub struct PruneTask {
    /// How long ago the runs ended: a number and d, h, min or s
    #[arg(long, value_name = "TIME", value_parser = age_ms)]
    older_than: i64,
    /// Delete only runs that ended so; repeatable. Default: all of these
    #[arg(long, value_enum, value_name = "STATUS")]
    status: Vec<PrunedStatus>,
    /// Count the runs, and delete none
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    store: StoreArgs,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    output: ListOutput,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PrunedStatus {
    /// With an answer
    Completed,
    /// Without an answer
    Failed,
    /// Cancelled by a human
    Cancelled,
}

impl From<PrunedStatus> for Status {
    fn from(end: PrunedStatus) -> Self {
        match end {
            PrunedStatus::Completed => Self::Completed,
            PrunedStatus::Failed => Self::Failed,
            PrunedStatus::Cancelled => Self::Cancelled,
        }
    }
}

impl PruneTask {
    /// Deletes the runs.
    ///
    /// # Errors
    /// When there is no store, or it fails.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let (journal, place) = self.store.open()?;
        let ends: Vec<PrunedStatus> =
            if self.status.is_empty() { PrunedStatus::value_variants().to_vec() } else { self.status };
        let statuses: Vec<Status> = ends.into_iter().map(Status::from).collect();
        let before_ms = clock::wall_ms().saturating_sub(self.older_than);
        let which = PruneQuery::all_before(before_ms, statuses);
        let runs = match self.dry_run {
            true => journal.prune(PruneQuery { dry_run: true, ..which }).await?,
            false => prune_all(&*journal, &which).await?,
        };
        if runs > 0 && !self.dry_run {
            let entry = AuditEntry::new(clock::wall_ms(), AuditAction::Pruned, acting_user().as_deref(), None);
            journal.note_audit(vec![AuditLine { times: runs, ..AuditLine::new(entry) }]).await?;
        }
        match self.output {
            ListOutput::Json => surface.print(&json_line(&json!({ "runs": runs, "dry_run": self.dry_run }))?)?,
            ListOutput::Human => {
                let count = plural(runs, "run");
                let what = if self.dry_run { "would be deleted" } else { "deleted" };
                surface.print(&format!("{count} {what}\n"))?;
                let space = place.space_of_deleted().filter(|_| runs > 0 && !self.dry_run);
                if let Some(space) = space {
                    surface.say(&format!("{space}\n"));
                }
            }
        }
        Ok(Exit::Completed)
    }
}
