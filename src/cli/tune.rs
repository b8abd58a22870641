//! `loopctl tune`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::output::{ListOutput, json_line};
use super::output_file;
use super::recorded_run;
use super::store::{StoreArgs, StorePlace};
use super::surface::Surface;
use crate::drive::engine::Engine;
use crate::drive::fold;
use crate::engine::digest::Sha256;
use crate::engine::outcome::Status;
use crate::journal::{RunFilter, RunSummary};
use crate::program::Program;
use crate::replay::paired_fold::used;
use crate::replay::patterns::stops;
use crate::trace::html;
use crate::trace::tuning::{ThresholdTally, Tuning};
use crate::trace::units::{count, plural};
use crate::trace::{Look, Tone, escape};

/// Judge a setting by the runs of a store: what each threshold of `on_stuck` would have stopped
///
/// A false stop is a run that a threshold would have stopped, and that completed later. The tokens that are saved are those
/// that the other stopped runs used after the stop. Nothing is asked or called.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl tune on_stuck --loop triage
  loopctl tune on_stuck --from 2 --to 12 --html tuning.html")]
pub struct TuneCommand {
    /// The setting
    #[arg(value_enum)]
    pub setting: Setting,
    /// Only runs of this loop
    #[arg(long = "loop", value_name = "NAME")]
    pub loop_name: Option<String>,
    /// The lowest threshold
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub from: u32,
    /// The highest threshold
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub to: u32,
    /// The maximum number of runs, the newest first; 0 judges all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub limit: usize,
    /// Write a page with a plot to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub store: StoreArgs,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: ListOutput,
}

/// A setting that can be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Setting {
    /// The threshold of stuck detection, `on_stuck.iterations`
    #[value(name = "on_stuck")]
    OnStuck,
}

/// The maximum number of programs that are kept.
const MAX_PROGRAMS: usize = 64;

impl TuneCommand {
    /// Judges the thresholds.
    ///
    /// # Errors
    /// When the store can't be read, or the page can't be written.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let Setting::OnStuck = self.setting;
        if self.from > self.to {
            return Err(CommandError::usage("--from is above --to"));
        }
        let (journal, place) = self.store.open()?;
        let filter = RunFilter { loop_name: self.loop_name.clone(), limit: self.limit, ..RunFilter::default() };
        let runs = journal.list(filter).await?;
        let tally = |iterations| ThresholdTally { iterations, ..ThresholdTally::default() };
        let mut judged = JudgedRuns {
            engine: recorded_run::reader(journal),
            place,
            programs: HashMap::new(),
            tuning: Tuning {
                loop_name: self.loop_name.clone(),
                runs: 0,
                completed: 0,
                not_judged: 0,
                thresholds: (self.from..=self.to).map(tally).collect(),
            },
        };
        for run in runs.iter().filter(|run| matches!(run.status, Status::Completed | Status::Failed)) {
            if judged.judge(run).await.is_err() {
                judged.tuning.not_judged += 1;
            }
        }
        let tuning = judged.tuning;
        if let Some(file) = &self.html {
            let page = html::tuning(&tuning);
            output_file::write(file, &page)?;
        }
        match self.output {
            ListOutput::Json => surface.print(&json_line(&tuning)?)?,
            ListOutput::Human => surface.print(&table(&surface.out, &tuning))?,
        }
        Ok(Exit::Completed)
    }
}

/// The runs that were judged so far.
struct JudgedRuns {
    engine: Engine,
    place: StorePlace,
    /// The programs of runs without stuck detection, with the threshold that each of them had.
    programs: HashMap<Vec<Sha256>, (Arc<Program>, u32)>,
    tuning: Tuning,
}

impl JudgedRuns {
    async fn judge(&mut self, run: &RunSummary) -> Result<(), String> {
        let events = self.engine.events(&run.run_id).await.map_err(|fault| fault.to_string())?;
        let documents = fold::documents(&events).unwrap_or_default();
        let key: Vec<Sha256> = documents.iter().map(|document| document.text.sha256()).collect();
        let (program, threshold) = match self.programs.get(&key) {
            Some(known) => known.clone(),
            None => {
                let mut threshold = 0;
                let project = self.place.project.clone();
                let quiet = recorded_run::recorded_with(&run.run_id, &events, project, |program| {
                    if let Some(properties) = program.properties_mut() {
                        threshold = std::mem::replace(&mut properties.on_stuck.iterations, u32::MAX);
                    }
                });
                let program = quiet.map_err(|fault| fault.to_string())?;
                if self.programs.len() >= MAX_PROGRAMS {
                    self.programs.clear();
                }
                self.programs.insert(key, (Arc::clone(&program), threshold));
                (program, threshold)
            }
        };
        // A workflow thinks nothing.
        if program.is_flow() {
            return Ok(());
        }
        let thresholds: Vec<u32> = self.tuning.thresholds.iter().map(|row| row.iterations).collect();
        let (state, stops) = stops(&program, &events, &thresholds)?;
        let (completed, total) = (run.status == Status::Completed, used(&state));
        self.tuning.runs += 1;
        self.tuning.completed += usize::from(completed);
        for (row, stop) in self.tuning.thresholds.iter_mut().zip(stops) {
            row.in_use += usize::from(row.iterations == threshold);
            let Some(stop) = stop else { continue };
            row.stopped += 1;
            if completed {
                row.false_stops += 1;
            } else {
                row.tokens_saved = row.tokens_saved.saturating_add(total.saturating_sub(stop.tokens));
            }
        }
        Ok(())
    }
}

fn table(look: &Look, tuning: &Tuning) -> String {
    let of = tuning.loop_name.as_ref().map_or_else(String::new, |name| format!(" of {}", escape::line(name)));
    let mut shown = format!("{}{of} that ended, {} completed", plural(tuning.runs, "run"), tuning.completed);
    if tuning.not_judged > 0 {
        shown.push_str(&format!("; {} can't be judged", plural(tuning.not_judged, "run")));
    }
    shown.push_str("\n\n");
    shown.push_str(&look.paint(Tone::Dim, "ON_STUCK  STOPPED  FALSE STOPS  TOKENS SAVED  RUNS WITH IT"));
    shown.push('\n');
    for row in &tuning.thresholds {
        let tone = if row.false_stops > 0 { Tone::Warn } else { Tone::Bold };
        let line = format!(
            "{:>8}  {:>7}  {:>11}  {:>12}  {:>12}",
            row.iterations,
            row.stopped,
            row.false_stops,
            count(row.tokens_saved),
            row.in_use
        );
        shown.push_str(&look.paint(tone, &line));
        shown.push('\n');
    }
    shown
}
