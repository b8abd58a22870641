//! `loopctl rerun`.

use std::sync::Arc;

use clap::Args;

use super::earlier_run::EarlierRunArgs;
use super::exit::Exit;
use super::failure::CommandError;
use super::output::Output;
use super::run_drive::{DriveAction, RunToDrive};
use super::surface::Surface;
use super::watch::WatchArgs;
use crate::drive::rerun;
use crate::trace::escape;

/// Start a new run with the input of an earlier one
///
/// The new run has the input, the session and the limits that the earlier run was started with, and its document as
/// it was recorded. The earlier run does not change.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl rerun last
  loopctl rerun triage-7k2m9q4x --document triage.json")]
pub struct RerunCommand {
    #[command(flatten)]
    pub earlier: EarlierRunArgs,
    #[command(flatten)]
    pub watch: WatchArgs,
}

impl RerunCommand {
    /// Starts the new run, and drives it until it ends or waits for a human.
    ///
    /// # Errors
    /// When the earlier run or the document can't be read, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        self.watch.judge(surface)?;
        let earlier = self.earlier.read().await?;
        let document = self.earlier.document(&earlier)?;
        let is_recorded = self.earlier.document.is_none();
        let own_model = if is_recorded { Some(Arc::clone(&document.program)) } else { earlier.program().ok() };
        let mut start = rerun::start(&earlier.id, &earlier.events, own_model.as_deref())?;
        (start.run_id, start.org) = (self.earlier.run_id, earlier.org);
        if self.watch.output == Output::Human {
            surface.say(&format!("rerun of {}\n", escape::line(&earlier.id)));
        }
        let script = self.earlier.files.read()?;
        let action = DriveAction::Start(Box::new(start));
        let (place, journal, files, watch) = (earlier.place, earlier.journal, self.earlier.files, self.watch);
        RunToDrive { document, place, journal, action, script, files, watch }.perform(surface).await
    }
}
