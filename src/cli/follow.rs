//! `loopctl trace --follow`: the story of a run while another process executes it, with the runs that it calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::exit::Exit;
use super::failure::CommandError;
use super::progress::Story;
use super::recorded_run;
use super::signals::Signals;
use super::surface::Surface;
use crate::diagnostic::Source;
use crate::drive::clock;
use crate::drive::fault::Fault;
use crate::drive::fold;
use crate::engine::event::{Event, EventKind};
use crate::engine::notice::notices;
use crate::engine::state::{Phase, State};
use crate::journal::{Journal, RunFilter, StoreError};
use crate::program::Program;
use crate::trace::text::Pieces;
use crate::trace::{Tone, escape};

/// The time between two looks at the store.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);
/// The same, while the store is away.
const AWAY_INTERVAL: Duration = Duration::from_secs(1);
/// The bytes of events of a run that are read at a time.
const PAGE_BYTES: usize = 1024 * 1024;
/// The maximum number of called runs that are followed at once; further ones are followed once others have ended.
const MAX_CALLED: usize = 64;

/// Follows a run to its end; the exit code is that of the run. A pause ends nothing. A store that is away is waited for.
///
/// # Errors
/// When a journal can't be read, or the output can't be written.
pub async fn follow(
    run_id: &str,
    journal: &dyn Journal,
    project: Option<Source>,
    surface: &Surface,
) -> Result<Exit, CommandError> {
    let mut signals = Signals::new();
    let mut followed = FollowedFamily {
        root: run_id.to_owned(),
        project,
        surface: *surface,
        runs: BTreeMap::from([(run_id.to_owned(), ShownRun::default())]),
        ended: BTreeSet::new(),
        newest: None,
        shown_last: run_id.to_owned(),
    };
    let mut is_away = false;
    loop {
        let looked = tokio::select! {
            looked = followed.look(journal) => looked,
            () = signals.next() => return Ok(Exit::Cancelled),
        };
        let wait = match looked {
            Ok(Some(exit)) => return Ok(exit),
            Ok(None) => {
                is_away = false;
                FOLLOW_INTERVAL
            }
            Err(CommandError::Fault { fault: Fault::Store(fault), .. } | CommandError::Store(fault))
                if fault.is_away() =>
            {
                if !std::mem::replace(&mut is_away, true) {
                    surface.say(&surface.line(Tone::Warn, "warning", &format!("{fault}; it is looked at again")));
                }
                AWAY_INTERVAL
            }
            Err(failure) => return Err(failure),
        };
        tokio::select! {
            () = clock::sleep(wait) => {}
            () = signals.next() => return Ok(Exit::Cancelled),
        }
    }
}

/// A run with those that it called, as far as they were shown.
struct FollowedFamily {
    root: String,
    project: Option<Source>,
    surface: Surface,
    /// Those that are followed.
    runs: BTreeMap<String, ShownRun>,
    /// The called ones that have ended and were shown whole.
    ended: BTreeSet<String>,
    /// The called run that was found last.
    newest: Option<String>,
    /// The run of which something was shown last.
    shown_last: String,
}

/// A run, as far as it was shown.
#[derive(Default)]
struct ShownRun {
    events: Vec<Event>,
    folded: Option<(Arc<Program>, State, Story)>,
}

impl FollowedFamily {
    /// Shows what is new; the exit code once the run has ended.
    async fn look(&mut self, journal: &dyn Journal) -> Result<Option<Exit>, CommandError> {
        self.find_called(journal).await?;
        // What a run called comes before what followed in the run.
        let ids: Vec<String> = self.runs.keys().rev().cloned().collect();
        for run_id in ids {
            if !self.read(journal, &run_id).await? {
                return Ok(Some(Exit::Completed));
            }
        }
        let root = self.runs.get(&self.root).and_then(|run| run.folded.as_ref());
        let ended = root.filter(|(_, state, _)| matches!(state.phase, Phase::Ended(_)));
        Ok(ended.map(|(_, state, _)| Exit::of(state)))
    }

    /// Finds the runs that were called since.
    async fn find_called(&mut self, journal: &dyn Journal) -> Result<(), CommandError> {
        let room = MAX_CALLED.saturating_sub(self.runs.len());
        if room == 0 {
            return Ok(());
        }
        let filter = RunFilter {
            called: true,
            id_prefix: Some(format!("{}.", self.root)),
            after: self.newest.clone(),
            oldest_first: true,
            limit: room,
            ..RunFilter::default()
        };
        for run in journal.list(filter).await? {
            self.newest = Some(run.run_id.clone());
            if run.parent_run_id.is_some() && !self.ended.contains(&run.run_id) {
                self.runs.entry(run.run_id).or_default();
            }
        }
        Ok(())
    }

    /// Shows the events of a run that are new; returns whether somebody reads it.
    async fn read(&mut self, journal: &dyn Journal, run_id: &str) -> Result<bool, CommandError> {
        let Some(run) = self.runs.get_mut(run_id) else { return Ok(true) };
        let mut text = String::new();
        loop {
            let from = u64::try_from(run.events.len()).unwrap_or(u64::MAX);
            let read = journal.read_from(run_id, from, PAGE_BYTES).await;
            let new = match read {
                // A run is listed before its first event is there for every reader.
                Err(StoreError::NoSuchRun(_)) if run_id != self.root => Vec::new(),
                read => read?,
            };
            if new.is_empty() {
                break;
            }
            let texts = journal.texts(run_id).await?;
            for event in fold::events(run_id, &new, &texts)? {
                text.push_str(&run.take(run_id, event, self.project.as_ref(), &self.surface)?);
            }
        }
        let has_ended = matches!(&run.folded, Some((_, state, _)) if matches!(state.phase, Phase::Ended(_)));
        if has_ended && run_id != self.root {
            self.runs.remove(run_id);
            self.ended.insert(run_id.to_owned());
        }
        self.show(run_id, &text)
    }

    /// Prints what is new of a run, under its name if something of another one came before.
    fn show(&mut self, run_id: &str, text: &str) -> Result<bool, CommandError> {
        if text.is_empty() {
            return Ok(true);
        }
        let is_other = std::mem::replace(&mut self.shown_last, run_id.to_owned()) != run_id;
        let name = self.surface.out.paint(Tone::Accent, &escape::line(run_id));
        let head = if is_other { format!("\n── {name}\n") } else { String::new() };
        Ok(self.surface.print_while_read(&format!("{head}{text}"))?)
    }
}

impl ShownRun {
    /// Takes the next event; returns what is shown of it.
    fn take(
        &mut self,
        run_id: &str,
        event: Event,
        project: Option<&Source>,
        surface: &Surface,
    ) -> Result<String, CommandError> {
        let is_new_document = matches!(event.kind, EventKind::NewDocument(_));
        self.events.push(event);
        let (program, mut state, mut story) = match self.folded.take() {
            Some(folded) if !is_new_document => folded,
            folded => {
                // From here on it follows another document, which its earlier events fit too.
                let program = recorded_run::recorded(run_id, &self.events, project.cloned())?;
                let earlier = self.events.len().saturating_sub(1);
                let before = self.events.get(..earlier).unwrap_or_default().to_vec();
                let state = fold::fold(&program, run_id, before)?;
                let pieces = Pieces { look: surface.out, shorten: true };
                let story = folded.map(|(_, _, story)| story);
                let story = story.unwrap_or_else(|| Story::of(pieces, &program));
                (program, state, story)
            }
        };
        let Some(event) = self.events.last().cloned() else { return Ok(String::new()) };
        let number = self.events.len().saturating_sub(1);
        let shown = notices(&program, &mut state, event).map_err(|refused| Fault::Journal {
            run: run_id.to_owned(),
            reason: format!("event {number} does not fit: {refused}"),
        })?;
        let text = shown.iter().map(|notice| story.on(notice)).collect();
        self.folded = Some((program, state, story));
        Ok(text)
    }
}
