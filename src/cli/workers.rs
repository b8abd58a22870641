//! `loopctl workers`.

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::output::{ListOutput, json_line};
use super::store::StoreArgs;
use super::surface::Surface;
use crate::journal::Worker;
use crate::trace::layout::pad;
use crate::trace::units::{duration, rfc3339};
use crate::trace::{Tone, escape};

/// List the processes that execute the runs of a store
///
/// Shows the servers and commands that live, and those that died with runs that nobody took yet: the end of their names, their
/// machines, processes and addresses, their versions, the digests of the folders that they serve, how many runs each has, how
/// long ago it renewed its lease, and how far its clock is ahead of that of the store.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl workers --store env:LOOPCTL_STORE
  loopctl workers --output json | jq -r '.[].folder'")]
pub struct WorkersCommand {
    #[command(flatten)]
    store: StoreArgs,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    output: ListOutput,
}

impl WorkersCommand {
    /// Lists the processes.
    ///
    /// # Errors
    /// When there is no store, or it can't be read.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let (journal, place) = self.store.open()?;
        let mut workers = journal.workers().await?;
        workers.retain(|worker| !worker.is_self);
        match self.output {
            ListOutput::Json => surface.print(&json_line(&workers)?)?,
            ListOutput::Human if workers.is_empty() => {
                surface.say(&format!("nobody executes runs of {}\n", escape::line(&place.shown())));
            }
            ListOutput::Human => surface.print(&table(&workers, surface))?,
        }
        Ok(Exit::Completed)
    }
}

/// The processes as a table.
fn table(workers: &[Worker], surface: &Surface) -> String {
    const HEAD: [&str; 10] =
        ["WORKER", "HOST", "PROCESS", "ADDRESS", "VERSION", "FOLDER", "RUNS", "HEARTBEAT", "SINCE", "CLOCK"];
    let rows: Vec<[String; 10]> = workers.iter().map(cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(String::len);
        cells.chain(HEAD.get(column).map(|head| head.len())).max().unwrap_or(0)
    };
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells.iter().enumerate().map(|(at, cell)| pad(cell, width(at))).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut shown = surface.out.paint(Tone::Dim, &line(&HEAD.map(str::to_owned))) + "\n";
    for row in &rows {
        shown.push_str(&line(row));
        shown.push('\n');
    }
    shown
}

/// The digits of a name that no other worker of a store is likely to have: those before them are its time.
const NAME_DIGITS: usize = 12;

fn cells(worker: &Worker) -> [String; 10] {
    let or_none =
        |text: &Option<String>| text.as_deref().map_or("-".to_owned(), |text| escape::line(text).into_owned());
    let folder = worker.folder.as_ref().map(|folder| folder.chars().take(12).collect());
    let heartbeat = match (worker.is_alive, worker.silent_ms) {
        (true, Some(ms)) => format!("{} s ago", ms / 1_000),
        (true, None) => "alive".to_owned(),
        (false, _) => "dead".to_owned(),
    };
    let name = worker.name.len().checked_sub(NAME_DIGITS).and_then(|from| worker.name.get(from..));
    let clock = worker.clock_ahead_ms.map(|ms| match ms {
        0 => "the store's".to_owned(),
        ahead if ahead > 0 => format!("{} ahead", duration(ahead.unsigned_abs())),
        behind => format!("{} behind", duration(behind.unsigned_abs())),
    });
    [
        escape::line(name.unwrap_or(&worker.name)).into_owned(),
        or_none(&worker.host),
        worker.process.map_or_else(|| "-".to_owned(), |process| process.to_string()),
        or_none(&worker.address),
        or_none(&worker.version),
        or_none(&folder),
        worker.driven.to_string(),
        heartbeat,
        rfc3339(worker.since_ms),
        or_none(&clock),
    ]
}
