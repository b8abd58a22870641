//! `loopctl import`.

use std::io::{BufReader, Seek as _};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::input::reached;
use super::store::StoreArgs;
use super::surface::Surface;
use crate::drive::import::{Import, ImportFault};
use crate::journal::Journal;
use crate::journal::memory::MemoryJournal;
use crate::project::guarded_read::ReadError;
use crate::trace::escape;
use crate::trace::units::plural;

/// Read runs from a file that `loopctl export` wrote
///
/// The whole file is checked before anything is written; a file that is damaged, was changed or is cut off is refused with its
/// line. A run of the store is never changed. The imported runs are copies: `trace`, `explain` and `replay` show them, and no
/// server continues those that have not ended, unless `--continue` says so.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl import runs.jsonl --store sqlite:seen.db")]
pub struct ImportCommand {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Let servers continue the runs that have not ended. Their calls are then made here: stop them where they come from
    #[arg(long = "continue")]
    continues: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl ImportCommand {
    /// Reads the runs.
    ///
    /// # Errors
    /// When the file is refused, or the store fails.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let unread = |error: std::io::Error| CommandError::file("read", &self.file, &error);
        let mut file = reached(&self.file)?.open().map_err(|refused| match refused {
            ReadError::Failed(error) => unread(error),
            _ => CommandError::usage(format!("{} is no file", self.file.display())),
        })?;
        let place = self.store.place()?;
        let import = |to: Arc<dyn Journal>| Import { to, project: place.project.clone(), continues: self.continues };
        let refused = |fault: ImportFault| match fault {
            ImportFault::Store(fault) => CommandError::Store(fault),
            ImportFault::File(fault) => CommandError::usage(format!("{}: {fault}", self.file.display())),
        };
        // A file that is refused makes no store, and no tables in a database.
        if place.file().is_none_or(|store| !store.exists()) {
            import(Arc::new(MemoryJournal::new())).check(BufReader::new(&file)).await.map_err(refused)?;
            file.rewind().map_err(unread)?;
        }
        let import = import(place.open()?);
        import.check(BufReader::new(&file)).await.map_err(refused)?;
        file.rewind().map_err(unread)?;
        let done = import.import(BufReader::new(&file)).await.map_err(refused)?;
        let were = if done.there == 1 { "was" } else { "were" };
        let store = escape::line(&place.shown()).into_owned();
        surface.print(&format!(
            "{} imported into {store}, {} {were} there\n",
            plural(done.imported, "run"),
            done.there
        ))?;
        if done.open > 0 && !self.continues {
            let (have, them) = if done.open == 1 { ("has", "it") } else { ("have", "them") };
            surface.say(&format!("{} of them {have} not ended: nobody continues {them} here\n", done.open));
        }
        Ok(Exit::Completed)
    }
}
