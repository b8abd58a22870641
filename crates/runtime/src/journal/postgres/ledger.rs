//! The ledger of spending limits, in its tables. The row of an account holds its sums: a reservation is one statement that locks the row,
//! and judges it as the last one left it.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::connection::Parameter;
use super::database::Database;
use super::database_errors::StatementError;
use crate::journal::StoreError;
use crate::journal::ledger::{
    AccountBalance, AccountTime, LedgerAccount, MOST_LEDGER_ACCOUNTS, MOST_OF_PART, MOST_SETTLED, MostSpent, RateShare,
    Reservation, Reserving, Settlement, SpentAmount,
};

/// Nothing is written when there is no room, and nothing a second time. What was spent in an earlier day or month counts no
/// more, and nothing that is of a clock that was ahead by more than one of them.
const RESERVE: &str = "
WITH account AS (
  INSERT INTO @.ledger AS l (account, from_ms, until_ms, stays_ms, most_tokens, most_nanos, settled_tokens, settled_nanos,
    reserved_tokens, reserved_nanos)
  SELECT $1, $2, $3, $4, $7, $8, 0, 0, $5, $6
  WHERE ($7::bigint IS NULL OR $5 <= $7) AND ($8::bigint IS NULL OR $6 <= $8)
    AND NOT EXISTS (SELECT 1 FROM @.reservations v WHERE v.account = $1 AND v.id = $9)
  ON CONFLICT (account) DO UPDATE SET from_ms = CASE WHEN l.from_ms >= $2 AND coalesce(l.from_ms < 2 * $3 - $2, TRUE) THEN l.from_ms ELSE $2 END,
    until_ms = CASE WHEN l.from_ms >= $2 AND coalesce(l.from_ms < 2 * $3 - $2, TRUE) THEN l.until_ms ELSE $3 END, stays_ms = $4, most_tokens = $7,
    most_nanos = $8,
    settled_tokens = CASE WHEN l.from_ms >= $2 AND coalesce(l.from_ms < 2 * $3 - $2, TRUE) THEN l.settled_tokens ELSE 0 END,
    settled_nanos = CASE WHEN l.from_ms >= $2 AND coalesce(l.from_ms < 2 * $3 - $2, TRUE) THEN l.settled_nanos ELSE 0 END,
    reserved_tokens = l.reserved_tokens + $5, reserved_nanos = l.reserved_nanos + $6
  WHERE ($7 IS NULL OR CASE WHEN l.from_ms >= $2 AND coalesce(l.from_ms < 2 * $3 - $2, TRUE) THEN l.settled_tokens ELSE 0 END + l.reserved_tokens + $5 <= $7)
    AND ($8 IS NULL OR CASE WHEN l.from_ms >= $2 AND coalesce(l.from_ms < 2 * $3 - $2, TRUE) THEN l.settled_nanos ELSE 0 END + l.reserved_nanos + $6 <= $8)
  RETURNING 1
)
INSERT INTO @.reservations (account, id, run_id, fence, tokens, nanos)
SELECT $1, $9, $10, $11, $5, $6 FROM account RETURNING 1";
/// What an account holds, and whether the reservation is there: the answer to the statement that made it may have been lost.
const BALANCE: &str = "
SELECT CASE WHEN l.from_ms >= $2 AND coalesce(l.from_ms < 2 * $4 - $2, TRUE) THEN l.settled_tokens ELSE 0 END, CASE WHEN l.from_ms >= $2 AND coalesce(l.from_ms < 2 * $4 - $2, TRUE) THEN l.settled_nanos ELSE 0 END,
  l.reserved_tokens, l.reserved_nanos,
  (SELECT min(part_ms) FROM @.ledger_parts p WHERE p.account = $1) + l.stays_ms,
  EXISTS (SELECT 1 FROM @.reservations v WHERE v.account = $1 AND v.id = $3)
FROM @.ledger l WHERE l.account = $1";
/// The parts that have left a rolling window, and those of a clock that was ahead by more than that.
const DROP_PARTS: &str = "
WITH gone AS (DELETE FROM @.ledger_parts WHERE account = $1 AND (part_ms <= $2 OR part_ms > $3) RETURNING tokens, nanos),
  of_gone AS (SELECT sum(tokens)::bigint AS tokens, sum(nanos)::bigint AS nanos FROM gone)
UPDATE @.ledger l SET settled_tokens = greatest(l.settled_tokens - g.tokens, 0),
  settled_nanos = greatest(l.settled_nanos - g.nanos, 0)
FROM of_gone g WHERE l.account = $1 AND g.tokens IS NOT NULL";
/// Gives back what drivers reserved that do not have the leases of their runs any more.
const GIVE_BACK: &str = "
WITH dead AS (
  DELETE FROM @.reservations v WHERE v.account = $1 AND NOT EXISTS (
    SELECT 1 FROM @.runs r JOIN @.drivers d ON d.driver = r.driver
    WHERE r.run_id = v.run_id AND r.fence = v.fence AND d.until > clock_timestamp())
  RETURNING tokens, nanos
), of_dead AS (SELECT sum(tokens)::bigint AS tokens, sum(nanos)::bigint AS nanos FROM dead)
UPDATE @.ledger l SET reserved_tokens = greatest(l.reserved_tokens - d.tokens, 0),
  reserved_nanos = greatest(l.reserved_nanos - d.nanos, 0)
FROM of_dead d WHERE l.account = $1 AND d.tokens IS NOT NULL RETURNING 1";
/// `$5` is the part of a rolling window. Only who removes the reservation counts what was used.
const SETTLE: &str = "
WITH held AS (DELETE FROM @.reservations WHERE account = $1 AND id = $2 RETURNING tokens, nanos),
part AS (
  INSERT INTO @.ledger_parts AS p (account, part_ms, tokens, nanos)
  SELECT $1, $5, $3, $4 FROM held WHERE $5::bigint IS NOT NULL
  ON CONFLICT (account, part_ms) DO UPDATE SET tokens = least(p.tokens + excluded.tokens, $7),
    nanos = least(p.nanos + excluded.nanos, $7)
)
UPDATE @.ledger l SET settled_tokens = least(l.settled_tokens + $3, $6), settled_nanos = least(l.settled_nanos + $4, $6),
  reserved_tokens = greatest(l.reserved_tokens - h.tokens, 0), reserved_nanos = greatest(l.reserved_nanos - h.nanos, 0)
FROM held h WHERE l.account = $1 RETURNING l.settled_tokens, l.settled_nanos";
const WARN: &str = "
UPDATE @.ledger SET warned_ms = $3 WHERE account = $1 AND (warned_ms IS NULL OR warned_ms < $2 OR warned_ms > $3 + 86400000)
RETURNING 1";
/// From when on a rate has room for tokens and for requests is in the columns of what is settled, in microseconds since 1970, by the clock of
/// the database: it is read once the row is locked.
const PACE: &str = "
INSERT INTO @.ledger AS l (account, from_ms, settled_tokens, settled_nanos, reserved_tokens, reserved_nanos)
SELECT $1, 0, n.us + $4 + $3, n.us + $4 + $2, 0, 0 FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) n
ON CONFLICT (account) DO UPDATE SET (settled_tokens, settled_nanos) = (
  SELECT CASE WHEN l.settled_tokens > n.us + $5 THEN n.us + $4 ELSE greatest(l.settled_tokens, n.us + $4) END + $3,
    CASE WHEN l.settled_nanos > n.us + $5 THEN n.us + $4 ELSE greatest(l.settled_nanos, n.us + $4) END + $2
  FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) n)
RETURNING greatest(l.settled_nanos - $2, l.settled_tokens - $3) - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
/// That with the largest share first: its tokens or its money, of which more of the most is used. What a driver reserved that died
/// is not counted.
const ACCOUNTS: &str = "
WITH held AS (
  SELECT l.account, CASE WHEN l.until_ms IS NOT NULL THEN l.from_ms END AS from_ms, l.until_ms, l.most_tokens, l.most_nanos,
    CASE WHEN l.until_ms <= $1 OR l.from_ms > $1 + l.until_ms - l.from_ms THEN 0 WHEN l.stays_ms IS NULL THEN l.settled_tokens ELSE coalesce(p.tokens, 0) END AS tokens,
    CASE WHEN l.until_ms <= $1 OR l.from_ms > $1 + l.until_ms - l.from_ms THEN 0 WHEN l.stays_ms IS NULL THEN l.settled_nanos ELSE coalesce(p.nanos, 0) END AS nanos,
    coalesce(v.tokens, 0) AS reserved_tokens, coalesce(v.nanos, 0) AS reserved_nanos
  FROM @.ledger l
  LEFT JOIN LATERAL (
    SELECT sum(tokens)::bigint AS tokens, sum(nanos)::bigint AS nanos FROM @.ledger_parts p
    WHERE p.account = l.account AND p.part_ms > $1 - l.stays_ms
      AND p.part_ms <= $1 + l.stays_ms) p ON true
  LEFT JOIN LATERAL (
    SELECT sum(v.tokens)::bigint AS tokens, sum(v.nanos)::bigint AS nanos FROM @.reservations v
    JOIN @.runs r ON r.run_id = v.run_id AND r.fence = v.fence
    JOIN @.drivers d ON d.driver = r.driver AND d.until > clock_timestamp()
    WHERE v.account = l.account) v ON true
  WHERE (l.until_ms IS NOT NULL OR l.stays_ms IS NOT NULL) AND ($3::text IS NULL OR strpos(l.account, $3) > 0)
)
SELECT account, from_ms, until_ms, most_tokens, most_nanos, tokens, nanos, reserved_tokens, reserved_nanos FROM held
ORDER BY greatest((tokens + reserved_tokens)::float8 / nullif(most_tokens, 0), (nanos + reserved_nanos)::float8 / nullif(most_nanos, 0))
  DESC NULLS LAST, account COLLATE \"C\" LIMIT $2";

fn amount(row: &Row, first: usize) -> Result<SpentAmount, tokio_postgres::Error> {
    Ok(SpentAmount { tokens: row.try_get(first)?, usd_nanos: row.try_get(first + 1)? })
}

impl Database {
    pub(super) async fn reserve(&self, new: Reservation) -> Result<Reserving, StoreError> {
        self.persist(|| async {
            if let Some(rolling) = new.time.rolling {
                let last_ms = rolling.last_ms();
                let of: [Parameter<'_>; 3] =
                    [(&new.account, Type::TEXT), (&rolling.gone_ms, Type::INT8), (&last_ms, Type::INT8)];
                self.quick.query(DROP_PARTS, &of).await?;
            }
            if self.is_reserved(&new).await? {
                return Ok(Reserving::Reserved);
            }
            let given = self.quick.query(GIVE_BACK, &[(&new.account, Type::TEXT)]).await?;
            if !given.is_empty() && self.is_reserved(&new).await? {
                return Ok(Reserving::Reserved);
            }
            let of: [Parameter<'_>; 4] = [
                (&new.account, Type::TEXT),
                (&new.time.from_ms, Type::INT8),
                (&new.id, Type::TEXT),
                (&new.time.until_ms, Type::INT8),
            ];
            let rows = self.quick.query(BALANCE, &of).await?;
            let Some(row) = rows.first() else { return Ok(Reserving::Full(AccountBalance::default())) };
            if row.try_get(5)? {
                return Ok(Reserving::Reserved);
            }
            let (settled, reserved) = (amount(row, 0)?, amount(row, 2)?);
            Ok(Reserving::Full(AccountBalance { settled, reserved, frees_at_ms: row.try_get(4)? }))
        })
        .await
    }

    async fn is_reserved(&self, new: &Reservation) -> Result<bool, StatementError> {
        let AccountTime { from_ms, until_ms, rolling } = new.time;
        let stays_ms = rolling.map(|rolling| rolling.stays_ms);
        let fence = i64::try_from(new.fence).unwrap_or(i64::MAX);
        let parameters: [Parameter<'_>; 11] = [
            (&new.account, Type::TEXT),
            (&from_ms, Type::INT8),
            (&until_ms, Type::INT8),
            (&stays_ms, Type::INT8),
            (&new.amount.tokens, Type::INT8),
            (&new.amount.usd_nanos, Type::INT8),
            (&new.most.tokens, Type::INT8),
            (&new.most.usd_nanos, Type::INT8),
            (&new.id, Type::TEXT),
            (&new.run_id, Type::TEXT),
            (&fence, Type::INT8),
        ];
        Ok(!self.quick.query(RESERVE, &parameters).await?.is_empty())
    }

    pub(super) async fn settle_spending(&self, settlement: Settlement) -> Result<bool, StoreError> {
        let part_ms = settlement.time.rolling.map(|rolling| rolling.now_ms);
        let settled = self.persist(|| async {
            let parameters: [Parameter<'_>; 7] = [
                (&settlement.account, Type::TEXT),
                (&settlement.id, Type::TEXT),
                (&settlement.used.tokens, Type::INT8),
                (&settlement.used.usd_nanos, Type::INT8),
                (&part_ms, Type::INT8),
                (&MOST_SETTLED, Type::INT8),
                (&MOST_OF_PART, Type::INT8),
            ];
            let rows = self.quick.query(SETTLE, &parameters).await?;
            Ok(rows.first().map(|row| amount(row, 0)).transpose()?)
        });
        if !settled.await?.is_some_and(|settled| settlement.is_warned_at(settled)) {
            return Ok(false);
        }
        let warned: [Parameter<'_>; 3] = [
            (&settlement.account, Type::TEXT),
            (&settlement.warned_since_ms, Type::INT8),
            (&settlement.now_ms, Type::INT8),
        ];
        self.persist(|| async { Ok(!self.quick.query(WARN, &warned).await?.is_empty()) }).await
    }

    pub(super) async fn pace(&self, share: RateShare) -> Result<i64, StoreError> {
        self.persist(|| async {
            let parameters: [Parameter<'_>; 5] = [
                (&share.account, Type::TEXT),
                (&share.requests_us, Type::INT8),
                (&share.tokens_us, Type::INT8),
                (&share.hold_us, Type::INT8),
                (&share.far_us, Type::INT8),
            ];
            let rows = self.quick.query(PACE, &parameters).await?;
            Ok(rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default())
        })
        .await
    }

    pub(super) async fn ledger(&self, now_ms: i64, part: Option<String>) -> Result<Vec<LedgerAccount>, StoreError> {
        let most = i64::try_from(MOST_LEDGER_ACCOUNTS).unwrap_or(i64::MAX);
        self.persist(|| async {
            let of: [Parameter<'_>; 3] = [(&now_ms, Type::INT8), (&most, Type::INT8), (&part, Type::TEXT)];
            let rows = self.slow.query(ACCOUNTS, &of).await?;
            let account = |row: &Row| -> Result<LedgerAccount, StatementError> {
                let balance = AccountBalance { settled: amount(row, 5)?, reserved: amount(row, 7)?, frees_at_ms: None };
                let most = MostSpent { tokens: row.try_get(3)?, usd_nanos: row.try_get(4)? };
                let (from_ms, until_ms) = (row.try_get(1)?, row.try_get(2)?);
                Ok(LedgerAccount { account: row.try_get(0)?, from_ms, until_ms, balance, most })
            };
            rows.iter().map(account).collect()
        })
        .await
    }
}
