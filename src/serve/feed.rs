//! A run's events as they are told over HTTP: the journal's own, folded into notices. History and what
//! happens now are one source, and each has its place: the event's number and the notice's in it.

use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::state::Served;
use crate::compile::Program;
use crate::drive::fault::Fault;
use crate::drive::fold;
use crate::engine::effect::Effect;
use crate::engine::event::{Event, What};
use crate::engine::notice::{Mark, Notice};
use crate::engine::outcome::{Status, Termination};
use crate::engine::state::{Phase, State};
use crate::engine::step::{Refused, step};
use crate::trace::{Redaction, RunResult, Shown, escape, result};

/// How long a run is waited for that may be driven elsewhere.
const LOOK: Duration = Duration::from_secs(1);
/// How often a reader is told that the stream is there, when nothing happens, in looks.
const SIGNS: u32 = 15;

/// A place in a run's events: what `Last-Event-ID` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The event's number in the journal, from 0.
    pub event: usize,
    /// The notice's in the event, from 0.
    pub notice: usize,
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (event, notice) = text.split_once('.').ok_or(())?;
        let number = |text: &str| {
            let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() <= 9;
            if plain { text.parse().map_err(|_| ()) } else { Err(()) }
        };
        Ok(Self { event: number(event)?, notice: number(notice)? })
    }
}

/// What an event tells, in the order in which a listener is told it.
///
/// # Errors
/// When the event does not fit the state.
pub fn notices(program: &Program, state: &mut State, event: Event) -> Result<Vec<Notice>, Refused> {
    let mark = Mark::of(state);
    let begins = matches!(event.what, What::Started(_));
    let goes_on = matches!(event.what, What::Resumed | What::Human(_));
    let stops = matches!(event.what, What::Interrupted);
    let before = state.tally.iterations;
    let effects = step(program, state, event)?;
    let mut notices = Vec::new();
    let begun = &state.begun;
    if begins {
        notices.push(Notice::RunStarted {
            run_id: begun.run_id.clone(),
            loop_name: begun.loop_name.clone(),
            model: begun.model.name.clone(),
            objective: begun.objective.clone(),
            max_iterations: program.properties.max_iterations,
        });
    }
    if goes_on {
        let (run_id, loop_name) = (begun.run_id.clone(), begun.loop_name.clone());
        notices.push(Notice::RunResumed { run_id, loop_name, iterations: before });
    }
    notices.extend(mark.since(state));
    if stops {
        notices.push(Notice::RunEnded { status: Status::Cancelled, termination: Termination::Cancelled });
    }
    for effect in effects {
        match effect {
            Effect::CallModel => notices.push(Notice::ModelAsked { iteration: state.tally.iterations + 1 }),
            Effect::CallTool(id) => {
                let Some(call) = state.call(id) else { continue };
                let (action, action_input) = (call.tool.clone(), call.input.clone());
                notices.push(Notice::ToolCalled { call: id, action, action_input });
            }
            Effect::Remember(_) | Effect::Summarize => {}
        }
    }
    Ok(notices)
}

/// The result as the last event of a stream.
#[derive(Serialize)]
struct Last<'a> {
    event: &'static str,
    #[serde(flatten)]
    result: &'a RunResult,
}

/// A reader's stream.
pub struct Feed {
    served: Arc<Served>,
    run_id: String,
    program: Arc<Program>,
    state: State,
    /// The events that were folded.
    folded: usize,
    /// What the reader has already.
    seen: Option<Place>,
    ready: VecDeque<String>,
    silent: u32,
    ended: bool,
}

impl Feed {
    /// A stream of a run's events after `seen`. `None`: it has ended, and the reader has all.
    ///
    /// # Errors
    /// When there is no such run, its journal can't be read, or it has no such place.
    pub async fn new(served: Arc<Served>, run_id: &str, seen: Option<Place>) -> Result<Option<Self>, FeedFault> {
        let found = served.recorded(run_id).await.map_err(FeedFault::Fault)?;
        if seen.is_some_and(|seen| seen.event >= found.events.len()) {
            return Err(FeedFault::NoSuchPlace);
        }
        let mut feed = Self {
            served,
            run_id: run_id.to_owned(),
            program: found.program,
            state: State::default(),
            folded: 0,
            seen,
            ready: VecDeque::new(),
            silent: 0,
            ended: false,
        };
        feed.take(found.events).map_err(FeedFault::Fault)?;
        Ok((!feed.ready.is_empty() || !feed.ended).then_some(feed))
    }

    /// Takes events that are new.
    fn take(&mut self, events: Vec<Event>) -> Result<(), Fault> {
        let redact = Redaction::new(&self.program.project.redact);
        for event in events {
            let number = self.folded;
            let unreadable = |refused: Refused| Fault::Journal { run: self.run_id.clone(), reason: refused.0 };
            let notices = notices(&self.program, &mut self.state, event).map_err(unreadable)?;
            self.folded += 1;
            let mut told: Vec<String> = Vec::new();
            for notice in &notices {
                let value = serde_json::to_value(notice).unwrap_or_default();
                told.push(redact.value(&value).to_string());
            }
            if matches!(self.state.phase, Phase::Ended(_)) {
                self.ended = true;
                let shown = Shown { result_key: self.program.properties.result_key.as_deref(), trace: false };
                let result = result(shown, &self.state, &redact);
                told.push(serde_json::to_string(&Last { event: "result", result: &result }).unwrap_or_default());
            }
            for (notice, text) in told.iter().enumerate() {
                let place = Place { event: number, notice };
                if self.seen.is_none_or(|seen| place > seen) {
                    self.ready.push_back(written(place, text));
                }
            }
        }
        Ok(())
    }

    /// The next piece of the stream; none when the run has ended, or the server is about to.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                self.silent = 0;
                return Some(piece);
            }
            if self.ended || self.served.is_draining() {
                return None;
            }
            let live = self.served.desk.live(&self.run_id);
            // Listened to before it is looked: what comes in between is not missed.
            let news = live.as_ref().map(|live| live.news());
            if self.look().await.is_err() {
                return None;
            }
            if !self.ready.is_empty() {
                continue;
            }
            match news {
                Some(news) => drop(tokio::time::timeout(LOOK, news).await),
                None => tokio::time::sleep(LOOK).await,
            }
            self.silent += 1;
            if self.silent.is_multiple_of(SIGNS) {
                return Some(": still here\n\n".to_owned());
            }
        }
    }

    /// Takes what was appended since the last look, and reads nothing else.
    async fn look(&mut self) -> Result<(), Fault> {
        let folded = u64::try_from(self.folded).unwrap_or(u64::MAX);
        let new = self.served.journal.read_from(&self.run_id, folded).await.map_err(Fault::Store)?;
        if new.is_empty() {
            return Ok(());
        }
        // Long texts come with documents only: without one, the store need not be asked for them.
        match fold::events(&self.run_id, &new, &[]) {
            Ok(events) if !events.iter().any(|event| matches!(event.what, What::NewDocument(_))) => self.take(events),
            _ => self.look_anew().await,
        }
    }

    /// The same where a new document came: all that came before fits it too, and what was told stays told.
    async fn look_anew(&mut self) -> Result<(), Fault> {
        let found = self.served.recorded(&self.run_id).await?;
        let mut before = found.events;
        let new = before.split_off(self.folded.min(before.len()));
        self.state = fold::fold(&found.program, &self.run_id, before)?;
        self.program = found.program;
        self.take(new)
    }
}

/// Why there is no stream.
pub enum FeedFault {
    /// The run can't be read.
    Fault(Fault),
    /// The run has no such place.
    NoSuchPlace,
}

/// An event of the stream. JSON on one line has no line end that could begin another one.
fn written(place: Place, json: &str) -> String {
    format!("id: {}.{}\ndata: {}\n\n", place.event, place.notice, escape::json(json))
}
