//! `loopctl cancel`.

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::output::{ListOutput, json_line};
use super::process::acting_user;
use super::recorded_run::RecordedRun;
use super::store::StoreArgs;
use super::surface::Surface;
use crate::engine::outcome::Status;
use crate::journal::CancelRequest;
use crate::trace::{Tone, escape};

/// Cancel a run
///
/// If another process drives the run, the run ends there within a moment. A tool call in progress is
/// abandoned.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl cancel triage-7k2m9q4x --reason \"the ticket was closed\"")]
pub struct CancelCommand {
    /// The run: its id, the beginning of its id, `last` or `last:LOOP`
    pub run: String,
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
        let RecordedRun { id: run, program, engine, .. } = RecordedRun::named(&self.run, &journal, &place).await?;
        let status = engine.cancel(&program, &run, CancelRequest { reason: self.reason, by: acting_user() }).await?;
        if self.output == ListOutput::Json {
            surface.print(&json_line(&serde_json::json!({"run_id": run, "status": status}))?)?;
            return Ok(Exit::Completed);
        }
        let run = escape::line(&run);
        surface.say(&match status {
            Status::Running => format!("{run} is in progress in another process, which cancels it within a moment\n"),
            _ => format!("{} {run}\n", surface.err.paint(Tone::Warn, "■ cancelled")),
        });
        Ok(Exit::Completed)
    }
}
