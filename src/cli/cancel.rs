//! `loopctl cancel`.

use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::exit::Exit;
use super::failure::CommandError;
use super::many_runs::{ManyResults, ManyRunsArgs};
use super::output::{ListOutput, json_line};
use super::process::acting_user;
use super::recorded_run::RecordedRun;
use super::store::{StoreArgs, StorePlace};
use super::surface::Surface;
use crate::drive::fault::Fault;
use crate::engine::outcome::Status;
use crate::journal::{CancelRequest, Journal, ListedStatus};
use crate::trace::{Tone, escape};

/// Cancel a run
///
/// If another process drives the run, the run ends there within a moment. A tool call in progress is
/// abandoned. With --status, many runs are cancelled.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl cancel triage-7k2m9q4x --reason \"the ticket was closed\"
  loopctl cancel --status paused --loop triage --until 30d --dry-run
  loopctl cancel --status running --status paused --loop triage --yes")]
pub struct CancelCommand {
    /// The run: its id, the beginning of its id, `last` or `last:LOOP`
    #[arg(required_unless_present = "status", conflicts_with = "status")]
    pub run: Option<String>,
    /// Cancel all runs with this status; repeatable
    #[arg(long, value_name = "STATUS", value_enum)]
    pub status: Vec<CancelledStatus>,
    #[command(flatten)]
    pub many: ManyRunsArgs,
    /// The reason; it appears in the trace
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    #[command(flatten)]
    pub store: StoreArgs,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: ListOutput,
}

impl CancelCommand {
    /// Ends the run.
    ///
    /// # Errors
    /// When there is no such run, it has ended, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let (journal, place) = self.store.open()?;
        let Some(run) = &self.run else { return self.perform_many(&journal, &place, surface).await };
        self.many.refuse("--status")?;
        let RecordedRun { id: run, program, engine, .. } = RecordedRun::named(run, &journal, &place).await?;
        let status = engine.cancel(&program, &run, CancelRequest { reason: self.reason, by: acting_user() }).await?;
        if self.output == ListOutput::Json {
            surface.print(&json_line(&serde_json::json!({"run_id": run, "status": status}))?)?;
            return Ok(Exit::Completed);
        }
        let name = escape::line(&run);
        surface.say(&match status {
            Status::Running | Status::Paused if !engine.find(&run).await?.is_some_and(|run| run.driven) => format!(
                "{name} has steps for a cancel: `loopctl resume {name}` runs them, or a server of the store; \
                 `loopctl cancel {name}` again ends it without them\n"
            ),
            // Its driver has the lease, although the run waits.
            Status::Running | Status::Paused => {
                format!("{name} is in progress in another process, which cancels it within a moment\n")
            }
            _ => format!("{} {name}\n", surface.err.paint(Tone::Warn, "■ cancelled")),
        });
        Ok(Exit::Completed)
    }

    async fn perform_many(
        &self,
        journal: &Arc<dyn Journal>,
        place: &StorePlace,
        surface: &Surface,
    ) -> Result<Exit, CommandError> {
        let statuses: Vec<ListedStatus> = self.status.iter().map(|status| ListedStatus::from(*status)).collect();
        let found = self.many.find(journal, &statuses, false, |run| run.may_be_driven().is_ok()).await?;
        let mut results = ManyResults::default();
        if self.many.is_confirmed("cancelled", &found, surface)? {
            for run in &found.runs {
                let request = CancelRequest { reason: self.reason.clone(), by: acting_user() };
                results.add(run.run_id.clone(), cancelled(&run.run_id, request, journal, place).await);
            }
        }
        results.print("cancelled", &found, self.output, surface)
    }
}

/// Cancels a run, or asks its driver to.
async fn cancelled(
    run_id: &str,
    request: CancelRequest,
    journal: &Arc<dyn Journal>,
    place: &StorePlace,
) -> Result<(), Fault> {
    let run = RecordedRun::read(run_id.to_owned(), Arc::clone(journal), place.project.clone()).await?;
    run.engine.cancel(&run.program, run_id, request).await.map(drop)
}

/// The status of runs that can be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CancelledStatus {
    /// Under way, or in the queue
    Running,
    /// Waiting for a human, or for a model that is away
    Paused,
    /// Set aside, because processes died of them
    Quarantined,
}

impl From<CancelledStatus> for ListedStatus {
    fn from(status: CancelledStatus) -> Self {
        match status {
            CancelledStatus::Running => Self::Running,
            CancelledStatus::Paused => Self::Paused,
            CancelledStatus::Quarantined => Self::Quarantined,
        }
    }
}
