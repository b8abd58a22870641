//! `loopctl retry`.

use std::path::PathBuf;

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::host::Resume;
use super::on_pause::OnPauseArgs;
use super::output::Output;
use super::resume::ResumedRun;
use super::store::StoreArgs;
use super::surface::Surface;
use super::user::local_user;
use crate::engine::event::Retried;

/// Retry a run that failed because its model could not be reached
///
/// The run continues at the failed step; finished steps are not repeated. A run is retryable if its result says
/// `"retryable": true`: its model could not be reached, its server failed, or it refused too many requests.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl retry triage-7k2m9q4x")]
pub struct RetryCommand {
    /// The run: its id, the beginning of its id, `last` or `last:LOOP`
    pub run: String,
    /// Retry with the current document, although it has changed since the run started
    #[arg(long)]
    pub new_document: bool,
    /// Retry with the document as the run recorded it, although the file has changed since
    #[arg(long, conflicts_with = "new_document")]
    pub recorded_document: bool,
    /// A script of model replies; it replaces every model, and the tools that it names
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// A file of registered actions, in addition to the files found automatically; repeatable
    #[arg(long, value_name = "FILE")]
    pub actions: Vec<PathBuf>,
    #[command(flatten)]
    pub store: StoreArgs,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
    /// With --output ndjson: also print replies while they arrive, as `model_delta`
    #[arg(long)]
    pub deltas: bool,
    /// Ask in the terminal when the run waits for a human
    #[arg(long)]
    pub interactive: bool,
}

impl RetryCommand {
    /// Retries the run.
    ///
    /// # Errors
    /// When the run can't be retried, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let Self { run, new_document, recorded_document, script, actions, store, output, deltas, interactive } = self;
        let retried = Some(Retried { by: local_user() });
        let resume = Resume { retried, new_document, ..Resume::default() };
        ResumedRun {
            run,
            resume,
            recorded_document,
            script,
            actions,
            store,
            output,
            deltas,
            interactive,
            on_pause: OnPauseArgs::default(),
        }
        .perform(surface)
        .await
    }
}
