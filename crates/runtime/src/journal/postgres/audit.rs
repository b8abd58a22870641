//! What people did with the runs of the store, and the loops that were switched.

use tokio_postgres::types::Type;

use super::columns::columns;
use super::connection::{Parameter, text_of};
use super::database::Database;
use crate::journal::column_words::known;
use crate::journal::{AuditAction, AuditEntry, AuditFilter, AuditLine, LoopSwitch, StoreError};

columns! {
    /// The lines of the events of a batch.
    pub(super) struct AuditColumns<'a> {
        run: i64,
        at_ms: i64,
        action: &'a str,
        actor: Option<&'a str>,
        detail: Option<&'a str>,
    }
}

impl<'a> AuditColumns<'a> {
    /// Adds the line of an event, by the key of its run: all events of a run in a batch are written, or none.
    pub(super) fn add(&mut self, row: i64, entry: &'a AuditEntry) {
        self.run.push(row);
        self.at_ms.push(entry.at_ms);
        self.action.push(entry.action.word());
        self.actor.push(entry.actor.as_deref());
        self.detail.push(entry.detail.as_deref());
    }
}

const NOTE: &str = "
INSERT INTO @.audit (at_ms, action, actor, detail, run_id, loop_name, org, times)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[])";
/// `$1` is the name, `$2` whether it is off, `$3` since when, `$4` who, `$5` why, `$6` the action of the line.
const SWITCH: &str = "
WITH switched AS (
  INSERT INTO @.loop_switches (name, is_off, at_ms, actor, reason) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (name) DO UPDATE SET is_off = excluded.is_off, at_ms = excluded.at_ms, actor = excluded.actor,
    reason = excluded.reason)
INSERT INTO @.audit (at_ms, action, actor, loop_name) VALUES ($3, $6, $4, $1)";
const SWITCHES: &str = "SELECT name, is_off, at_ms, actor, reason FROM @.loop_switches ORDER BY name";
/// `$3` is an organisation, or the empty text for none.
macro_rules! lines {
    ($order:literal) => {
        concat!(
            "SELECT id, at_ms, action, actor, detail, run_id, loop_name, org, times FROM @.audit
WHERE ($1::bigint IS NULL OR at_ms >= $1) AND ($2::bigint IS NULL OR at_ms < $2)
  AND ($3::text IS NULL OR org = $3 OR ($3 = '' AND org IS NULL AND run_id IS NOT NULL))
  AND ($4::text IS NULL OR run_id = $4) AND ($5::text IS NULL OR actor = $5) AND ($6::text IS NULL OR action = $6)
  AND ($7::bigint IS NULL OR id < $7) AND ($9::bigint IS NULL OR id > $9)
ORDER BY id ",
            $order,
            " LIMIT $8"
        )
    };
}
const LINES: &str = lines!("DESC");
/// Those after a number, in their order.
const LINES_AFTER: &str = lines!("ASC");

impl Database {
    /// Writes lines. They may be there twice, if the answer of the database was lost.
    pub(super) async fn note_audit(&self, lines: Vec<AuditLine>) -> Result<(), StoreError> {
        let of = |text: fn(&AuditLine) -> Option<&str>| lines.iter().map(text).collect::<Vec<Option<&str>>>();
        let at_ms: Vec<i64> = lines.iter().map(|line| line.entry.at_ms).collect();
        let action: Vec<&str> = lines.iter().map(|line| line.entry.action.word()).collect();
        let actor = of(|line| line.entry.actor.as_deref());
        let detail = of(|line| line.entry.detail.as_deref());
        let run_id = of(|line| line.run_id.as_deref());
        let loop_name = of(|line| line.loop_name.as_deref());
        let org = of(|line| line.org.as_deref());
        let times: Vec<i64> = lines.iter().map(|line| i64::try_from(line.times).unwrap_or(i64::MAX)).collect();
        let parameters: [Parameter<'_>; 8] = [
            (&at_ms, Type::INT8_ARRAY),
            (&action, Type::TEXT_ARRAY),
            (&actor, Type::TEXT_ARRAY),
            (&detail, Type::TEXT_ARRAY),
            (&run_id, Type::TEXT_ARRAY),
            (&loop_name, Type::TEXT_ARRAY),
            (&org, Type::TEXT_ARRAY),
            (&times, Type::INT8_ARRAY),
        ];
        self.persist(|| async { self.quick.query(NOTE, &parameters).await.map(drop) }).await
    }

    /// Lines, the newest first, or those after a number in their order.
    pub(super) async fn audit(&self, filter: AuditFilter) -> Result<Vec<AuditLine>, StoreError> {
        let action = filter.action.map(AuditAction::word);
        let number = |id: u64| i64::try_from(id).unwrap_or(i64::MAX);
        let (before, after) = (filter.before.map(number), filter.after.map(number));
        let statement = if after.is_some() { LINES_AFTER } else { LINES };
        let most = i64::try_from(filter.most()).unwrap_or(i64::MAX);
        let parameters: [Parameter<'_>; 9] = [
            (&filter.since_ms, Type::INT8),
            (&filter.until_ms, Type::INT8),
            (&filter.org, Type::TEXT),
            (&filter.run_id, Type::TEXT),
            (&filter.actor, Type::TEXT),
            (&action, Type::TEXT),
            (&before, Type::INT8),
            (&most, Type::INT8),
            (&after, Type::INT8),
        ];
        let read = self.persist(|| async {
            let mut lines = Vec::new();
            for row in self.slow.query(statement, &parameters).await? {
                // A newer version may know more of them.
                let Ok(action) = known(row.try_get("action")?) else { continue };
                let (id, times): (i64, i64) = (row.try_get("id")?, row.try_get("times")?);
                lines.push(AuditLine {
                    id: u64::try_from(id).unwrap_or_default(),
                    entry: AuditEntry {
                        at_ms: row.try_get("at_ms")?,
                        action,
                        actor: row.try_get("actor")?,
                        detail: row.try_get("detail")?,
                    },
                    run_id: row.try_get("run_id")?,
                    loop_name: row.try_get("loop_name")?,
                    org: row.try_get("org")?,
                    times: u64::try_from(times).unwrap_or_default(),
                });
            }
            Ok(lines)
        });
        read.await
    }

    /// Switches a loop off, or on again.
    pub(super) async fn switch_loop(&self, switch: LoopSwitch) -> Result<(), StoreError> {
        let action = switch.line().entry.action.word();
        let reason = switch.reason.as_deref().map(str::as_bytes);
        let parameters: [Parameter<'_>; 6] = [
            (&switch.name, Type::TEXT),
            (&switch.is_off, Type::BOOL),
            (&switch.at_ms, Type::INT8),
            (&switch.actor, Type::TEXT),
            (&reason, Type::BYTEA),
            (&action, Type::TEXT),
        ];
        self.persist(|| async { self.quick.query(SWITCH, &parameters).await.map(drop) }).await
    }

    /// The loops that were switched, by name.
    pub(super) async fn switches(&self) -> Result<Vec<LoopSwitch>, StoreError> {
        let read = self.persist(|| async {
            let rows = self.quick.query(SWITCHES, &[]).await?;
            let switch = |row: &tokio_postgres::Row| -> Result<LoopSwitch, tokio_postgres::Error> {
                let reason: Option<Vec<u8>> = row.try_get("reason")?;
                let (name, is_off, at_ms) = (row.try_get("name")?, row.try_get("is_off")?, row.try_get("at_ms")?);
                Ok(LoopSwitch { name, is_off, at_ms, actor: row.try_get("actor")?, reason: reason.map(text_of) })
            };
            Ok(rows.iter().map(switch).collect::<Result<Vec<LoopSwitch>, _>>()?)
        });
        read.await
    }
}
