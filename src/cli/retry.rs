//! `loopctl retry`.

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::many_runs::{ManyResults, ManyRunsArgs};
use super::output::{ListOutput, Output};
use super::process::acting_user;
use super::resume::ResumableArgs;
use super::surface::Surface;
use super::watch::WatchArgs;
use crate::drive::engine::Resume;
use crate::engine::event::Retried;
use crate::engine::outcome::Status;
use crate::journal::{ListedStatus, RunSummary};

/// Retry a run that failed because its model could not be reached, or of which steps or items failed
///
/// The run continues at the failed step; finished steps are not repeated. A loop can be retried if its result says
/// `"retryable": true`: its model could not be reached, its server failed, or it refused too many requests or the key.
/// Of a workflow, the failed steps and items run again. With --failed, many runs are retried, one after the other.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl retry triage-7k2m9q4x
  loopctl retry --failed --loop triage --since 24h --dry-run
  loopctl retry --failed --loop triage --since 24h --limit 20 --yes")]
pub struct RetryCommand {
    /// The run: its id, the beginning of its id, `last` or `last:LOOP`
    #[arg(required_unless_present = "failed", conflicts_with = "failed")]
    pub run: Option<String>,
    /// Retry all runs that failed, or whose models are away
    #[arg(long)]
    pub failed: bool,
    #[command(flatten)]
    pub many: ManyRunsArgs,
    #[command(flatten)]
    pub resumable: ResumableArgs,
}

impl RetryCommand {
    /// Retries the run, or the runs.
    ///
    /// # Errors
    /// When the run can't be retried, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        match &self.run {
            Some(run) => {
                self.many.refuse("--failed")?;
                let run = run.clone();
                self.resumable.perform(&run, retry(), surface).await
            }
            None => self.perform_many(surface).await,
        }
    }

    async fn perform_many(self, surface: &Surface) -> Result<Exit, CommandError> {
        let (journal, place) = self.resumable.store.open()?;
        let found =
            self.many.find(&journal, &[ListedStatus::Failed, ListedStatus::Paused], false, may_be_retried).await?;
        let mut results = ManyResults::default();
        if self.many.is_confirmed("retried", &found, surface)? {
            for run in &found.runs {
                let run_id = run.run_id.as_str();
                // Those before it took their time.
                if !journal.find(run_id).await?.is_some_and(|now| now.is_unchanged(run)) {
                    results.add(run_id.to_owned(), Err("it has continued since it was listed".to_owned()));
                    continue;
                }
                let done = self.resumable.resume_one(run_id, retry(), &journal, &place).await;
                let done = match done {
                    Ok(Status::Failed) => Err("it failed again".to_owned()),
                    Ok(_) => Ok(()),
                    Err(why) => Err(why.shown(surface).trim().to_owned()),
                };
                results.add(run_id.to_owned(), done);
            }
        }
        results.print("retried", &found, self.output(), surface)
    }

    /// The format of the list of what became of many runs.
    fn output(&self) -> ListOutput {
        let WatchArgs { output, .. } = &self.resumable.watch;
        if *output == Output::Human { ListOutput::Human } else { ListOutput::Json }
    }
}

fn retry() -> Resume {
    Resume { retried: Some(Retried::by(acting_user())), ..Resume::default() }
}

/// What waits for a human is decided about, one by one; a model that is waited for beside that is asked again.
fn may_be_retried(run: &RunSummary) -> bool {
    run.may_be_driven().is_ok() && (run.waits_for_model() || run.status == Status::Failed)
}
