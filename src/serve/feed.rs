//! The events of a run over HTTP: the events of its journal, folded into notices. Past and live events come from this
//! one source. Each notice has a position: the number of its event, and its own number in the event.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::app::App;
use super::authorizer::Caller;
use super::problem::ProblemDetails;
use super::run_heads::HeadReader;
use super::run_store::ProgramOfRun;
use super::scheduler::{ActiveRun, ReplyReader};
use super::step_reader::StepReader;
use crate::drive::clock;
use crate::drive::fault::Fault;
use crate::drive::notices::NoticePosition;
use crate::engine::event::{Event, EventKind};
use crate::engine::notice::{self, Notice};
use crate::engine::state::{Phase, State};
use crate::engine::step::{Refused, step};
use crate::journal::{ModelWait, set_aside};
use crate::language::serving::TokenScope;
use crate::program::Program;
use crate::trace::events::Last;
use crate::trace::live_reply::LivePosition;
use crate::trace::units::rfc3339;
use crate::trace::{Redaction, Shown, escape, events, result};

/// The bytes of a journal that are read at once. The next ones are read only when the reader has received their
/// notices, so a reader that stops reading holds no more.
const READ_BYTES: usize = 32 * 1024;
/// The interval of the polls of a run of which nothing is known.
const RUN_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// When the reader got nothing for this time, whatever happened in the run, a comment keeps the stream alive, and the run is
/// polled whatever is known of it.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// What a reader wants of the events of a run.
#[derive(Debug)]
pub struct WantedEvents {
    /// Who reads.
    pub caller: Caller,
    /// What it has already.
    pub seen: Option<NoticePosition>,
    /// Whether it wants replies while they arrive.
    pub deltas: bool,
    /// The steps of a workflow, as they are, in place of those that begin and end.
    pub steps: Option<StepReader>,
}

/// A reader's stream.
pub struct Feed {
    app: Arc<App>,
    /// Who reads: asked again before each piece.
    caller: Caller,
    run_id: String,
    program: Arc<Program>,
    state: State,
    /// The events that were folded.
    folded: usize,
    /// What the reader has already.
    seen: Option<NoticePosition>,
    ready: VecDeque<String>,
    /// What a reader sees of the steps of a workflow, when it wants to see them as they are.
    steps: Option<StepReader>,
    /// How much of the reply that is arriving the reader has; none when it wants none of it.
    live: Option<LiveReader>,
    /// Waits for news of the run while it is not driven here.
    head: Option<HeadReader>,
    /// The version of the run at the last poll; none when the next poll is due in any case.
    version: Option<u64>,
    /// Whether the last look-up of a run that is not driven here found no more events.
    has_all: bool,
    /// The outage of a model that the reader knows of.
    outage: Option<KnownOutage>,
    /// Whether the row of the run was looked at for one, while it is not driven here.
    has_row: bool,
    /// When the reader got something last.
    sent_at: Instant,
    ended: bool,
    /// The result of a run that has ended, unless it continues: the last event of the stream.
    last: Option<(NoticePosition, String)>,
    /// Set when the stream can't continue, and its reader got the reason.
    failed: Option<Interrupted>,
}

/// A reader of replies that are arriving.
struct LiveReader {
    position: LivePosition,
    /// The run whose reply it is. Kept beyond the run's end: the reader may lack the end of the reply still.
    run: Option<Arc<ActiveRun>>,
    _reader: ReplyReader,
}

/// What differs from one state of an outage to the next.
#[derive(PartialEq, Eq)]
struct KnownOutage {
    run_id: String,
    attempts: u32,
    again_at_ms: Option<i64>,
}

/// A stream stopped before its run ended. Its connection is cut, so that no reader takes this for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stream stopped before its run ended")]
pub struct Interrupted;

impl Feed {
    /// A stream of a run's events. `None`: it has ended, and the reader has all.
    ///
    /// # Errors
    /// When there is no such run, its journal can't be read, or it has no such place.
    pub async fn new(app: Arc<App>, run_id: &str, wanted: WantedEvents) -> Result<Option<Self>, FeedError> {
        let WantedEvents { caller, seen, deltas, steps } = wanted;
        // The first of all: a model that is asked from now on streams.
        let reader = deltas.then(|| app.scheduler.readers.join(run_id));
        let live = reader.map(|reader| LiveReader { position: LivePosition::default(), run: None, _reader: reader });
        let first = app.runs.events_from(run_id, 0, 1).await.map_err(FeedError::Fault)?;
        let ProgramOfRun { program, .. } = app.runs.program(run_id, &first).await.map_err(FeedError::Fault)?;
        if let Some(seen) = seen {
            let there = app.runs.events_from(run_id, seen.event, 1).await;
            if there.map_err(FeedError::Fault)?.is_empty() {
                return Err(FeedError::NoSuchPlace);
            }
        }
        let mut feed = Self {
            app,
            caller,
            run_id: run_id.to_owned(),
            state: State::new(&program),
            program,
            folded: 0,
            seen,
            ready: VecDeque::new(),
            steps,
            live,
            head: None,
            version: None,
            has_all: false,
            outage: None,
            has_row: false,
            sent_at: Instant::now(),
            ended: false,
            last: None,
            failed: None,
        };
        while feed.ready.is_empty() && !feed.ended {
            if !feed.poll().await.map_err(FeedError::Fault)? && !feed.finish() {
                break;
            }
        }
        Ok((!feed.ready.is_empty() || !feed.ended).then_some(feed))
    }

    /// Folds a new event, and queues its notices for the reader.
    fn take(&mut self, event: Event) -> Result<(), Fault> {
        // The event may record the reply, of which more arrived since the reader got its last part.
        let delta = self.delta();
        self.ready.extend(delta);
        let redact = Redaction::new(&self.program.project.redact);
        let number = self.folded;
        // A run that had ended continues.
        self.last = None;
        let notices = notice::notices(&self.program, &mut self.state, event);
        let notices = notices.map_err(|refused| unreadable(&self.run_id, &refused))?;
        self.folded += 1;
        if matches!(self.state.phase, Phase::Ended(_)) {
            let shown =
                Shown { result_key: self.program.result_key(), trace: false, driven: false, is_quarantined: false };
            let result = result(shown, &self.state, &redact);
            let text = serde_json::to_string(&events::last(&result)).unwrap_or_default();
            self.last = Some((NoticePosition { event: number, notice: notices.len() }, text));
        }
        if let Some(steps) = &mut self.steps {
            steps.take(&self.state);
        }
        for (at, notice) in notices.iter().enumerate() {
            let place = NoticePosition { event: number, notice: at };
            let is_shown = self.steps.is_some()
                && matches!(notice, Notice::StepStarted { .. } | Notice::StepEnded { .. } | Notice::ItemEnded { .. });
            if self.seen.is_none_or(|seen| place > seen) && !is_shown {
                let text = events::shown(notice, &redact).unwrap_or_default().to_string();
                self.ready.push_back(written(place, &text));
            }
        }
        Ok(())
    }

    /// Ends the stream of a run that has ended; returns whether it has.
    fn finish(&mut self) -> bool {
        if let Some((place, text)) = self.last.take() {
            self.ended = true;
            if self.seen.is_none_or(|seen| place > seen) {
                self.ready.push_back(written(place, &text));
            }
        }
        self.ended
    }

    /// The next piece of the stream; none when the run has ended.
    ///
    /// # Errors
    /// When the stream can't continue although the run may: the server is stopping, the journal can't be read, or the token of
    /// the reader is not taken any more. The last piece before reports the latter two.
    pub async fn next(&mut self) -> Option<Result<String, Interrupted>> {
        if let Some(interrupted) = self.failed {
            // An error makes the connection drop what it still holds: let it send that first.
            tokio::task::yield_now().await;
            return Some(Err(interrupted));
        }
        loop {
            if self.ended && self.ready.is_empty() {
                return None;
            }
            let admitted =
                self.app.served().authorizer.check_again(&self.caller, &[TokenScope::Read], clock::wall_ms());
            if let Err(problem) = admitted {
                self.failed = Some(Interrupted);
                return Some(Ok(failure(problem)));
            }
            if let Some(piece) = self.ready.pop_front() {
                return self.sent(piece);
            }
            let active = self.app.scheduler.active(&self.run_id);
            // Subscribed before the poll, so that nothing in between is missed.
            let news = active.as_ref().map(|active| active.news());
            let arrived = active.as_ref().map(|active| active.arrived());
            if let (Some(live), Some(active)) = (&mut self.live, &active) {
                live.run = Some(Arc::clone(active));
            }
            if let Some(piece) = self.delta() {
                return self.sent(piece);
            }
            let version = active.as_ref().map(|active| active.version());
            // More of a reply is not in the journal.
            if version.is_none() && !self.has_all || version.is_some() && version != self.version {
                self.version = version;
                match self.poll().await {
                    Ok(true) => {
                        self.version = None;
                        continue;
                    }
                    Ok(false) if self.finish() => continue,
                    Ok(false) => {}
                    Err(fault) => {
                        self.failed = Some(Interrupted);
                        return Some(Ok(self.unreadable(fault)));
                    }
                }
            }
            if self.app.scheduler.is_draining() {
                return Some(Err(Interrupted));
            }
            if let Some(piece) = self.new_outage(active.is_some()).await {
                return self.sent(piece);
            }
            if let Some(steps) = &mut self.steps {
                steps.rest().await;
            }
            self.wait(news, arrived).await;
            if self.sent_at.elapsed() >= KEEP_ALIVE_INTERVAL {
                (self.version, self.has_all, self.has_row) = (None, false, false);
                return self.sent(": still here\n\n".to_owned());
            }
        }
    }

    fn sent(&mut self, piece: String) -> Option<Result<String, Interrupted>> {
        self.sent_at = Instant::now();
        Some(Ok(piece))
    }

    /// The model of the run that failed and is asked again, if the reader does not know that yet. Such an event has no id: it is
    /// not in the journal. A run that another server drives is looked up as seldom as it is polled for nothing.
    async fn new_outage(&mut self, is_here: bool) -> Option<String> {
        let wait: Option<ModelWait> = if is_here {
            self.app.scheduler.model_wait(&self.run_id)
        } else if std::mem::replace(&mut self.has_row, true) {
            return None;
        } else {
            let run = self.app.runs.journal.find(&self.run_id).await.ok().flatten();
            run.and_then(|run| run.model_wait).map(|wait| *wait)
        };
        let known = wait.as_ref().map(|wait| KnownOutage {
            run_id: wait.run_id.clone(),
            attempts: wait.attempts,
            again_at_ms: wait.again_at_ms,
        });
        if known == self.outage {
            return None;
        }
        self.outage = known;
        let ModelWait { run_id, of, model, attempts, since_ms, kind, again_at_ms, .. } = wait?;
        let redact = Redaction::new(&self.program.project.redact);
        let away = Last::ModelAway {
            run_id: Some(run_id).filter(|run_id| *run_id != self.run_id),
            of: (!of.is_model()).then(|| of.word().to_owned()),
            model,
            attempts,
            since: rfc3339(since_ms),
            kind: redact.text(&kind).into_owned(),
            again_at: again_at_ms.map(rfc3339),
        };
        Some(format!("data: {}\n\n", escape::json(&serde_json::to_string(&away).unwrap_or_default())))
    }

    /// Queues the steps as they are now, unless the reader has them or there are more events. Returns whether it did.
    async fn show_steps(&mut self, more: bool) -> Result<bool, Fault> {
        let Some(steps) = self.steps.as_mut().filter(|steps| steps.is_due(more)) else { return Ok(false) };
        let journal = &*self.app.runs.journal;
        let run = match journal.find(&self.run_id).await.map_err(Fault::Store)? {
            Some(run) => Some(set_aside::shown(journal, run).await.map_err(Fault::Store)?),
            None => None,
        };
        let piece = steps.piece(&self.program, &self.state, run.as_ref());
        let shown = piece.is_some();
        self.ready.extend(piece);
        Ok(shown)
    }

    /// What the reader lacks of the reply that is arriving, once it has the events before it. Such an event has no id:
    /// it is not in the journal.
    fn delta(&mut self) -> Option<String> {
        let LiveReader { position, run, .. } = self.live.as_mut()?;
        if !matches!(self.state.phase, Phase::Thinking { .. }) {
            return None;
        }
        let delta = run.as_ref()?.reply_since(self.state.counters.iterations + 1, position)?;
        let json = events::delta(&delta).unwrap_or_default().to_string();
        Some(format!("data: {}\n\n", escape::json(&json)))
    }

    /// Waits for news, for as long as a poll.
    async fn wait(&mut self, news: Option<impl Future<Output = ()>>, arrived: Option<impl Future<Output = ()>>) {
        let (Some(news), Some(arrived)) = (news, arrived) else {
            let folded = u64::try_from(self.folded).unwrap_or(u64::MAX);
            let head = self.head.get_or_insert_with(|| self.app.scheduler.head_reader(&self.run_id));
            let is_silent =
                tokio::time::timeout(RUN_POLL_INTERVAL, head.until(|head| head.events > folded)).await.is_err();
            // One look-up answers for all readers. A run of which it says nothing is polled.
            self.has_all = is_silent && head.is(|head| head.events <= folded);
            return;
        };
        (self.head, self.has_all) = (None, false);
        tokio::select! {
            () = news => {}
            () = arrived, if self.live.is_some() => {}
            () = tokio::time::sleep(RUN_POLL_INTERVAL) => {}
        }
    }

    /// Reads some of the events that were appended since the last poll. Returns whether the reader gets anything new.
    async fn poll(&mut self) -> Result<bool, Fault> {
        let events = self.app.runs.events_from(&self.run_id, self.folded, READ_BYTES).await?;
        let any = !events.is_empty();
        for event in events {
            if matches!(event.kind, EventKind::NewDocument(_)) {
                let ProgramOfRun { program, .. } =
                    self.app.runs.program(&self.run_id, std::slice::from_ref(&event)).await?;
                self.state = self.refolded(&program).await?;
                self.program = program;
            }
            self.take(event)?;
        }
        let shown = self.show_steps(any).await?;
        Ok(any || shown)
    }

    /// The last event of a stream whose run can't be read.
    fn unreadable(&self, fault: Fault) -> String {
        tracing::error!(run_id = self.run_id, code = fault.code(), "a stream of events can't continue: {fault}");
        failure(self.app.hidden_paths.problem(fault.into()))
    }

    /// The state under a new document: all earlier events fit it too, and what the reader got stays valid.
    async fn refolded(&self, program: &Program) -> Result<State, Fault> {
        let (mut state, mut at) = (State::new(program), 0);
        while at < self.folded {
            let events = self.app.runs.events_from(&self.run_id, at, READ_BYTES).await?;
            if events.is_empty() {
                break;
            }
            for event in events.into_iter().take(self.folded - at) {
                step(program, &mut state, event).map_err(|refused| unreadable(&self.run_id, &refused))?;
                at += 1;
            }
        }
        Ok(state)
    }
}

/// The last event of a stream that can't continue. It has no id: a reader that connects again continues after the last event
/// with an id.
fn failure(problem: ProblemDetails) -> String {
    let last = Last::StreamFailed { code: problem.code.to_owned(), message: problem.detail };
    format!("data: {}\n\n", escape::json(&serde_json::to_string(&last).unwrap_or_default()))
}

fn unreadable(run_id: &str, refused: &Refused) -> Fault {
    Fault::Journal { run: run_id.to_owned(), reason: refused.to_string() }
}

/// Why there is no stream.
pub enum FeedError {
    /// The run can't be read.
    Fault(Fault),
    /// The run has no such place.
    NoSuchPlace,
}

/// An event of the stream. JSON on one line has no line end that could begin another one.
fn written(place: NoticePosition, json: &str) -> String {
    format!("id: {place}\ndata: {}\n\n", escape::json(json))
}
