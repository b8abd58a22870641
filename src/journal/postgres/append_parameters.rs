//! The parameters of the statement that appends: arrays, an entry for each event, text, value or run.

use std::collections::{BTreeMap, HashMap, HashSet};

use tokio_postgres::types::Type;

use super::append::{WaitingAppend, seq};
use super::append_statements::AppendExtent;
use super::database::Database;
use super::link::Parameter;
use super::trouble::StatementFailure;
use super::writes::{milliseconds, sha256};
use crate::journal::words::{sum, word};
use crate::journal::{CALLBACK_LEASE, StatusRecord};

/// The parameters of one sending.
#[derive(Default)]
pub(super) struct AppendParameters<'a> {
    events: EventColumns<'a>,
    rows: RowColumns,
    texts: TextColumns<'a>,
    memory: MemoryColumns<'a>,
}

#[derive(Default)]
struct EventColumns<'a> {
    run: Vec<i64>,
    fence: Vec<i64>,
    seq: Vec<i32>,
    before: Vec<i32>,
    sum: Vec<i64>,
    event: Vec<&'a [u8]>,
    token: Vec<Option<&'a str>>,
    decision: Vec<Option<&'a str>>,
}

/// What the rows of runs become.
#[derive(Default)]
struct RowColumns {
    run: Vec<i64>,
    status: Vec<Option<String>>,
    termination: Vec<Option<String>>,
    iterations: Vec<Option<i32>>,
    at_ms: Vec<Option<i64>>,
    due_at_ms: Vec<Option<i64>>,
    posts: Vec<bool>,
    reopens: Vec<bool>,
    releases: Vec<bool>,
    events: Vec<i64>,
    waits_since_ms: Vec<Option<i64>>,
}

#[derive(Default)]
struct TextColumns<'a> {
    /// Each text once, by its digest.
    sha256: Vec<Vec<u8>>,
    text: Vec<&'a [u8]>,
    /// Which run names which text.
    of_run: Vec<i64>,
    of_sha256: Vec<Vec<u8>>,
}

#[derive(Default)]
struct MemoryColumns<'a> {
    run: Vec<i64>,
    session: Vec<&'a str>,
    key: Vec<&'a [u8]>,
    value: Vec<Vec<u8>>,
}

/// A value of a session, and the run that sets it.
struct RememberedValue {
    run: i64,
    value: Vec<u8>,
}

impl<'a> AppendParameters<'a> {
    pub(super) fn of(batch: &'a [WaitingAppend]) -> Self {
        let mut all = Self::default();
        // The events of one run follow each other: all are inserted, or none.
        let mut before: HashMap<i64, i32> = HashMap::new();
        let mut texts: BTreeMap<Vec<u8>, &'a [u8]> = BTreeMap::new();
        let mut memory: BTreeMap<(&'a str, &'a [u8]), RememberedValue> = BTreeMap::new();
        let mut rows: BTreeMap<i64, &WaitingAppend> = BTreeMap::new();
        for append in batch {
            let WaitingAppend { entry, row, session, .. } = append;
            let number = seq(append);
            all.events.run.push(*row);
            all.events.fence.push(i64::try_from(entry.fence).unwrap_or(i64::MAX));
            all.events.seq.push(number);
            all.events.before.push(*before.entry(*row).or_insert(number.saturating_sub(1)));
            all.events.sum.push(sum(&entry.run_id, i64::from(number), &entry.event));
            all.events.event.push(entry.event.as_bytes());
            all.events.token.push(entry.answer_token.as_deref());
            all.events.decision.push(entry.decision.as_deref());
            for text in &entry.texts {
                let sha256 = sha256(text);
                all.texts.of_run.push(*row);
                all.texts.of_sha256.push(sha256.clone());
                texts.insert(sha256, text.as_bytes());
            }
            if let Some(session) = session {
                for (key, value) in &entry.remember {
                    let value = RememberedValue { run: *row, value: value.to_string().into_bytes() };
                    memory.insert((session, key.as_bytes()), value);
                }
            }
            if entry.status_record.is_some() || entry.reopens || entry.release {
                rows.insert(*row, append);
            }
        }
        (all.texts.sha256, all.texts.text) = texts.into_iter().unzip();
        for ((session, key), RememberedValue { run, value }) in memory {
            all.memory.run.push(run);
            all.memory.session.push(session);
            all.memory.key.push(key);
            all.memory.value.push(value);
        }
        for append in rows.into_values() {
            all.rows.add(append, batch);
        }
        all
    }

    fn extent(&self) -> AppendExtent {
        let Self { events, rows, texts, memory } = self;
        let is_more = !texts.of_run.is_empty() || !memory.run.is_empty();
        if is_more || events.token.iter().any(Option::is_some) || events.decision.iter().any(Option::is_some) {
            AppendExtent::All
        } else if rows.run.is_empty() {
            AppendExtent::Events
        } else {
            AppendExtent::Rows
        }
    }

    /// Sends the statement; what it inserted.
    pub(super) async fn send(&self, database: &Database) -> Result<HashSet<(i64, i32)>, StatementFailure> {
        let Self { events, rows, texts, memory } = self;
        let lease_ms = milliseconds(CALLBACK_LEASE);
        let extent = self.extent();
        let mut parameters: Vec<Parameter<'_>> = vec![
            (&events.run, Type::INT8_ARRAY),
            (&events.fence, Type::INT8_ARRAY),
            (&events.seq, Type::INT4_ARRAY),
            (&events.before, Type::INT4_ARRAY),
            (&events.sum, Type::INT8_ARRAY),
            (&events.event, Type::BYTEA_ARRAY),
            (&database.me, Type::UUID),
        ];
        if extent >= AppendExtent::Rows {
            parameters.extend::<[Parameter<'_>; 12]>([
                (&rows.run, Type::INT8_ARRAY),
                (&rows.status, Type::TEXT_ARRAY),
                (&rows.termination, Type::TEXT_ARRAY),
                (&rows.iterations, Type::INT4_ARRAY),
                (&rows.at_ms, Type::INT8_ARRAY),
                (&rows.due_at_ms, Type::INT8_ARRAY),
                (&rows.posts, Type::BOOL_ARRAY),
                (&rows.reopens, Type::BOOL_ARRAY),
                (&rows.releases, Type::BOOL_ARRAY),
                (&rows.events, Type::INT8_ARRAY),
                (&lease_ms, Type::FLOAT8),
                (&rows.waits_since_ms, Type::INT8_ARRAY),
            ]);
        }
        if extent == AppendExtent::All {
            parameters.extend::<[Parameter<'_>; 10]>([
                (&events.token, Type::TEXT_ARRAY),
                (&events.decision, Type::TEXT_ARRAY),
                (&texts.sha256, Type::BYTEA_ARRAY),
                (&texts.text, Type::BYTEA_ARRAY),
                (&texts.of_run, Type::INT8_ARRAY),
                (&texts.of_sha256, Type::BYTEA_ARRAY),
                (&memory.run, Type::INT8_ARRAY),
                (&memory.session, Type::TEXT_ARRAY),
                (&memory.key, Type::BYTEA_ARRAY),
                (&memory.value, Type::BYTEA_ARRAY),
            ]);
        }
        let inserted = database.writer.query(extent.statement(), &parameters).await?;
        inserted.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }
}

impl RowColumns {
    /// What the events of a run in this batch change in its row; `last` is the last of them that changes it.
    fn add(&mut self, last: &WaitingAppend, batch: &[WaitingAppend]) {
        let of_run = || batch.iter().filter(|append| append.row == last.row).map(|append| &append.entry);
        let record = of_run().filter_map(|entry| entry.status_record.as_ref()).next_back();
        self.run.push(last.row);
        self.status.push(record.and_then(|record| word(&record.status)));
        self.termination.push(record.and_then(|record| record.termination.as_ref().and_then(word)));
        self.iterations.push(record.map(|record| i32::try_from(record.iterations).unwrap_or(i32::MAX)));
        self.at_ms.push(record.map(|record| record.at_ms));
        self.due_at_ms.push(record.and_then(|record| record.due_at_ms));
        self.waits_since_ms.push(record.and_then(|record| record.waits_since_ms));
        self.posts.push(record.is_some_and(StatusRecord::is_to_be_posted));
        self.reopens.push(of_run().any(|entry| entry.reopens));
        self.releases.push(of_run().any(|entry| entry.release));
        self.events.push(i64::from(seq(last)).saturating_add(1));
    }
}
