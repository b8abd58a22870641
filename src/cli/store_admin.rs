//! `loopctl store`.

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::failure::CommandError;
use super::host::{self, StoreReport};
use super::store::StoreArgs;
use super::surface::Surface;
use crate::trace::{Tone, escape};

/// Make, migrate and check the store of the runs
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl store check --store env:LOOPCTL_STORE")]
pub struct StoreCommand {
    #[command(subcommand)]
    what: StoreTask,
}

#[derive(Debug, Subcommand)]
enum StoreTask {
    Schema(SchemaTask),
    Migrate(MigrateTask),
    Check(CheckTask),
}

/// Print the statements that make the store, for an administrator of the database
///
/// Nothing is opened. The rights that a role needs to use the store follow as comments.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl store schema --store postgres://db.example.com/loops | psql postgres://admin@db.example.com/loops")]
struct SchemaTask {
    #[command(flatten)]
    store: StoreArgs,
}

/// Make the tables of the store, or bring those of an older version up to date
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl store migrate --store env:ADMIN_STORE")]
struct MigrateTask {
    #[command(flatten)]
    store: StoreArgs,
}

/// Check whether the store can be used; write nothing
///
/// Prints the version of its tables, the server and the rights of the role. Exit code 2 when it can't be used.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl store check --store env:LOOPCTL_STORE")]
struct CheckTask {
    #[command(flatten)]
    store: StoreArgs,
}

impl StoreCommand {
    /// Performs the task.
    ///
    /// # Errors
    /// When the store can't be used.
    pub fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        match &self.what {
            StoreTask::Schema(task) => {
                let place = task.store.place()?;
                surface.print(&host::store_statements(&place.url, &place.base)?)?;
                Ok(Exit::Completed)
            }
            StoreTask::Migrate(task) => {
                let place = task.store.place()?;
                drop(place.open()?);
                report(surface, host::examine_store(&place.url, &place.base)?)
            }
            StoreTask::Check(task) => {
                let place = task.store.place()?;
                report(surface, host::examine_store(&place.url, &place.base)?)
            }
        }
    }
}

/// Prints the facts; what is wrong is the failure of the command.
fn report(surface: &Surface, report: StoreReport) -> Result<Exit, CommandError> {
    let width = report.facts.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
    let line = |(what, how): &(&str, String)| {
        format!("{}  {}\n", surface.out.paint(Tone::Dim, &format!("{what:width$}")), escape::line(how))
    };
    surface.print(&report.facts.iter().map(line).collect::<String>())?;
    match report.wrong {
        None => Ok(Exit::Completed),
        Some(fault) => Err(CommandError::Store(fault)),
    }
}
