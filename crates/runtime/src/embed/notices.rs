//! The notices of a run as a stream, from its journal: any number of readers, each at its own speed, and each from where it was.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::Loop;
use super::handle::RUN_POLL_INTERVAL;
use crate::drive::fault::Fault;
use crate::drive::notices::NoticePosition;
use crate::drive::{fold, stored_events::events_from};
use crate::journal::StoreError;
use loopctl_engine::event::Event;
use loopctl_engine::notice::{self, Notice};
use loopctl_engine::state::{Phase, State};
use loopctl_engine::trace::Redaction;
use loopctl_engine::trace::events::shown;

/// The bytes of a journal that are read at once. The next ones are read when the reader has these.
const READ_BYTES: usize = 32 * 1024;

/// A notice of a run, as its journal has it. What is written of it (`Serialize`, `Debug`, [`RunNotice::json`]) is redacted as the
/// project says, as in `--output ndjson`.
#[derive(Clone)]
pub struct RunNotice {
    run_id: Arc<str>,
    position: NoticePosition,
    notice: Notice,
    shown: Value,
}

impl RunNotice {
    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Where it is in the run: what [`RunHandle::notices_after`](super::RunHandle::notices_after) takes, and the `id` of an event
    /// that is sent to a browser.
    pub fn position(&self) -> NoticePosition {
        self.position
    }

    /// The notice with its `event`, its `run_id` and its `position`, redacted.
    pub fn json(&self) -> &Value {
        &self.shown
    }

    /// The notice to match on, with values as the run has them: they may hold secrets.
    pub fn unredacted(&self) -> &Notice {
        &self.notice
    }
}

impl Serialize for RunNotice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown.serialize(serializer)
    }
}

impl fmt::Debug for RunNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunNotice").field(&self.shown).finish()
    }
}

/// The notices of a run in their order, past ones and those to come: [`RunHandle::notices`](super::RunHandle::notices). The stream
/// ends when the run has ended. While the run waits for a human, the stream waits too.
pub struct Notices(BoxStream<'static, Result<RunNotice, Fault>>);

impl Notices {
    pub(super) fn new(of: Loop, run_id: String, after: Option<NoticePosition>) -> Self {
        let state = State::new(&of.program);
        let reader =
            NoticeReader { of, run_id: run_id.into(), state, folded: 0, after, ready: VecDeque::new(), failed: false };
        let next = |mut reader: NoticeReader| async move { Some((reader.next().await?, reader)) };
        Self(unfold(reader, next).boxed())
    }

    /// The next notice; none when the run has ended.
    ///
    /// # Errors
    /// When there is no such run, the journal can't be read, or the run follows another document than the loop. Nothing comes after
    /// an error.
    pub async fn next(&mut self) -> Option<Result<RunNotice, Fault>> {
        self.0.next().await
    }
}

impl Stream for Notices {
    type Item = Result<RunNotice, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(context)
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").finish_non_exhaustive()
    }
}

/// Follows the journal of a run.
struct NoticeReader {
    of: Loop,
    run_id: Arc<str>,
    state: State,
    /// How many events were folded.
    folded: usize,
    after: Option<NoticePosition>,
    ready: VecDeque<RunNotice>,
    failed: bool,
}

impl NoticeReader {
    async fn next(&mut self) -> Option<Result<RunNotice, Fault>> {
        loop {
            if let Some(notice) = self.ready.pop_front() {
                return Some(Ok(notice));
            }
            if self.failed {
                return None;
            }
            // Subscribed before the read, so that nothing in between is missed.
            let run = self.of.engine.driven().get(&self.run_id);
            let news = run.as_ref().map(|run| run.news());
            match self.read().await {
                Ok(true) => {}
                Ok(false) if matches!(self.state.phase, Phase::Ended(_)) => return None,
                Ok(false) => match news {
                    // Also where it is driven here: another process may have taken it over.
                    Some(mut news) => drop(timeout(RUN_POLL_INTERVAL, news.changed()).await),
                    None => tokio::time::sleep(RUN_POLL_INTERVAL).await,
                },
                Err(fault) => {
                    self.failed = true;
                    return Some(Err(fault));
                }
            }
        }
    }

    /// Reads what the reader lacks. Returns whether there was more.
    async fn read(&mut self) -> Result<bool, Fault> {
        let from = u64::try_from(self.folded).unwrap_or(u64::MAX);
        let events = events_from(&**self.of.engine.journal(), &self.run_id, from, READ_BYTES).await?;
        if self.folded == 0 && events.is_empty() {
            return Err(Fault::Store(StoreError::NoSuchRun(self.run_id.to_string())));
        }
        let program = &self.of.program;
        if fold::documents(&events).is_some() && fold::same_document(program, &events).is_err() {
            // It may continue with this document since.
            fold::same_document(program, &self.of.engine.events(&self.run_id).await?)?;
        }
        let more = !events.is_empty();
        events.into_iter().try_for_each(|event| self.take(event))?;
        Ok(more)
    }

    fn take(&mut self, event: Event) -> Result<(), Fault> {
        let number = self.folded;
        let notices = notice::notices(&self.of.program, &mut self.state, event).map_err(|refused| Fault::Journal {
            run: self.run_id.to_string(),
            reason: format!("event {number} does not fit: {refused}"),
        })?;
        self.folded = number.saturating_add(1);
        let redact = Redaction::new(&self.of.program.project.redact);
        for (notice, at) in notices.into_iter().zip(0..) {
            let position = NoticePosition { event: number, notice: at };
            if self.after.is_some_and(|after| position <= after) {
                continue;
            }
            let shown = self.written(&notice, position, &redact);
            self.ready.push_back(RunNotice { run_id: Arc::clone(&self.run_id), position, notice, shown });
        }
        Ok(())
    }

    fn written(&self, notice: &Notice, position: NoticePosition, redact: &Redaction) -> Value {
        let shown = shown(notice, redact).unwrap_or_default();
        let mut fields = match shown {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        fields.insert("run_id".to_owned(), Value::from(&*self.run_id));
        fields.insert("position".to_owned(), Value::from(position.to_string()));
        Value::Object(fields)
    }
}
