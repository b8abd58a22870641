//! `loopctl runs --watch`: the list in a terminal is drawn anew; elsewhere, each run that changed is a line.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::table::{ShownRuns, cost, why};
use super::{RunsCommand, row};
use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::output::{ListOutput, json_line};
use crate::cli::signals::Signals;
use crate::cli::store::StorePlace;
use crate::cli::surface::Surface;
use crate::drive::clock;
use crate::journal::{Journal, ListedStatus, RunSummary};
use crate::trace::units::{plural, rfc3339};
use crate::trace::{Tone, escape};

/// The time between two looks at the store.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);
/// Clears the terminal once; later, each line replaces the one that is there.
const CLEAR: &str = "\u{1b}[2J";
const HOME: &str = "\u{1b}[H";
const CLEAR_TO_END_OF_LINE: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

/// Shows the list until a signal comes or nobody reads it.
///
/// # Errors
/// When there is no store, it refuses the command, or the output can't be written. A store that is away is waited for.
pub async fn watch(command: &RunsCommand, place: &StorePlace, surface: &Surface) -> Result<Exit, CommandError> {
    if !place.exists() {
        return Err(CommandError::usage(format!("there is no store {}", place.shown())));
    }
    let mut signals = Signals::new();
    let mut watched =
        WatchedList { surface: *surface, output: command.output, seen: HashMap::new(), is_cleared: false };
    let mut journal: Option<Arc<dyn Journal>> = None;
    loop {
        let looked = async {
            let journal = match &journal {
                Some(journal) => journal,
                None => journal.insert(place.open()?),
            };
            Ok::<_, CommandError>(journal.list(command.filter()).await?)
        };
        let shown = tokio::select! {
            looked = looked => looked,
            () = signals.next() => return Ok(Exit::Completed),
        };
        let is_read = match shown {
            Ok(runs) => watched.show(&runs)?,
            Err(CommandError::Store(fault)) if fault.is_away() => watched.away(&fault.to_string())?,
            Err(failure) => return Err(failure),
        };
        if !is_read {
            return Ok(Exit::Completed);
        }
        tokio::select! {
            () = clock::sleep(WATCH_INTERVAL) => {}
            () = signals.next() => return Ok(Exit::Completed),
        }
    }
}

/// What was shown of a list.
struct WatchedList {
    surface: Surface,
    output: ListOutput,
    /// What was last said of each run in lines.
    seen: HashMap<String, String>,
    is_cleared: bool,
}

impl WatchedList {
    /// Shows the runs; returns whether somebody reads it.
    fn show(&mut self, runs: &[RunSummary]) -> Result<bool, CommandError> {
        match self.output {
            ListOutput::Human if self.surface.out_terminal => self.draw(runs),
            output => self.changed(runs, output),
        }
    }

    /// The store can't be reached: what is shown is old.
    fn away(&mut self, why: &str) -> Result<bool, CommandError> {
        let line = self.surface.line(Tone::Warn, "warning", why);
        if self.output == ListOutput::Human && self.surface.out_terminal {
            let frame = format!("{HOME}{}{CLEAR_TO_END_OF_LINE}\n", line.trim_end());
            self.surface.print_bytes(frame.as_bytes())?;
        } else {
            self.surface.say(&line);
        }
        Ok(true)
    }

    /// Draws the list over the one before.
    fn draw(&mut self, runs: &[RunSummary]) -> Result<bool, CommandError> {
        // The window may have changed.
        let surface = Surface::of_process();
        let now_ms = clock::wall_ms();
        let table = ShownRuns { look: surface.out, columns: surface.out_columns, now_ms }.shown(runs);
        let rows = surface.out_rows.unwrap_or(usize::MAX).saturating_sub(2).max(1);
        let mut lines = vec![surface.out.paint(Tone::Dim, &summed_up(runs, now_ms))];
        let all = table.lines().count();
        lines.extend(table.lines().take(if all > rows { rows.saturating_sub(1) } else { rows }).map(str::to_owned));
        if all > rows {
            let more = format!("… {} more; --limit, --failed or --loop show fewer", plural(all - (rows - 1), "line"));
            lines.push(surface.out.paint(Tone::Dim, &more));
        }
        let clear = if std::mem::replace(&mut self.is_cleared, true) { "" } else { CLEAR };
        let lines: String = lines.iter().map(|line| format!("{line}{CLEAR_TO_END_OF_LINE}\n")).collect();
        surface.print_bytes(format!("{clear}{HOME}{lines}{CLEAR_BELOW}").as_bytes())?;
        Ok(true)
    }

    /// Prints the runs that are new or not as they were, the oldest first.
    fn changed(&mut self, runs: &[RunSummary], output: ListOutput) -> Result<bool, CommandError> {
        let now_ms = clock::wall_ms();
        let mut text = String::new();
        for run in runs.iter().rev() {
            let status = run.listed_status();
            let state = format!("{}\n{}\n{:?}", status.word(), why(run, now_ms), run.waits_since_ms);
            // Of a model that is away, the time changes with each look.
            let state = if run.model_wait.is_some() { "away".to_owned() } else { state };
            if self.seen.insert(run.run_id.clone(), state.clone()).as_ref() == Some(&state) {
                continue;
            }
            text.push_str(&match output {
                ListOutput::Json => json_line(&row(run))?,
                ListOutput::Human => line(run, now_ms),
            });
        }
        // Runs that left the list come back as new ones.
        self.seen.retain(|run_id, _| runs.iter().any(|run| run.run_id == *run_id));
        Ok(self.surface.print_while_read(&text)?)
    }
}

/// A run that changed, in a line.
fn line(run: &RunSummary, now_ms: i64) -> String {
    let about = run.title.as_deref().map(escape::line).unwrap_or_default();
    let fields = [
        rfc3339(run.updated_at_ms),
        escape::line(&run.run_id).into_owned(),
        escape::line(&run.loop_name).into_owned(),
        run.listed_status().word().to_owned(),
        cost(run),
        about.into_owned(),
        why(run, now_ms).into_owned(),
    ];
    fields.into_iter().filter(|field| !field.is_empty()).collect::<Vec<_>>().join("  ") + "\n"
}

/// The number of runs of each status.
fn summed_up(runs: &[RunSummary], now_ms: i64) -> String {
    let counts = ListedStatus::ALL.into_iter().filter_map(|status| {
        let count = runs.iter().filter(|run| run.listed_status() == status).count();
        (count > 0).then(|| format!("{count} {}", status.word()))
    });
    let counts: Vec<String> = counts.collect();
    let shown = if counts.is_empty() { "no such runs".to_owned() } else { counts.join(", ") };
    format!("{shown}; {}; Ctrl-C ends", rfc3339(now_ms))
}
