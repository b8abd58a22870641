//! `loopctl store`.

use std::path::Path;

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::failure::CommandError;
use super::many_runs::ManyRunsArgs;
use super::output_file;
use super::process::acting_user;
use super::store::StoreArgs;
use super::surface::Surface;
use crate::drive::clock;
use crate::drive::copy::{CopyFault, StorePair};
use crate::journal::admin::StoreReport;
use crate::journal::{AuditAction, AuditLine, ListedStatus};
use crate::trace::units::plural;
use crate::trace::{Tone, escape};

/// Make, migrate, check and copy the store of the runs
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
    Copy(CopyTask),
    Backup(BackupTask),
    Release(ReleaseTask),
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

/// Copy all runs to another store
///
/// Copies events, texts, answer tokens, the memory of sessions, the audit, and which loops are switched off; checks that each
/// copy of a run gives the same state. Runs that are there already stay as they are. A copy that was cut off continues when it is started again. No process may
/// execute runs of either store meanwhile: `loopctl store backup` copies a SQLite file that is in use.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl store copy sqlite:.loopctl/runs.db env:LOOPCTL_STORE")]
struct CopyTask {
    /// The store with the runs: sqlite:PATH, postgres://..., env:VAR or file:PATH
    #[arg(value_name = "FROM")]
    from: String,
    /// The store to copy them to, in the same forms; it is made if there is none
    #[arg(value_name = "TO")]
    to: String,
}

/// Copy a store that is a SQLite file, also while it is in use
///
/// Makes a new file with all runs as they are at one moment, without unused space; the servers of the store continue. The copy
/// is a store of its own: do not let a server resume the runs of both.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl store backup sqlite:.loopctl/runs.db backup.db")]
struct BackupTask {
    /// The store: sqlite:PATH, env:VAR or file:PATH
    #[arg(value_name = "FROM")]
    from: String,
    /// The new file: PATH, or sqlite:PATH
    #[arg(value_name = "TO")]
    to: String,
}

impl BackupTask {
    fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let place = StoreArgs { store: Some(self.from.clone()), document: None }.place()?;
        let to = self.to.strip_prefix("sqlite:").unwrap_or(&self.to);
        if to.is_empty() {
            return Err(CommandError::usage("name the new file".to_owned()));
        }
        place.back_up(output_file::reached(Path::new(to))?.path())?;
        surface.print(&format!("{} copied to {}\n", escape::line(&place.shown()), escape::line(to)))?;
        Ok(Exit::Completed)
    }
}

/// Let servers take up the quarantined runs again
///
/// A run is quarantined when processes died of it again and again. Find out first what ended them: `loopctl runs --status
/// quarantined` lists the runs, `loopctl explain RUN` says what is known. The count of their deaths begins anew.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  loopctl store release --store env:LOOPCTL_STORE")]
struct ReleaseTask {
    #[command(flatten)]
    many: ManyRunsArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl ReleaseTask {
    async fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let (journal, _) = self.store.open()?;
        let found = self.many.find(&journal, &[ListedStatus::Quarantined], true, |_| true).await?;
        if self.many.is_dry() {
            surface.print(&found.summary("released"))?;
            return Ok(Exit::Completed);
        }
        // Nobody is asked: servers take the runs up once more, and set them aside again if they must.
        let ids: Vec<String> = found.runs.iter().map(|run| run.run_id.clone()).collect();
        journal.absolve(ids.clone()).await.map_err(CommandError::Store)?;
        let (at_ms, user) = (clock::wall_ms(), acting_user());
        let line = |run| AuditLine::of_run(run, at_ms, AuditAction::Released, user.as_deref());
        journal.note_audit(found.runs.iter().map(line).collect()).await.map_err(CommandError::Store)?;
        let lines: String = ids.iter().map(|id| format!("{}\n", escape::line(id))).collect();
        surface.print(&lines)?;
        surface.say(&format!("{} released{}\n", plural(ids.len(), "run"), found.left()));
        Ok(Exit::Completed)
    }
}

impl CopyTask {
    async fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        let named = |url: &str| StoreArgs { store: Some(url.to_owned()), document: None };
        let (from, to) = (named(&self.from), named(&self.to).place()?);
        let there = from.place()?;
        if !there.exists() {
            return Err(CommandError::usage(format!("there is no store {}", escape::line(&there.shown()))));
        }
        if there.is(&to) {
            return Err(CommandError::usage(format!("{} is the same store", escape::line(&to.shown()))));
        }
        let refused = |fault| match fault {
            CopyFault::Store(fault) => CommandError::Store(fault),
            CopyFault::Refused(why) => CommandError::usage(why),
        };
        // Before either is opened, which may make or migrate it: a copy that is refused changes nothing.
        for store in [&there, &to] {
            store.may_be_copied().map_err(refused)?;
        }
        let pair = StorePair { from: there.open()?, to: to.open()?, project: there.project };
        let copied = pair.copy().await.map_err(refused)?;
        let runs = plural(copied.copied, "run");
        let were = if copied.there == 1 { "was" } else { "were" };
        surface.print(&format!("{runs} copied, {} {were} there\n", copied.there))?;
        if copied.audit_lines > 0 {
            surface.say(&format!("{} of the audit copied\n", plural(copied.audit_lines, "line")));
        }
        if copied.decisions > 0 {
            surface.say(&format!("{} copied that no run has taken yet\n", plural(copied.decisions, "decision")));
        }
        if copied.kept_events > 0 {
            surface.say(&format!("{} copied that the store keeps\n", plural(copied.kept_events, "event")));
        }
        Ok(Exit::Completed)
    }
}

impl StoreCommand {
    /// Performs the task.
    ///
    /// # Errors
    /// When the store can't be used.
    pub async fn perform(&self, surface: &Surface) -> Result<Exit, CommandError> {
        match &self.what {
            StoreTask::Schema(task) => {
                let place = task.store.place()?;
                surface.print(&place.statements()?)?;
                Ok(Exit::Completed)
            }
            StoreTask::Migrate(task) => {
                let place = task.store.place()?;
                drop(place.open()?);
                report(surface, place.examine()?)
            }
            StoreTask::Copy(task) => task.perform(surface).await,
            StoreTask::Backup(task) => task.perform(surface),
            StoreTask::Release(task) => task.perform(surface).await,
            StoreTask::Check(task) => {
                let place = task.store.place()?;
                report(surface, place.examine()?)
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
