//! `loopctl export`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::output_file;
use super::recorded_run::resolve;
use super::store::StoreArgs;
use super::surface::Surface;
use crate::drive::export::{Export, ExportFault};
use crate::journal::{Journal, RunFilter};
use crate::trace::escape;
use crate::trace::units::plural;

/// Write runs to a file, with the runs that they called
///
/// The file has a line of JSON for each event, with a checksum; `loopctl import` reads it into another store. What is secret by its
/// name or its form is hidden, as in a trace. All else that the runs read and wrote is in it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl export triage-7k2m9q4x --output run.jsonl
  loopctl export --loop triage --output runs.jsonl")]
pub struct ExportCommand {
    /// The runs: an id, the beginning of one, `last` or `last:LOOP`
    #[arg(value_name = "RUN", required_unless_present = "loops")]
    runs: Vec<String>,
    /// All runs of this loop; repeatable
    #[arg(long = "loop", value_name = "NAME", conflicts_with = "runs")]
    loops: Vec<String>,
    /// Write this new file, in place of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Do not hide what is secret by its name or its form
    #[arg(long)]
    with_secrets: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl ExportCommand {
    /// Writes the runs.
    ///
    /// # Errors
    /// When a run can't be read, or the file can't be written.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let (journal, place) = self.store.open()?;
        let mut run_ids = Vec::new();
        for given in &self.runs {
            let run_id = resolve(&*journal, given, &place.shown()).await?;
            if !run_ids.contains(&run_id) {
                run_ids.push(run_id);
            }
        }
        for name in &self.loops {
            run_ids.extend(of_loop(&*journal, name, &place.shown()).await?);
        }
        let export = Export { journal, project: place.project.clone(), redacted: !self.with_secrets };
        let runs = match &self.output {
            None => {
                let mut sink = |line: &str| surface.print_bytes(line.as_bytes()).map_err(|error| error.0);
                export.write(&run_ids, &mut sink).await.map_err(|fault| refused(fault, Path::new("stdout")))?
            }
            Some(file) => {
                let runs = write_file(&export, &run_ids, file).await?;
                surface.say(&format!(
                    "{} written to {}\n",
                    plural(runs, "run"),
                    escape::line(&file.display().to_string())
                ));
                runs
            }
        };
        tracing::debug!(runs, "exported");
        Ok(Exit::Completed)
    }
}

/// The runs of a loop, the oldest first.
async fn of_loop(journal: &dyn Journal, name: &str, store: &str) -> Result<Vec<String>, CommandError> {
    let filter = RunFilter { loop_name: Some(name.to_owned()), oldest_first: true, ..RunFilter::default() };
    let runs = journal.list(filter).await?;
    if runs.is_empty() {
        return Err(CommandError::usage(format!("there is no run of {} in {store}", escape::line(name))));
    }
    Ok(runs.into_iter().map(|run| run.run_id).collect())
}

/// Writes a new file: nobody finds half of it under its name.
async fn write_file(export: &Export, run_ids: &[String], file: &Path) -> Result<u64, CommandError> {
    let failed = |error: &std::io::Error| CommandError::file("written", file, error);
    let reached = output_file::reached(file)?;
    let file = reached.path();
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut part = std::io::BufWriter::new(tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?);
    let mut sink = |line: &str| part.write_all(line.as_bytes());
    let runs = export.write(run_ids, &mut sink).await.map_err(|fault| refused(fault, file))?;
    let part = part.into_inner().map_err(|error| failed(error.error()))?;
    part.as_file().sync_all().map_err(|error| failed(&error))?;
    part.persist_noclobber(file).map_err(|error| failed(&error.error))?;
    Ok(runs)
}

fn refused(fault: ExportFault, file: &Path) -> CommandError {
    match fault {
        ExportFault::Store(fault) => fault.into(),
        ExportFault::Run(fault) => fault.into(),
        ExportFault::Refused(why) => CommandError::usage(why),
        fault @ ExportFault::SecretDecides(_) => CommandError::usage_help(
            fault.to_string(),
            "--with-secrets writes the run as it is: give the file to nobody who may not see them",
        ),
        ExportFault::Write(error) => CommandError::file("written", file, &error),
    }
}
