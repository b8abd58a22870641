//! Lines of runs, from the `concurrency` of a document: a run begins its first step, and one that had ended continues, when it
//! has a place. While it has none, nobody drives it, and nothing but its row says that it waits.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::fault::Fault;
use super::fold;
use super::run_result::Finished;
use super::stop::Stop;
use super::world::{Engine, Resume, Watch};
use crate::journal::{CancelRequest, LineRule, NewRunLine, PlaceInLine, RunAhead, StoreError};
use loopctl_engine::digest::Sha256;
use loopctl_engine::event::{Event, EventKind};
use loopctl_engine::outcome::Status;
use loopctl_engine::state::{Phase, State};
use loopctl_lang::language::concurrency::WhenFull;
use loopctl_lang::program::Program;
use loopctl_lang::program::bind::refused_input;

/// The interval of the looks at a line.
const LINE_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How often a driver looks at the runs that it ends, before it leaves its own run for a later driver: it holds a slot meanwhile.
const MOST_REPLACING_LOOKS: u32 = 8;

/// The line that a new run joins: that of its organisation, its loop or workflow and its key. A run that is a step of another one, or a call
/// of it (`is_below`), joins none.
///
/// # Errors
/// When the input has no such key.
pub(super) fn of_new(
    program: &Program,
    input: &Value,
    org: Option<&str>,
    is_below: bool,
) -> Result<Option<Box<NewRunLine>>, Fault> {
    let rule = program.concurrency.as_ref().filter(|_| !is_below);
    let Some(rule) = rule else { return Ok(None) };
    let refused = |why: String| Fault::Diagnostics(refused_input(program, &rule.pointer(), why));
    let key = rule.key_of(input).map_err(refused)?;
    let line = Sha256::of_parts(|part| {
        // With their lengths: other parts never give the same bytes.
        for text in [org.unwrap_or_default(), program.name.as_str(), key.as_deref().unwrap_or_default()] {
            part(&format!("{}:", text.len()));
            part(text);
        }
        part(if key.is_some() { "key" } else { "" });
    });
    let when_full = match rule.when_full {
        WhenFull::Wait => LineRule::Wait,
        WhenFull::Refuse => LineRule::Refuse,
        WhenFull::Replace => LineRule::Replace,
    };
    Ok(Some(Box::new(NewRunLine { line: line.to_string(), limit: rule.limit, rule: when_full })))
}

/// The line that a run joins which comes from another store: that of a new run with its input. It is neither refused, nor does it end
/// a run of this store while it is open: it waits.
///
/// # Errors
/// When its input has no such key.
pub(super) fn of_imported(
    program: &Program,
    state: &State,
    org: Option<&str>,
    is_below: bool,
) -> Result<Option<Box<NewRunLine>>, Fault> {
    let line = of_new(program, &state.header.input.value, org, is_below)?;
    let may_replace = matches!(state.phase, Phase::Ended(_));
    Ok(line.map(|line| match line.rule {
        LineRule::Replace if may_replace => line,
        _ => Box::new(NewRunLine { rule: LineRule::Wait, ..*line }),
    }))
}

/// A decision about a run that waits in its line: it asks nothing that can be answered now.
pub(super) fn undecided(line: &PlaceInLine) -> Fault {
    let first = line.ahead.first().map(|ahead| ahead.run_id.as_str()).unwrap_or_default();
    Fault::refused(format!("the run waits for run {first} to end: decide after that"))
}

/// Whether runs of a program may be in a line.
pub(super) fn is_in_line(program: &Program, state: &State) -> bool {
    state.waits_in_line() || program.concurrency.is_some()
}

impl Engine {
    /// The line of a run that has no place in it. Those ahead are ended first, where the run replaces them.
    ///
    /// # Errors
    /// When the store fails, or one ahead can't be ended.
    pub(super) async fn without_place(
        &self,
        program: &Program,
        state: &State,
        watch: &Watch<'_>,
    ) -> Result<Option<PlaceInLine>, Fault> {
        let run_id = &state.header.run_id;
        if !is_in_line(program, state) {
            return Ok(None);
        }
        let mut line = self.line(run_id).await?;
        if line.rule == LineRule::Replace {
            for _ in 0..MOST_REPLACING_LOOKS {
                if line.has_place() || watch.stop.as_ref().is_some_and(Stop::is_asked) {
                    break;
                }
                self.end_ahead(program, run_id, &line.ahead).await?;
                line = self.line(run_id).await?;
                if !line.has_place() {
                    tokio::time::sleep(LINE_POLL_INTERVAL).await;
                }
            }
        }
        Ok(Some(line).filter(|line| !line.has_place()))
    }

    /// Where a run is in its line.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn line(&self, run_id: &str) -> Result<PlaceInLine, Fault> {
        self.world.journal.line(run_id).await.map_err(Fault::Store)
    }

    /// Ends the runs that a run replaces.
    pub(super) async fn end_ahead(&self, program: &Program, run_id: &str, ahead: &[RunAhead]) -> Result<(), Fault> {
        let by = self.find(run_id).await?.and_then(|run| run.token).map(String::from);
        let request = CancelRequest { reason: Some(format!("replaced by run {run_id}")), by };
        for RunAhead { run_id: other, .. } in ahead {
            // Once: its driver has the first request.
            if self.world.journal.cancel_requested(other).await.map_err(Fault::Store)?.is_some() {
                continue;
            }
            let events = self.events(other).await?;
            // Nor again while the steps that follow a cancel run: a second cancel would end them.
            let is_taken =
                |event: &Event| matches!(&event.kind, EventKind::Cancelled(taken) if taken.reason == request.reason);
            if events.iter().any(is_taken) {
                continue;
            }
            let cancelled = if fold::same_document(program, &events).is_ok() {
                self.cancel_here(program, other, &request).await
            } else {
                let recorded = self.recorded(program, other, &events);
                let unread = || Fault::refused(format!("run {other} can't be ended: its document can't be read"));
                self.cancel_here(&*recorded.ok_or_else(unread)?, other, &request).await
            };
            match cancelled {
                // No driver of it does what its end requires.
                Ok(Some(_)) => self.world.launcher.replaced(other),
                // It has ended by itself.
                Ok(None) | Err(Fault::Refused(_) | Fault::Store(StoreError::NoSuchRun(_))) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// Refuses to continue a run that has ended, where it would have to wait and its document says that it is refused then.
    pub(super) async fn may_rejoin(&self, program: &Program, state: &State, resume: &Resume) -> Result<(), Fault> {
        if !resume.reopens() || !is_in_line(program, state) || state.header.caller.is_some() {
            return Ok(());
        }
        let line = self.line(&state.header.run_id).await?;
        match line.ahead.first() {
            Some(first) if line.rule == LineRule::Refuse && !line.has_place() => {
                Err(Fault::LineFull { by: first.run_id.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Waits while a run has no place in its line, and drives it after that. A stop ends the run: nothing was done in it since it
    /// joined the line, and those behind would wait for it.
    pub(super) async fn in_its_turn(
        &self,
        program: &Arc<Program>,
        finished: Finished,
        watch: Watch<'_>,
    ) -> Result<Finished, Fault> {
        let (mut finished, mut reported) = (finished, None);
        loop {
            let state = &finished.state;
            if state.status() != Status::Running || !is_in_line(program, state) {
                return Ok(finished);
            }
            let run_id = state.header.run_id.clone();
            let line = self.line(&run_id).await?;
            if line.has_place() && !state.waits_in_line() && reported.is_none() {
                // Its driver was asked to leave it.
                return Ok(finished);
            }
            if watch.stop.as_ref().is_some_and(Stop::is_asked) {
                return self.left_waiting(program, finished, &line).await;
            }
            if line.has_place() || line.rule == LineRule::Replace {
                finished = match Box::pin(self.resumed(program, &run_id, Resume::default(), watch.clone())).await {
                    Err(Fault::Store(StoreError::Driven(_))) => self.seen_again(program, &run_id).await?,
                    finished => finished?,
                };
            }
            let first = line.ahead.first().filter(|_| !line.has_place()).map(|ahead| ahead.run_id.clone());
            if let (Some(first), Some(listener)) = (&first, watch.listener)
                && reported.as_ref() != Some(first)
            {
                listener.on_line(first, !finished.state.waits_in_line());
            }
            reported = first.or(reported);
            if finished.state.status() == Status::Running {
                let stopped = async {
                    match &watch.stop {
                        Some(stop) => stop.asked().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = tokio::time::sleep(LINE_POLL_INTERVAL) => {}
                    () = stopped => {}
                }
            }
        }
    }

    /// A run that another process drives now.
    async fn seen_again(&self, program: &Program, run_id: &str) -> Result<Finished, Fault> {
        Ok(Finished { state: self.state(program, run_id).await? })
    }

    /// Ends a run that was stopped while it waited; one that had started before stays where it is.
    async fn left_waiting(&self, program: &Program, finished: Finished, line: &PlaceInLine) -> Result<Finished, Fault> {
        let state = &finished.state;
        if !state.waits_in_line() || line.has_place() {
            return Ok(finished);
        }
        let behind = line.ahead.first().map(|ahead| format!(" for run {}", ahead.run_id)).unwrap_or_default();
        let request = CancelRequest { reason: Some(format!("stopped while it waited{behind}")), by: None };
        let run_id = state.header.run_id.clone();
        match self.cancel(program, &run_id, request).await {
            Ok(_) | Err(Fault::Refused(_)) => self.seen_again(program, &run_id).await,
            Err(fault) => Err(fault),
        }
    }
}
