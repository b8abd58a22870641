//! The parameters of the statement that appends: arrays, an entry for each event, text, value or run.

use std::collections::{BTreeMap, HashMap, HashSet};

use uuid::Uuid;

use super::append::{WaitingAppend, seq};
use super::append_statements::AppendExtent;
use super::columns::{columns, statement_parameters};
use super::database::Database;
use super::record_columns::RecordColumns;
use super::trouble::StatementFailure;
use super::writes::{milliseconds, sha256};
use crate::journal::CALLBACK_LEASE;
use crate::journal::words::sum;

statement_parameters! {
    /// The parameters of one sending. What every statement takes comes first.
    pub(super) struct AppendParameters<'a> {
        a: EventColumns<'a>,
        me: Uuid,
        r: AppendedRowColumns,
        s: RecordColumns,
        lease_ms: f64,
        u: UsedUpColumns<'a>,
        t: TextColumns<'a>,
        n: AppendedTextColumns,
        m: MemoryColumns<'a>,
    }
}

columns! {
    /// The events.
    pub(super) struct EventColumns<'a> {
        run: i64,
        fence: i64,
        seq: i32,
        before: i32,
        sum: i64,
        event: &'a [u8],
    }
}

columns! {
    /// What each event uses up.
    pub(super) struct UsedUpColumns<'a> {
        token: Option<&'a str>,
        decision: Option<&'a str>,
    }
}

columns! {
    /// What the rows of runs become, beside their records.
    pub(super) struct AppendedRowColumns {
        run: i64,
        reopens: bool,
        releases: bool,
        events: i64,
    }
}

columns! {
    /// Each text once, by its digest.
    pub(super) struct TextColumns<'a> {
        sha256: Vec<u8>,
        text: &'a [u8],
    }
}

columns! {
    /// Which run names which text.
    pub(super) struct AppendedTextColumns {
        run: i64,
        sha256: Vec<u8>,
    }
}

columns! {
    /// What sessions remember.
    pub(super) struct MemoryColumns<'a> {
        run: i64,
        session: &'a str,
        key: &'a [u8],
        value: Vec<u8>,
    }
}

/// A value of a session, and the run that sets it.
struct RememberedValue {
    run: i64,
    value: Vec<u8>,
}

impl<'a> AppendParameters<'a> {
    pub(super) fn of(me: Uuid, batch: &'a [WaitingAppend]) -> Self {
        let mut all = Self::without_events(me);
        // The events of one run follow each other: all are inserted, or none.
        let mut before: HashMap<i64, i32> = HashMap::new();
        let mut texts: BTreeMap<Vec<u8>, &'a [u8]> = BTreeMap::new();
        let mut memory: BTreeMap<(&'a str, &'a [u8]), RememberedValue> = BTreeMap::new();
        let mut rows: BTreeMap<i64, &WaitingAppend> = BTreeMap::new();
        for append in batch {
            let WaitingAppend { entry, row, session, .. } = append;
            let number = seq(append);
            all.a.run.push(*row);
            all.a.fence.push(i64::try_from(entry.fence).unwrap_or(i64::MAX));
            all.a.seq.push(number);
            all.a.before.push(*before.entry(*row).or_insert(number.saturating_sub(1)));
            all.a.sum.push(sum(&entry.run_id, i64::from(number), &entry.event));
            all.a.event.push(entry.event.as_bytes());
            all.u.token.push(entry.answer_token.as_deref());
            all.u.decision.push(entry.decision.as_deref());
            for text in &entry.texts {
                let sha256 = sha256(text);
                all.n.run.push(*row);
                all.n.sha256.push(sha256.clone());
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
        (all.t.sha256, all.t.text) = texts.into_iter().unzip();
        for ((session, key), RememberedValue { run, value }) in memory {
            all.m.run.push(run);
            all.m.session.push(session);
            all.m.key.push(key);
            all.m.value.push(value);
        }
        for append in rows.into_values() {
            all.add_row(append, batch);
        }
        all
    }

    fn without_events(me: Uuid) -> Self {
        Self {
            a: EventColumns::default(),
            me,
            r: AppendedRowColumns::default(),
            s: RecordColumns::default(),
            lease_ms: milliseconds(CALLBACK_LEASE),
            u: UsedUpColumns::default(),
            t: TextColumns::default(),
            n: AppendedTextColumns::default(),
            m: MemoryColumns::default(),
        }
    }

    /// What the events of a run in this batch change in its row; `last` is the last of them that changes it.
    fn add_row(&mut self, last: &WaitingAppend, batch: &[WaitingAppend]) {
        let of_run = || batch.iter().filter(|append| append.row == last.row).map(|append| &append.entry);
        self.s.push(of_run().filter_map(|entry| entry.status_record.as_ref()).next_back());
        self.r.run.push(last.row);
        self.r.reopens.push(of_run().any(|entry| entry.reopens));
        self.r.releases.push(of_run().any(|entry| entry.release));
        self.r.events.push(i64::from(seq(last)).saturating_add(1));
    }

    fn extent(&self) -> AppendExtent {
        let Self { r, u, n, m, .. } = self;
        let is_more = !n.run.is_empty() || !m.run.is_empty();
        if is_more || u.token.iter().any(Option::is_some) || u.decision.iter().any(Option::is_some) {
            AppendExtent::All
        } else if r.run.is_empty() {
            AppendExtent::Events
        } else {
            AppendExtent::Rows
        }
    }

    /// Sends the statement; what it inserted.
    pub(super) async fn send(&self, database: &Database) -> Result<HashSet<(i64, i32)>, StatementFailure> {
        let inserted = database.writer.query_numbered(self.extent().statement(), &self.parameters()).await?;
        inserted.iter().map(|row| Ok((row.try_get("run")?, row.try_get("seq")?))).collect()
    }
}
