//! `loopctl retry`.

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::process::acting_user;
use super::resume::ResumableArgs;
use super::surface::Surface;
use crate::drive::engine::Resume;
use crate::engine::event::Retried;

/// Retry a run that failed because its model could not be reached, or of which steps or items failed
///
/// The run continues at the failed step; finished steps are not repeated. A loop can be retried if its result says
/// `"retryable": true`: its model could not be reached, its server failed, or it refused too many requests or the key.
/// Of a workflow, the failed steps and items run again.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl retry triage-7k2m9q4x")]
pub struct RetryCommand {
    #[command(flatten)]
    pub resumable: ResumableArgs,
}

impl RetryCommand {
    /// Retries the run.
    ///
    /// # Errors
    /// When the run can't be retried, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let resume = Resume { retried: Some(Retried::by(acting_user())), ..Resume::default() };
        self.resumable.perform(resume, surface).await
    }
}
