//! The ledger of spending limits, in its tables. The writer's transaction keeps two reservations from taking the same room.

use rusqlite::{Connection, OptionalExtension, params};

use super::database_errors::RequestError;
use super::drivers::Drivers;
use super::write_request::{Transaction, WriteRequest};
use crate::journal::ledger::{
    AccountBalance, AccountTime, LedgerAccount, MOST_LEDGER_ACCOUNTS, MOST_OF_PART, MOST_SETTLED, MostSpent, RateShare,
    Reservation, Reserving, Settlement, SpentAmount,
};

/// Nothing is written when there is no room. What was spent in an earlier day or month counts no more, and nothing that is of a clock
/// that was ahead by more than one of them.
const RESERVE: &str = "
INSERT INTO ledger (account, from_ms, until_ms, stays_ms, most_tokens, most_nanos, settled_tokens, settled_nanos,
  reserved_tokens, reserved_nanos)
SELECT ?1, ?2, ?3, ?4, ?7, ?8, 0, 0, ?5, ?6 WHERE (?7 IS NULL OR ?5 <= ?7) AND (?8 IS NULL OR ?6 <= ?8)
ON CONFLICT (account) DO UPDATE SET from_ms = CASE WHEN from_ms >= ?2 AND coalesce(from_ms < 2 * ?3 - ?2, TRUE) THEN from_ms ELSE ?2 END,
  until_ms = CASE WHEN from_ms >= ?2 AND coalesce(from_ms < 2 * ?3 - ?2, TRUE) THEN until_ms ELSE ?3 END,
  stays_ms = ?4, most_tokens = ?7, most_nanos = ?8,
  settled_tokens = CASE WHEN from_ms >= ?2 AND coalesce(from_ms < 2 * ?3 - ?2, TRUE) THEN settled_tokens ELSE 0 END,
  settled_nanos = CASE WHEN from_ms >= ?2 AND coalesce(from_ms < 2 * ?3 - ?2, TRUE) THEN settled_nanos ELSE 0 END,
  reserved_tokens = reserved_tokens + ?5, reserved_nanos = reserved_nanos + ?6
WHERE (?7 IS NULL OR CASE WHEN from_ms >= ?2 AND coalesce(from_ms < 2 * ?3 - ?2, TRUE) THEN settled_tokens ELSE 0 END
    + reserved_tokens + ?5 <= ?7)
  AND (?8 IS NULL OR CASE WHEN from_ms >= ?2 AND coalesce(from_ms < 2 * ?3 - ?2, TRUE) THEN settled_nanos ELSE 0 END
    + reserved_nanos + ?6 <= ?8)";
const PUT: &str =
    "INSERT INTO reservations (account, id, run_id, fence, tokens, nanos) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const BALANCE: &str = "
SELECT CASE WHEN from_ms >= ?2 AND coalesce(from_ms < 2 * ?3 - ?2, TRUE) THEN settled_tokens ELSE 0 END,
  CASE WHEN from_ms >= ?2 AND coalesce(from_ms < 2 * ?3 - ?2, TRUE) THEN settled_nanos ELSE 0 END,
  reserved_tokens, reserved_nanos, (SELECT min(part_ms) FROM ledger_parts p WHERE p.account = l.account) + stays_ms
FROM ledger l WHERE account = ?1";
/// The parts that have left a rolling window, and those of a clock that was ahead by more than that.
const GONE: &str = "
SELECT coalesce(sum(tokens), 0), coalesce(sum(nanos), 0) FROM ledger_parts
WHERE account = ?1 AND (part_ms <= ?2 OR part_ms > ?3)";
const DROP_GONE: &str = "DELETE FROM ledger_parts WHERE account = ?1 AND (part_ms <= ?2 OR part_ms > ?3)";
const UNSETTLE: &str = "
UPDATE ledger SET settled_tokens = max(settled_tokens - ?2, 0), settled_nanos = max(settled_nanos - ?3, 0) WHERE account = ?1";
/// The reservations of an account, each with the driver that has its lease.
const OPEN: &str = "
SELECT v.id, v.tokens, v.nanos, r.driver FROM reservations v
LEFT JOIN runs r ON r.run_id = v.run_id AND r.fence = v.fence WHERE v.account = ?1";
const REMOVE: &str = "DELETE FROM reservations WHERE account = ?1 AND id = ?2 RETURNING tokens, nanos";
const SETTLE: &str = "
UPDATE ledger SET settled_tokens = min(settled_tokens + ?2, ?6), settled_nanos = min(settled_nanos + ?3, ?6),
  reserved_tokens = max(reserved_tokens - ?4, 0), reserved_nanos = max(reserved_nanos - ?5, 0)
WHERE account = ?1 RETURNING settled_tokens, settled_nanos";
const ADD_PART: &str = "
INSERT INTO ledger_parts (account, part_ms, tokens, nanos) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (account, part_ms) DO UPDATE SET tokens = min(tokens + ?3, ?5), nanos = min(nanos + ?4, ?5)";
const WARN: &str = "
UPDATE ledger SET warned_ms = ?3 WHERE account = ?1 AND (warned_ms IS NULL OR warned_ms < ?2 OR warned_ms > ?3 + 86400000)";
/// From when on a rate has room for tokens and for requests is in the columns of what is settled, in microseconds since 1970.
const PACE: &str = "
INSERT INTO ledger (account, from_ms, settled_tokens, settled_nanos, reserved_tokens, reserved_nanos)
VALUES (?1, 0, ?2 + ?5 + ?4, ?2 + ?5 + ?3, 0, 0)
ON CONFLICT (account) DO UPDATE SET
  settled_tokens = CASE WHEN settled_tokens > ?2 + ?6 THEN ?2 + ?5 ELSE max(settled_tokens, ?2 + ?5) END + ?4,
  settled_nanos = CASE WHEN settled_nanos > ?2 + ?6 THEN ?2 + ?5 ELSE max(settled_nanos, ?2 + ?5) END + ?3
RETURNING max(settled_nanos - ?3, settled_tokens - ?4) - ?2";
/// That with the largest share first: its tokens or its money, of which more of the most is used.
const ACCOUNTS: &str = "
WITH held AS (
  SELECT account, from_ms, until_ms, most_tokens, most_nanos, reserved_tokens, reserved_nanos,
    CASE WHEN until_ms <= ?1 OR from_ms > ?1 + until_ms - from_ms THEN 0 WHEN stays_ms IS NULL THEN settled_tokens ELSE
      (SELECT coalesce(sum(tokens), 0) FROM ledger_parts p
       WHERE p.account = l.account AND part_ms > ?1 - stays_ms AND part_ms <= ?1 + stays_ms) END AS tokens,
    CASE WHEN until_ms <= ?1 OR from_ms > ?1 + until_ms - from_ms THEN 0 WHEN stays_ms IS NULL THEN settled_nanos ELSE
      (SELECT coalesce(sum(nanos), 0) FROM ledger_parts p
       WHERE p.account = l.account AND part_ms > ?1 - stays_ms AND part_ms <= ?1 + stays_ms) END AS nanos
  FROM ledger l WHERE (until_ms IS NOT NULL OR stays_ms IS NOT NULL) AND (?3 IS NULL OR instr(account, ?3) > 0)
)
SELECT account, from_ms, until_ms, most_tokens, most_nanos, tokens, nanos FROM held
ORDER BY max(coalesce(1.0 * (tokens + reserved_tokens) / most_tokens, 0),
  coalesce(1.0 * (nanos + reserved_nanos) / most_nanos, 0)) DESC, account LIMIT ?2";

/// A reservation of an account.
struct OpenRow {
    id: String,
    amount: SpentAmount,
    /// The driver that has its lease.
    driver: Option<String>,
}

fn open(connection: &Connection, account: &str) -> rusqlite::Result<Vec<OpenRow>> {
    let mut query = connection.prepare_cached(OPEN)?;
    let rows = query.query_map([account], |row| {
        let amount = SpentAmount { tokens: row.get(1)?, usd_nanos: row.get(2)? };
        Ok(OpenRow { id: row.get(0)?, amount, driver: row.get(3)? })
    })?;
    rows.collect()
}

impl Reservation {
    fn is_taken(&self, connection: &Connection) -> rusqlite::Result<bool> {
        let AccountTime { from_ms, until_ms, rolling } = self.time;
        let stays_ms = rolling.map(|rolling| rolling.stays_ms);
        let SpentAmount { tokens, usd_nanos } = self.amount;
        let MostSpent { tokens: most_tokens, usd_nanos: most_nanos } = self.most;
        let parameters = params![self.account, from_ms, until_ms, stays_ms, tokens, usd_nanos, most_tokens, most_nanos];
        Ok(connection.prepare_cached(RESERVE)?.execute(parameters)? == 1)
    }

    /// What was spent in parts that have left the window counts no more.
    fn drop_parts(&self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(rolling) = self.time.rolling else { return Ok(()) };
        let of = params![self.account, rolling.gone_ms, rolling.last_ms()];
        let (tokens, nanos): (i64, i64) =
            connection.prepare_cached(GONE)?.query_row(of, |row| Ok((row.get(0)?, row.get(1)?)))?;
        if connection.prepare_cached(DROP_GONE)?.execute(of)? > 0 {
            connection.prepare_cached(UNSETTLE)?.execute(params![self.account, tokens, nanos])?;
        }
        Ok(())
    }

    /// Gives back what drivers reserved that do not have the leases of their runs any more. Returns whether there was any.
    fn give_back(&self, transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
        let connection = transaction.connection;
        let living = transaction.leases.protected(connection, false)?;
        let is_held = |open: &OpenRow| open.driver.as_ref().is_some_and(|driver| living.contains(driver));
        let mut given = false;
        for dead in open(connection, &self.account)?.iter().filter(|open| !is_held(open)) {
            remove(connection, &self.account, &dead.id, SpentAmount::default())?;
            given = true;
        }
        Ok(given)
    }
}

/// Ends a reservation, and counts what was used. Returns what is settled in the account; none where there is no such reservation.
fn remove(
    connection: &Connection,
    account: &str,
    id: &str,
    used: SpentAmount,
) -> rusqlite::Result<Option<SpentAmount>> {
    let amount = |row: &rusqlite::Row<'_>| Ok(SpentAmount { tokens: row.get(0)?, usd_nanos: row.get(1)? });
    let held = connection.prepare_cached(REMOVE)?.query_row([account, id], amount).optional()?;
    let Some(held) = held else { return Ok(None) };
    let parameters = params![account, used.tokens, used.usd_nanos, held.tokens, held.usd_nanos, MOST_SETTLED];
    connection.prepare_cached(SETTLE)?.query_row(parameters, amount).optional()
}

impl WriteRequest for Reservation {
    type Answer = Reserving;

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<Reserving, RequestError> {
        let connection = transaction.connection;
        self.drop_parts(connection)?;
        let is_taken = self.is_taken(connection)? || (self.give_back(transaction)? && self.is_taken(connection)?);
        if !is_taken {
            let balance = connection.prepare_cached(BALANCE)?.query_row(
                params![self.account, self.time.from_ms, self.time.until_ms],
                |row| {
                    Ok(AccountBalance {
                        settled: SpentAmount { tokens: row.get(0)?, usd_nanos: row.get(1)? },
                        reserved: SpentAmount { tokens: row.get(2)?, usd_nanos: row.get(3)? },
                        frees_at_ms: row.get(4)?,
                    })
                },
            );
            return Ok(Reserving::Full(balance.optional()?.unwrap_or_default()));
        }
        let fence = i64::try_from(self.fence).unwrap_or(i64::MAX);
        let SpentAmount { tokens, usd_nanos } = self.amount;
        let parameters = params![self.account, self.id, self.run_id, fence, tokens, usd_nanos];
        connection.prepare_cached(PUT)?.execute(parameters)?;
        Ok(Reserving::Reserved)
    }
}

impl WriteRequest for RateShare {
    type Answer = i64;

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<i64, RequestError> {
        let Self { account, now_us, requests_us, tokens_us, hold_us, far_us } = self;
        let parameters = params![account, now_us, requests_us, tokens_us, hold_us, far_us];
        Ok(transaction.connection.prepare_cached(PACE)?.query_row(parameters, |row| row.get(0))?)
    }
}

impl WriteRequest for Settlement {
    type Answer = bool;

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<bool, RequestError> {
        let connection = transaction.connection;
        let Some(settled) = remove(connection, &self.account, &self.id, self.used)? else { return Ok(false) };
        if let Some(rolling) = self.time.rolling {
            let SpentAmount { tokens, usd_nanos } = self.used;
            let part = params![self.account, rolling.now_ms, tokens, usd_nanos, MOST_OF_PART];
            connection.prepare_cached(ADD_PART)?.execute(part)?;
        }
        if !self.is_warned_at(settled) {
            return Ok(false);
        }
        let warned = params![self.account, self.warned_since_ms, self.now_ms];
        Ok(connection.prepare_cached(WARN)?.execute(warned)? == 1)
    }
}

impl Drivers {
    /// The accounts whose names contain a text. What a driver reserved that died is not counted.
    pub(super) fn ledger(
        &self,
        connection: &Connection,
        now_ms: i64,
        part: Option<&str>,
    ) -> Result<Vec<LedgerAccount>, RequestError> {
        let most = i64::try_from(MOST_LEDGER_ACCOUNTS).unwrap_or(i64::MAX);
        let mut query = connection.prepare_cached(ACCOUNTS)?;
        let mut rows = query.query(params![now_ms, most, part])?;
        let mut accounts = Vec::new();
        while let Some(row) = rows.next()? {
            let (account, from_ms, until_ms): (String, i64, Option<i64>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let is_held = |open: &OpenRow| open.driver.as_ref().is_some_and(|driver| self.alive(driver));
            let held = open(connection, &account)?.into_iter().filter(is_held);
            let reserved = held.fold(SpentAmount::default(), |sum, open| sum.plus(open.amount));
            let settled = SpentAmount { tokens: row.get(5)?, usd_nanos: row.get(6)? };
            accounts.push(LedgerAccount {
                account,
                from_ms: until_ms.map(|_| from_ms),
                until_ms,
                balance: AccountBalance { settled, reserved, frees_at_ms: None },
                most: MostSpent { tokens: row.get(3)?, usd_nanos: row.get(4)? },
            });
        }
        Ok(accounts)
    }
}
