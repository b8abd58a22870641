//! What a step of the workflow is in Restate's journal: what the driver wrote to its journal since the last step, and
//! whether it came to rest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::blob::Blob;
use crate::engine::outcome::{Status, Termination};
use crate::journal::{Append, Created, Journal, Lease, NewRun, RowText, StatusRecord, StoreError};

/// The result of one step. A new attempt gets it from Restate, and nothing of it is done again.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DurableStep {
    /// The writes, in their order.
    pub writes: Vec<JournalWrite>,
    /// Set when the driver left the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<RestReason>,
    /// Whether somebody may have asked to cancel the run since the last look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub look: bool,
    /// Why the run ends, set from the step on with which it has more in Restate's journal than it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<String>,
    /// Whether the run is to continue in a further workflow: the driver leaves it as soon as nothing is half done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hands_over: bool,
    /// Whether the copy of a run that has ended is completed after this step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completes_copy: bool,
}

impl DurableStep {
    /// What it adds to the memory of the session.
    pub fn remembered(&self) -> BTreeMap<String, Value> {
        let events = self.writes.iter().filter_map(|write| match write {
            JournalWrite::Event(event) => Some(event.remember.iter().cloned()),
            JournalWrite::Run(_) => None,
        });
        events.flatten().collect()
    }
}

/// Why the driver left the run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestReason {
    /// The run has ended.
    Ended {
        /// What `run` returns.
        status: Value,
    },
    Waiting {
        /// What `status` returns.
        status: Value,
        /// In this number of milliseconds it continues by itself.
        due_in_ms: Option<u64>,
        /// Why the last decision was refused.
        refused: Option<String>,
    },
    /// It continues: the driver was asked to leave it.
    Left,
    /// The run could not be started, or what it made can't be stored.
    Refused {
        /// Why, in a sentence.
        why: String,
    },
}

/// A write to the journal of a run, or of a run that it calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "most are the larger one; a box would be an allocation for each event")]
pub enum JournalWrite {
    /// A run and its first event.
    Run(Box<RunWrite>),
    /// One more event.
    Event(EventWrite),
}

/// A run, as it was created. The fields are those of [`NewRun`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunWrite {
    pub run_id: String,
    loop_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_run_id: Option<String>,
    identity: String,
    at_ms: i64,
    /// The first event.
    pub event: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    texts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<StatusWrite>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    search_text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
}

/// An event, as it was appended. The fields are those of [`Append`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EventWrite {
    pub run_id: String,
    /// The number of the event, from 0.
    pub seq: u64,
    pub event: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    texts: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<StatusWrite>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    remember: Vec<(String, Value)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StatusWrite {
    status: Status,
    termination: Option<Termination>,
    iterations: u32,
    at_ms: i64,
    due_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waits_since_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    question: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    awaits: Option<String>,
}

impl JournalWrite {
    /// A run that is created.
    pub fn run(run: &NewRun) -> Self {
        Self::Run(Box::new(RunWrite {
            run_id: run.run_id.clone(),
            loop_name: run.loop_name.clone(),
            session: run.session.clone(),
            parent_run_id: run.parent_run_id.clone(),
            identity: run.identity.clone(),
            at_ms: run.at_ms,
            event: run.event.clone(),
            texts: written(&run.texts),
            status: run.status_record.as_ref().map(StatusWrite::of),
            search_text: run.search_text.clone(),
            title: run.title.clone(),
        }))
    }

    pub fn event(entry: &Append) -> Self {
        Self::Event(EventWrite {
            run_id: entry.run_id.clone(),
            seq: entry.seq,
            event: entry.event.clone(),
            texts: written(&entry.texts),
            status: entry.status_record.as_ref().map(StatusWrite::of),
            remember: entry.remember.clone(),
        })
    }

    /// The bytes of its event and texts.
    pub fn bytes(&self) -> usize {
        let (event, texts) = match self {
            Self::Run(run) => (&run.event, &run.texts),
            Self::Event(event) => (&event.event, &event.texts),
        };
        event.len() + texts.iter().map(String::len).sum::<usize>()
    }

    /// Writes it to a journal in memory again. The leases of drivers that are gone are not in Restate's journal: each
    /// event takes the lease and releases it.
    ///
    /// # Errors
    /// When the write does not follow those before it.
    pub async fn repeat(self, journal: &dyn Journal) -> Result<(), StoreError> {
        match self {
            Self::Run(run) => {
                let run_id = run.run_id.clone();
                match journal.create(run.read()).await? {
                    Created::New(Lease { fence, .. }) => journal.release(&run_id, fence).await,
                    Created::Same | Created::Conflict | Created::KeyTaken(_) | Created::LineFull(_) => {
                        Err(StoreError::Corrupt(format!("run {run_id} is there twice")))
                    }
                }
            }
            Self::Event(event) => {
                let Lease { fence, .. } = journal.lease(&event.run_id).await?;
                journal.append(event.read(fence)).await
            }
        }
    }
}

impl RunWrite {
    /// The run to create.
    pub fn read(self) -> NewRun {
        NewRun {
            run_id: self.run_id,
            loop_name: self.loop_name,
            session: self.session,
            org: None,
            token: None,
            callback_url: None,
            parent_run_id: self.parent_run_id,
            identity: self.identity,
            start_key: None,
            at_ms: self.at_ms,
            event: self.event,
            texts: self.texts.into_iter().map(Blob::new).collect(),
            scheduled: None,
            status_record: self.status.map(StatusWrite::read),
            search_text: self.search_text,
            title: self.title,
            audit: None,
            line: None,
        }
    }
}

impl EventWrite {
    /// The event to append with this lease.
    pub fn read(self, fence: u64) -> Append {
        Append {
            texts: self.texts.into_iter().map(Blob::new).collect(),
            status_record: self.status.map(StatusWrite::read),
            remember: self.remember,
            release: true,
            ..Append::new(self.run_id, fence, self.seq, self.event)
        }
    }
}

impl StatusWrite {
    fn of(record: &StatusRecord) -> Self {
        let text = |text: &Option<RowText>| text.as_ref().map(|text| text.as_str().to_owned());
        Self {
            status: record.status,
            termination: record.termination,
            iterations: record.iterations,
            at_ms: record.at_ms,
            due_at_ms: record.due_at_ms,
            waits_since_ms: record.waits_since_ms,
            tokens: record.tokens,
            cost_usd: record.cost_usd,
            error: text(&record.error),
            question: text(&record.question),
            awaits: record.awaits.clone(),
        }
    }

    fn read(self) -> StatusRecord {
        let text = |text: Option<String>| text.as_deref().and_then(RowText::new);
        StatusRecord {
            status: self.status,
            termination: self.termination,
            iterations: self.iterations,
            at_ms: self.at_ms,
            due_at_ms: self.due_at_ms,
            waits_since_ms: self.waits_since_ms,
            tokens: self.tokens,
            cost_usd: self.cost_usd,
            error: text(self.error),
            question: text(self.question),
            awaits: self.awaits,
        }
    }
}

fn written(texts: &[Blob]) -> Vec<String> {
    texts.iter().map(|text| text.shared().to_string()).collect()
}
