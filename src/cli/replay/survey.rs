//! The runs of a store replayed: a table, and how many come out in each way.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use super::run_verdict::{sentence, tone, verdict};
use super::{Reader, Replay, ReplayCommand};
use crate::cli::exit::Exit;
use crate::cli::failure::CommandError;
use crate::cli::output::{ListOutput, json_line};
use crate::cli::recorded_run;
use crate::cli::surface::Surface;
use crate::diagnostic::Source;
use crate::drive::fold;
use crate::engine::digest::Sha256;
use crate::engine::event::Event;
use crate::engine::outcome::Status;
use crate::journal::{RunFilter, RunSummary};
use crate::program::Program;
use crate::replay::verdict::{ReplayKind, ReplayVerdict};
use crate::trace::layout::{cut, pad};
use crate::trace::units::plural;
use crate::trace::{Look, Tone, escape};

/// A run, and what came of it.
struct ReplayedRun {
    summary: RunSummary,
    outcome: Replay,
}

#[derive(Serialize)]
struct JsonReplays<'a> {
    runs: usize,
    counts: Vec<JsonCount>,
    replays: Vec<JsonReplay<'a>>,
}

#[derive(Serialize)]
struct JsonCount {
    verdict: &'static str,
    runs: usize,
    completed: usize,
    failed: usize,
}

#[derive(Serialize)]
struct JsonReplay<'a> {
    run_id: &'a str,
    loop_name: &'a str,
    status: Status,
    #[serde(flatten)]
    verdict: Option<&'a ReplayVerdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_replayed: Option<&'a str>,
}

/// The recorded programs of runs: runs of the same documents share one.
#[derive(Default)]
pub(in crate::cli) struct RecordedPrograms(HashMap<Vec<Sha256>, Arc<Program>>);

/// The maximum number of programs that are kept.
const MAX_PROGRAMS: usize = 64;

impl RecordedPrograms {
    pub fn of(&mut self, project: Option<Source>, run: &str, events: &[Event]) -> Result<Arc<Program>, String> {
        let mut key: Vec<Sha256> =
            fold::documents(events).unwrap_or_default().iter().map(|one| one.text.sha256()).collect();
        key.extend(fold::step_of(events).map(|at| Sha256::of(&at)));
        if let Some(known) = self.0.get(&key) {
            return Ok(Arc::clone(known));
        }
        let program = recorded_run::recorded(run, events, project).map_err(|fault| fault.to_string())?;
        if self.0.len() >= MAX_PROGRAMS {
            self.0.clear();
        }
        self.0.insert(key, Arc::clone(&program));
        Ok(program)
    }
}

/// Replays the runs of a store, and reports them.
pub(super) async fn perform(command: &ReplayCommand, reader: Reader, surface: &Surface) -> Result<Exit, CommandError> {
    let loop_name = command.loop_name.clone().or_else(|| reader.against.as_ref().map(|program| program.name.clone()));
    let filter = RunFilter { loop_name, limit: command.limit, ..RunFilter::default() };
    let runs = reader.engine.journal().list(filter).await?;
    let mut programs = RecordedPrograms::default();
    let mut replayed = Vec::with_capacity(runs.len());
    for summary in runs {
        let outcome = replay(&reader, &mut programs, &summary.run_id).await;
        replayed.push(ReplayedRun { summary, outcome });
    }
    match command.output {
        ListOutput::Json => surface.print(&json(&replayed)?)?,
        ListOutput::Human => surface.print(&table(&surface.out, &replayed, reader.against.is_some()))?,
    }
    let differs = reader.against.is_none()
        && replayed.iter().any(|run| run.outcome.as_ref().map_or(true, |verdict| verdict.kind != ReplayKind::Same));
    let outcomes: Vec<Replay> = replayed.into_iter().map(|run| run.outcome).collect();
    Ok(if differs { Exit::Failed } else { command.exit(&outcomes) })
}

async fn replay(reader: &Reader, programs: &mut RecordedPrograms, run: &str) -> Replay {
    let events = reader.engine.events(run).await.map_err(|fault| fault.to_string())?;
    let recorded = programs.of(reader.place.project.clone(), run, &events)?;
    if let Some(against) = &reader.against {
        return verdict(&recorded, against, &events);
    }
    let refolded = reader.engine.refold(&recorded, run).await.map_err(|fault| fault.to_string())?;
    match refolded.differs {
        None => Ok(ReplayVerdict::same(refolded.events)),
        Some(why) => Err(why),
    }
}

fn json(runs: &[ReplayedRun]) -> Result<String, CommandError> {
    let replays = runs.iter().map(|run| JsonReplay {
        run_id: &run.summary.run_id,
        loop_name: &run.summary.loop_name,
        status: run.summary.status,
        verdict: run.outcome.as_ref().ok(),
        not_replayed: run.outcome.as_ref().err().map(String::as_str),
    });
    let counts = counts(runs).into_iter().map(|(name, of)| JsonCount {
        verdict: name.0,
        runs: of.len(),
        completed: of.iter().filter(|run| run.summary.status == Status::Completed).count(),
        failed: of.iter().filter(|run| run.summary.status == Status::Failed).count(),
    });
    json_line(&JsonReplays { runs: runs.len(), counts: counts.collect(), replays: replays.collect() })
}

/// The runs by what came of them: the word for programs and that for people.
fn counts(runs: &[ReplayedRun]) -> Vec<((&'static str, &'static str), Vec<&ReplayedRun>)> {
    let of = |kind: Option<ReplayKind>| -> Vec<&ReplayedRun> {
        runs.iter().filter(|run| run.outcome.as_ref().ok().map(|verdict| verdict.kind) == kind).collect()
    };
    let named = ReplayKind::ALL.into_iter().map(|kind| ((kind.name(), kind.words()), of(Some(kind))));
    let other = [(("not_replayed", "not replayed"), of(None))];
    named.chain(other).filter(|(_, runs)| !runs.is_empty()).collect()
}

fn table(look: &Look, runs: &[ReplayedRun], edited: bool) -> String {
    let ids: Vec<_> = runs.iter().map(|run| escape::line(&run.summary.run_id)).collect();
    let id_width = ids.iter().map(|id| id.width()).max().unwrap_or(0).max(3);
    let room = look.width.saturating_sub(id_width + 41).max(16);
    let head = format!("{}  STATUS     VERDICT                  WHY", pad("RUN", id_width));
    let mut shown = if runs.is_empty() { String::new() } else { look.paint(Tone::Dim, &head) + "\n" };
    for (run, id) in runs.iter().zip(&ids) {
        let (word, of, why) = match &run.outcome {
            Ok(verdict) => (verdict.kind.words(), tone(verdict.kind), sentence(verdict)),
            Err(why) => ("not replayed", Tone::Bad, why.clone()),
        };
        let line = format!(
            "{}  {}  {}  {}",
            pad(id, id_width),
            pad(run.summary.status.word(), 9),
            look.paint(of, &pad(word, 23)),
            look.paint(Tone::Dim, &cut(&escape::line(&why), room)),
        );
        shown.push_str(line.trim_end());
        shown.push('\n');
    }
    shown.push_str(&format!("\n{}{}", plural(runs.len(), "run"), if runs.is_empty() { "" } else { ":" }));
    let parts: Vec<String> = counts(runs).into_iter().map(|((_, words), of)| counted(words, &of, edited)).collect();
    shown.push_str(&format!(" {}", parts.join("; ")));
    format!("{}\n", shown.trim())
}

/// `3 ends earlier (2 of them had failed)`.
fn counted(words: &str, of: &[&ReplayedRun], edited: bool) -> String {
    let failed = of.iter().filter(|run| run.summary.status == Status::Failed).count();
    match (failed, edited) {
        (0, _) | (_, false) => format!("{} {words}", of.len()),
        _ => format!("{} {words} ({failed} of them had failed)", of.len()),
    }
}
