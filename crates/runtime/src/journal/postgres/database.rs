//! What all statements share: the connections, the leases, and the beat that renews them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_postgres::types::Type;
use uuid::Uuid;

use super::connection::{Link, Parameter, persist, text_of};
use super::database_errors::StatementError;
use super::leases::HeldRows;
use super::pooler;
use super::schema;
use super::target::PostgresTarget;
use crate::journal::admin::MOST_NAMED_RUNS;
use crate::journal::lease_clock::Clock;
use crate::journal::{CancelRequest, StoreError, Worker};

/// The interval of the beat: requests to end runs are looked up each time, leases each fourth time.
const BEAT_INTERVAL: Duration = Duration::from_millis(250);
/// How long the last look-up of requests is the answer.
pub(super) const REQUESTS_LAST_MS: u64 = 750;
/// While the database can't be reached, the log says so this often.
const OUTAGE_LOG_INTERVAL_MS: u64 = 60_000;
/// How long a driver that leaves waits for the database.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(3);

/// Returns whether the lease was over by the database's clock; null for a new driver.
const RENEW: &str = "
WITH old AS (SELECT until <= clock_timestamp() AS is_over FROM @.drivers WHERE driver = $1)
INSERT INTO @.drivers (driver, until, host, version, folder, process, address, clock_ahead_ms)
VALUES ($1, clock_timestamp() + $2 * interval '1 ms', $3, $4, $5, $6, $7, $8)
ON CONFLICT (driver) DO UPDATE SET until = excluded.until, folder = excluded.folder, address = excluded.address,
  clock_ahead_ms = excluded.clock_ahead_ms
RETURNING (SELECT is_over FROM old), (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
/// How much the clock of this machine may differ from the database's before the log says so.
const NOTED_CLOCK_DIFFERENCE: Duration = Duration::from_secs(5);
/// From this difference on, this process drives no runs: schedules and deadlines would be those of another time.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(60);
const INTRODUCE: &str = "UPDATE @.drivers SET folder = $2, address = $3 WHERE driver = $1";
/// Those that died without runs are left out.
const WORKERS: &str = "
SELECT d.driver::text, d.driver = $1, d.until > clock_timestamp(), d.host, d.version, convert_from(d.folder, 'UTF8'),
  (extract(epoch FROM d.since) * 1000)::bigint,
  ($2 + extract(epoch FROM clock_timestamp() - d.until) * 1000)::bigint, h.driven,
  ARRAY (SELECT r.run_id FROM @.runs r WHERE r.driver = d.driver ORDER BY r.id LIMIT $3), d.process, d.address, d.clock_ahead_ms
FROM @.drivers d CROSS JOIN LATERAL (SELECT count(*) AS driven FROM @.runs r WHERE r.driver = d.driver) h
WHERE d.until > clock_timestamp() OR h.driven > 0 ORDER BY d.since, d.driver";
/// The rows of drivers that died long ago: their runs are free.
const BURY: &str = "DELETE FROM @.drivers WHERE until < clock_timestamp() - interval '1 day'";
const MINE: &str = "SELECT run_id, id, fence FROM @.runs WHERE driver = $1";
const CANCELS: &str = "SELECT run_id, cancel_reason, cancel_by FROM @.runs WHERE driver = $1 AND cancel_requested";
/// The runs of a driver about which decisions wait.
const DECIDED: &str = "
SELECT DISTINCT r.run_id FROM @.decisions d JOIN @.runs r ON r.id = d.run WHERE r.driver = $1 AND d.refused IS NULL";
const LET_GO: &str = "UPDATE @.runs SET driver = NULL WHERE id = $1 AND fence = $2 AND driver = $3";
const LEAVE: &str = "DELETE FROM @.drivers WHERE driver = $1";

/// The database of a store, and what this driver has of it.
pub(super) struct Database {
    pub(super) target: Arc<PostgresTarget>,
    /// Appends.
    pub(super) writer: Link,
    /// What is asked between two steps, and writes about one run.
    pub(super) quick: Link,
    /// Lists and whole journals.
    pub(super) slow: Link,
    /// The lease.
    heart: Link,
    pub(super) held: HeldRows,
    /// The name of this driver.
    pub(super) me: Uuid,
    pub(super) clock: Clock,
    is_registered: AtomicBool,
    /// The digest of the folder that this process serves.
    folder: Mutex<Option<String>>,
    /// Where it listens.
    address: Mutex<Option<String>>,
    /// How far the clock of this machine was ahead of the database's when they were compared last, in milliseconds.
    ahead_ms: AtomicI64,
    renewing: tokio::sync::Mutex<()>,
    /// When the connection was lost last, or the lease was over before it was renewed: no run of another driver is
    /// claimed for one lease from then on.
    interrupted_at_ms: AtomicU64,
    /// How often the connection of the lease was lost when that was looked up last.
    lost_connections: AtomicU64,
    /// Whether the log says that the clocks differ.
    is_difference_noted: AtomicBool,
    /// Whether the last beat had no answer, and no statement has had one since.
    is_away: AtomicBool,
}

impl Database {
    /// Opens the database.
    pub(super) async fn open(target: PostgresTarget, clock: Clock) -> Result<Self, StoreError> {
        let target = Arc::new(target);
        let heart = Link::new(Arc::clone(&target), schema::LEASE);
        let ttl = schema::open(&heart, &target).await.map_err(|trouble| trouble.while_opening(&target))?;
        // There is time for a second attempt while the lease lasts, and patience with the statement.
        let answered_in = ttl / 2;
        heart.set_time(answered_in);
        let quick = Link::new(Arc::clone(&target), answered_in);
        pooler::refuse_mixed(&heart, &quick, &target, ttl).await?;
        Ok(Self {
            writer: Link::planned_once(Arc::clone(&target), answered_in),
            quick,
            slow: Link::new(Arc::clone(&target), answered_in),
            heart,
            held: HeldRows::new(clock.clone(), ttl),
            target,
            me: Uuid::now_v7(),
            clock,
            is_registered: AtomicBool::new(false),
            folder: Mutex::default(),
            address: Mutex::default(),
            ahead_ms: AtomicI64::new(0),
            renewing: tokio::sync::Mutex::default(),
            interrupted_at_ms: AtomicU64::new(0),
            lost_connections: AtomicU64::new(0),
            is_difference_noted: AtomicBool::new(false),
            is_away: AtomicBool::new(false),
        })
    }

    /// Sends a statement until its outcome is known, at most for as long as a lease lasts. A database that answers something may
    /// take longer for a statement.
    pub(super) async fn persist<T, F: Future<Output = Result<T, StatementError>>>(
        &self,
        send: impl Fn() -> F,
    ) -> Result<T, StoreError> {
        let done = self.unless_away(persist(self.held.ttl(), send)).await;
        if done.is_ok() {
            self.is_away.store(false, Ordering::SeqCst);
        }
        done
    }

    /// What is waited for; a fault when it takes longer than a lease lasts, and the database answers nothing at all: the time for
    /// an answer doubles with each that does not come, and statements wait for the connection, one behind the other.
    pub(super) async fn unless_away<T>(
        &self,
        waited: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let ttl = self.held.ttl();
        let away = async {
            tokio::time::sleep(ttl).await;
            while !self.is_away.load(Ordering::SeqCst) {
                tokio::time::sleep(BEAT_INTERVAL).await;
            }
        };
        tokio::select! {
            biased;
            done = waited => done,
            () = away => Err(StoreError::Unreachable(format!("no answer in {} ms", ttl.as_millis()))),
        }
    }

    /// Returns with a lease that is fresh; registers this driver if needed.
    pub(super) async fn ensure(&self) -> Result<(), StoreError> {
        if self.is_registered.load(Ordering::SeqCst) && !self.held.is_due() {
            return Ok(());
        }
        self.persist(|| self.renew()).await
    }

    async fn renew(&self) -> Result<(), StatementError> {
        let _alone = self.renewing.lock().await;
        if self.is_registered.load(Ordering::SeqCst) && !self.held.is_due() {
            return Ok(());
        }
        if !self.is_registered.load(Ordering::SeqCst) {
            self.compare_clocks().await?;
        }
        // The clocks are read before the row is written: nobody relies on the lease for longer than others respect it.
        let (sent, was_fresh) = (self.held.now(), self.held.is_fresh());
        let ttl_ms = f64::from(u32::try_from(self.held.ttl().as_millis()).unwrap_or(u32::MAX));
        let (host, version, folder) = (host(), env!("CARGO_PKG_VERSION"), self.folder());
        let process = i64::from(std::process::id());
        let (address, ahead_ms) = (self.address(), self.ahead_ms.load(Ordering::SeqCst));
        let renewed = self
            .heart
            .query(
                RENEW,
                &[
                    (&self.me, Type::UUID),
                    (&ttl_ms, Type::FLOAT8),
                    (&host, Type::TEXT),
                    (&version, Type::TEXT),
                    (&folder, Type::BYTEA),
                    (&process, Type::INT8),
                    (&address, Type::TEXT),
                    (&ahead_ms, Type::INT8),
                ],
            )
            .await?;
        if let Some(row) = renewed.first() {
            let ahead_ms = difference_ms(sent.0, self.held.now().0, row.try_get(1)?);
            self.ahead_ms.store(ahead_ms, Ordering::SeqCst);
            self.note_difference(ahead_ms);
        }
        let was_over: Option<bool> = renewed.first().map_or(Ok(None), |row| row.try_get(0))?;
        if was_over == Some(true) {
            self.interrupted();
        }
        if !self.is_registered.swap(true, Ordering::SeqCst) {
            self.heart.query(BURY, &[]).await?;
        } else if !was_fresh {
            // Others may have taken some of the runs.
            let mine = self.mine().await?;
            for (run_id, held) in self.held.all() {
                if mine.get(&run_id).is_none_or(|(_, fence)| *fence != held.fence) {
                    self.held.lost(&run_id, held.fence);
                }
            }
        }
        self.held.renewed(sent);
        Ok(())
    }

    /// Compares the clock of this machine with the database's before this process drives anything.
    async fn compare_clocks(&self) -> Result<(), StatementError> {
        let sent_ms = self.held.now().0;
        let rows = self.heart.query(CLOCK, &[]).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let difference_ms = difference_ms(sent_ms, self.held.now().0, row.try_get(0)?);
        self.ahead_ms.store(difference_ms, Ordering::SeqCst);
        if difference_ms.unsigned_abs() < milliseconds(MAX_CLOCK_DIFFERENCE) {
            return Ok(());
        }
        let why = format!(
            "the clock of this machine is {} that of the database, and a process whose clock differs by {} s or more \
             drives no runs: set the clock (NTP)",
            difference(difference_ms),
            MAX_CLOCK_DIFFERENCE.as_secs()
        );
        Err(self.target.refuse(&why).into())
    }

    /// Says once that the clocks differ, and once that they don't any more.
    fn note_difference(&self, difference_ms: i64) {
        let differs = difference_ms.unsigned_abs() >= milliseconds(NOTED_CLOCK_DIFFERENCE);
        if self.is_difference_noted.swap(differs, Ordering::SeqCst) == differs {
            return;
        }
        let store = self.target.shown();
        if differs {
            tracing::warn!(
                store,
                "the clock of this machine is {} that of the database: schedules start early or late; set the clock (NTP)",
                difference(difference_ms)
            );
        } else {
            tracing::info!(store, "the clock of this machine is that of the database again");
        }
    }

    fn folder(&self) -> Option<Vec<u8>> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner).clone().map(String::into_bytes)
    }

    fn address(&self) -> Option<String> {
        self.address.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes which folder this process serves, and where it listens.
    pub(super) async fn introduce(&self, folder: String, address: Option<String>) -> Result<(), StoreError> {
        *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = address;
        self.ensure().await?;
        let (folder, address) = (self.folder(), self.address());
        let parameters: [Parameter<'_>; 3] = [(&self.me, Type::UUID), (&folder, Type::BYTEA), (&address, Type::TEXT)];
        self.persist(|| async { self.heart.query(INTRODUCE, &parameters).await.map(drop) }).await
    }

    /// The drivers that live, and those that died with runs.
    pub(super) async fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        let ttl_ms = i64::try_from(self.held.ttl().as_millis()).unwrap_or(i64::MAX);
        let most = i64::try_from(MOST_NAMED_RUNS).unwrap_or(i64::MAX);
        let parameters: [Parameter<'_>; 3] = [(&self.me, Type::UUID), (&ttl_ms, Type::INT8), (&most, Type::INT8)];
        let listed = self.persist(|| async {
            let mut workers = Vec::new();
            for row in self.slow.query(WORKERS, &parameters).await? {
                let (silent_ms, driven): (i64, i64) = (row.try_get(7)?, row.try_get(8)?);
                workers.push(Worker {
                    name: row.try_get(0)?,
                    is_self: row.try_get(1)?,
                    is_alive: row.try_get(2)?,
                    host: row.try_get(3)?,
                    process: row.try_get::<_, Option<i64>>(10)?.and_then(|process| u32::try_from(process).ok()),
                    address: row.try_get(11)?,
                    clock_ahead_ms: row.try_get(12)?,
                    version: row.try_get(4)?,
                    folder: row.try_get(5)?,
                    since_ms: row.try_get(6)?,
                    silent_ms: Some(silent_ms.max(0)),
                    driven: u64::try_from(driven).unwrap_or_default(),
                    runs: row.try_get(9)?,
                });
            }
            Ok(workers)
        });
        listed.await
    }

    /// The runs that are this driver's by the database: the key and the fence of each.
    async fn mine(&self) -> Result<HashMap<String, (i64, u64)>, StatementError> {
        let mut mine = HashMap::new();
        for row in self.heart.query(MINE, &[(&self.me, Type::UUID)]).await? {
            let fence: i64 = row.try_get(2)?;
            mine.insert(row.try_get(0)?, (row.try_get(1)?, u64::try_from(fence).unwrap_or_default()));
        }
        Ok(mine)
    }

    /// Renews the lease, looks up requests to end runs, and compares the runs of this driver with those that the
    /// database says are its, for as long as the store is open.
    pub(super) async fn beat(self: Arc<Self>) {
        let mut strays: HashMap<String, (i64, u64)> = HashMap::new();
        let mut beats = 0_u32;
        let mut outage: Option<StoreOutage> = None;
        loop {
            tokio::time::sleep(BEAT_INTERVAL).await;
            if !self.is_registered.load(Ordering::SeqCst) {
                continue;
            }
            beats = beats.wrapping_add(1);
            let now_ms = self.clock.monotonic_ms();
            match self.one_beat(beats.is_multiple_of(4), &mut strays).await {
                // A beat without a question has not reached it.
                Ok(false) => {}
                Ok(true) => {
                    self.is_away.store(false, Ordering::SeqCst);
                    if let Some(StoreOutage { since_ms, tries, .. }) = outage.take() {
                        let ms = self.clock.monotonic_ms().saturating_sub(since_ms);
                        tracing::warn!(store = self.target.shown(), tries, ms, "the database can be reached again");
                    }
                }
                Err(trouble) => {
                    self.is_away.store(true, Ordering::SeqCst);
                    let known = outage.get_or_insert(StoreOutage { since_ms: now_ms, tries: 0, said_ms: None });
                    known.tries += 1;
                    if known.said_ms.is_none_or(|said_ms| now_ms.saturating_sub(said_ms) >= OUTAGE_LOG_INTERVAL_MS) {
                        known.said_ms = Some(now_ms);
                        let (store, tries) = (self.target.shown(), known.tries);
                        tracing::warn!(store, tries, "the database can't be reached: {}", trouble.into_fault());
                    }
                }
            }
            self.notice_lost_connections();
        }
    }

    /// Whether the database was asked anything.
    async fn one_beat(&self, compares: bool, strays: &mut HashMap<String, (i64, u64)>) -> Result<bool, StatementError> {
        let (renews, holds) = (self.held.is_due(), !self.held.is_empty());
        if renews {
            self.renew().await?;
        }
        if holds {
            let at_ms = self.clock.monotonic_ms();
            let mut cancels = HashMap::new();
            for row in self.heart.query(CANCELS, &[(&self.me, Type::UUID)]).await? {
                let reason: Option<Vec<u8>> = row.try_get(1)?;
                cancels.insert(row.try_get(0)?, CancelRequest { reason: reason.map(text_of), by: row.try_get(2)? });
            }
            let mut decided = HashSet::new();
            for row in self.heart.query(DECIDED, &[(&self.me, Type::UUID)]).await? {
                decided.insert(row.try_get(0)?);
            }
            self.held.set_requests(at_ms, cancels, decided);
        }
        if compares {
            self.compare(strays).await?;
        }
        Ok(renews || holds || compares)
    }

    /// Lets go of runs that the database says are this driver's and that it doesn't know: an answer was lost, or the
    /// database went back. They are seen twice: one may just be leased or released.
    async fn compare(&self, strays: &mut HashMap<String, (i64, u64)>) -> Result<(), StatementError> {
        let mine = self.mine().await?;
        let unknown = |run_id: &str, fence: u64| self.held.held_by(run_id, fence).is_none();
        let seen: HashMap<String, (i64, u64)> =
            mine.into_iter().filter(|(run_id, (_, fence))| unknown(run_id, *fence)).collect();
        let before = std::mem::replace(strays, seen.clone());
        for (run_id, (row, fence)) in seen {
            if before.get(&run_id) == Some(&(row, fence)) {
                let number = i64::try_from(fence).unwrap_or(i64::MAX);
                let parameters: [Parameter<'_>; 3] =
                    [(&row, Type::INT8), (&number, Type::INT8), (&self.me, Type::UUID)];
                self.heart.query(LET_GO, &parameters).await?;
                tracing::warn!(run_id, "nobody here drove this run: it is free");
            }
        }
        Ok(())
    }

    fn interrupted(&self) {
        self.interrupted_at_ms.store(self.clock.monotonic_ms().max(1), Ordering::SeqCst);
    }

    /// Takes a connection that was lost since the last time for an interruption.
    fn notice_lost_connections(&self) {
        let lost = self.heart.reconnects();
        if self.lost_connections.swap(lost, Ordering::SeqCst) != lost {
            self.interrupted();
        }
    }

    /// Whether runs of drivers whose leases are over may be claimed: not for one lease after the connection was lost or
    /// this driver's own lease was over. When the database was away, or its clock jumped, the leases of all drivers are
    /// over, and each needs the time to renew its own.
    pub(super) fn may_take_over(&self) -> bool {
        let at_ms = self.interrupted_at_ms.load(Ordering::SeqCst);
        let ttl_ms = u64::try_from(self.held.ttl().as_millis()).unwrap_or(u64::MAX);
        at_ms == 0 || self.clock.monotonic_ms().saturating_sub(at_ms) >= ttl_ms
    }

    /// Stops being a driver: all its runs are free.
    pub(super) async fn leave(&self) {
        if self.is_registered.load(Ordering::SeqCst) {
            // If this fails, the lease expires.
            let left = async { self.heart.query(LEAVE, &[(&self.me, Type::UUID)]).await };
            drop(tokio::time::timeout(LEAVE_TIMEOUT, left).await);
        }
    }
}

/// A time in which the database can't be reached.
struct StoreOutage {
    since_ms: u64,
    /// The beats that failed.
    tries: u32,
    /// When the log said so last.
    said_ms: Option<u64>,
}

/// How far this machine's clock is ahead of the database's, in milliseconds, when that was read between two moments of this
/// one.
fn difference_ms(sent_ms: i64, received_ms: i64, database_ms: i64) -> i64 {
    let (ahead_ms, behind_ms) = (sent_ms.saturating_sub(database_ms), database_ms.saturating_sub(received_ms));
    if ahead_ms > 0 { ahead_ms } else { -behind_ms.max(0) }
}

/// A difference of clocks in words.
fn difference(ahead_ms: i64) -> String {
    let seconds = ahead_ms.unsigned_abs() / 1_000;
    format!("{seconds} s {}", if ahead_ms > 0 { "ahead of" } else { "behind" })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The name of this machine, for lists of drivers.
fn host() -> Option<String> {
    #[cfg(target_os = "linux")]
    return std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(test)]
mod clock_tests {
    use super::*;

    #[test]
    fn clocks_differ_by_what_the_way_to_the_database_does_not_explain() {
        assert_eq!(difference_ms(1_000, 1_200, 1_100), 0);
        assert_eq!(difference_ms(8_000, 8_200, 1_000), 7_000);
        assert_eq!(difference_ms(1_000, 1_200, 62_000), -60_800);
        assert_eq!(difference(7_000), "7 s ahead of");
        assert_eq!(difference(-60_800), "60 s behind");
    }
}
