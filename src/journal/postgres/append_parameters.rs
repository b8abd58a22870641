//! The parameters of the statement that appends: arrays, an entry for each event, text, value or run.

use std::collections::{BTreeMap, HashMap, HashSet};

use tokio_postgres::types::Type;

use super::append::{APPEND, WaitingAppend, seq};
use super::database::Database;
use super::trouble::StatementFailure;
use super::writes::sha256;
use crate::journal::words::{sum, word};
use crate::journal::{CALLBACK_LEASE, StatusRecord};

/// The parameters of one sending.
#[derive(Default)]
pub(super) struct AppendParameters {
    events: EventColumns,
    texts: (Vec<Vec<u8>>, Vec<Vec<u8>>),
    run_texts: (Vec<i64>, Vec<Vec<u8>>),
    memory: MemoryColumns,
    standing: StandingColumns,
}

#[derive(Default)]
struct EventColumns {
    run: Vec<i64>,
    fence: Vec<i64>,
    seq: Vec<i32>,
    before: Vec<i32>,
    sum: Vec<i64>,
    event: Vec<Vec<u8>>,
    token: Vec<Option<String>>,
    decision: Vec<Option<String>>,
}

#[derive(Default)]
struct MemoryColumns {
    run: Vec<i64>,
    session: Vec<String>,
    key: Vec<Vec<u8>>,
    value: Vec<Vec<u8>>,
}

#[derive(Default)]
struct StandingColumns {
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
}

impl AppendParameters {
    pub(super) fn of(batch: &[WaitingAppend]) -> Self {
        let mut all = Self::default();
        // The events of one run follow each other: all are inserted, or none.
        let mut before: HashMap<i64, i32> = HashMap::new();
        let mut texts: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut memory: BTreeMap<(String, Vec<u8>), (i64, Vec<u8>)> = BTreeMap::new();
        let mut standing: BTreeMap<i64, &WaitingAppend> = BTreeMap::new();
        for append in batch {
            let WaitingAppend { entry, row, session, .. } = append;
            let number = seq(append);
            all.events.run.push(*row);
            all.events.fence.push(i64::try_from(entry.fence).unwrap_or(i64::MAX));
            all.events.seq.push(number);
            all.events.before.push(*before.entry(*row).or_insert(number.saturating_sub(1)));
            all.events.sum.push(sum(&entry.run_id, i64::from(number), &entry.event));
            all.events.event.push(entry.event.clone().into_bytes());
            all.events.token.push(entry.answer_token.clone());
            all.events.decision.push(entry.decision.clone());
            for text in &entry.texts {
                let sha256 = sha256(text);
                all.run_texts.0.push(*row);
                all.run_texts.1.push(sha256.clone());
                texts.insert(sha256, text.as_bytes().to_vec());
            }
            for (key, value) in entry.remember.iter().filter(|_| session.is_some()) {
                let key = (session.clone().unwrap_or_default(), key.clone().into_bytes());
                memory.insert(key, (*row, value.to_string().into_bytes()));
            }
            if entry.status_record.is_some() || entry.reopens || entry.release {
                standing.insert(*row, append);
            }
        }
        all.texts = texts.into_iter().unzip();
        for ((session, key), (run, value)) in memory {
            all.memory.run.push(run);
            all.memory.session.push(session);
            all.memory.key.push(key);
            all.memory.value.push(value);
        }
        for append in standing.into_values() {
            all.standing.add(append, batch);
        }
        all
    }

    /// Sends the statement; what it inserted.
    pub(super) async fn send(&self, database: &Database) -> Result<HashSet<(i64, i32)>, StatementFailure> {
        let Self { events, texts, run_texts, memory, standing } = self;
        let lease_ms = i64::try_from(CALLBACK_LEASE.as_millis()).unwrap_or(i64::MAX);
        let lease_ms = f64::from(i32::try_from(lease_ms).unwrap_or(i32::MAX));
        let rows = database
            .writer
            .query(
                APPEND,
                &[
                    (&events.run, Type::INT8_ARRAY),
                    (&events.fence, Type::INT8_ARRAY),
                    (&events.seq, Type::INT4_ARRAY),
                    (&events.before, Type::INT4_ARRAY),
                    (&events.sum, Type::INT8_ARRAY),
                    (&events.event, Type::BYTEA_ARRAY),
                    (&events.token, Type::TEXT_ARRAY),
                    (&database.me, Type::UUID),
                    (&texts.0, Type::BYTEA_ARRAY),
                    (&texts.1, Type::BYTEA_ARRAY),
                    (&run_texts.0, Type::INT8_ARRAY),
                    (&run_texts.1, Type::BYTEA_ARRAY),
                    (&memory.run, Type::INT8_ARRAY),
                    (&memory.session, Type::TEXT_ARRAY),
                    (&memory.key, Type::BYTEA_ARRAY),
                    (&memory.value, Type::BYTEA_ARRAY),
                    (&standing.run, Type::INT8_ARRAY),
                    (&standing.status, Type::TEXT_ARRAY),
                    (&standing.termination, Type::TEXT_ARRAY),
                    (&standing.iterations, Type::INT4_ARRAY),
                    (&standing.at_ms, Type::INT8_ARRAY),
                    (&standing.due_at_ms, Type::INT8_ARRAY),
                    (&standing.posts, Type::BOOL_ARRAY),
                    (&standing.reopens, Type::BOOL_ARRAY),
                    (&standing.releases, Type::BOOL_ARRAY),
                    (&lease_ms, Type::FLOAT8),
                    (&standing.events, Type::INT8_ARRAY),
                    (&events.decision, Type::TEXT_ARRAY),
                ],
            )
            .await?;
        let mut inserted = HashSet::new();
        for row in rows {
            inserted.insert((row.try_get(0)?, row.try_get(1)?));
        }
        Ok(inserted)
    }
}

impl StandingColumns {
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
        self.posts.push(record.is_some_and(StatusRecord::is_to_be_posted));
        self.reopens.push(of_run().any(|entry| entry.reopens));
        self.releases.push(of_run().any(|entry| entry.release));
        self.events.push(i64::from(seq(last)).saturating_add(1));
    }
}
