//! Leases: which runs the driver of this store has, and until when it can be sure of them.
//!
//! A lease belongs to the driver, not to the run: one row says until when the driver must be left alone, so
//! that a renewal costs the same for a thousand runs as for one. A run names its driver and counts its leases
//! (the fence). If a driver's row is gone, its lock file is free, or its lease has expired, another driver may
//! take its runs; the fence then keeps the old driver from writing.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::database_errors::RequestError;
use super::drivers::{Drivers, Membership};
use crate::journal::StoreError;
use crate::journal::lease_clock::Clock;

/// What is known of the leases without asking the database.
#[derive(Debug, Default)]
pub(super) struct LeaseView {
    /// Until when others leave us alone, by the wall clock, which they read too.
    until_ms: i64,
    /// The same by the monotonic clock.
    until_monotonic_ms: u64,
    fences: HashMap<String, u64>,
}

impl LeaseView {
    /// Whether the lease of this number is ours as far as we know.
    pub(super) fn has(&self, run_id: &str, fence: u64) -> bool {
        self.fences.get(run_id) == Some(&fence)
    }

    /// Whether nobody can have taken a run from us until now.
    pub(super) fn is_fresh(&self, clock: &Clock) -> bool {
        clock.wall_ms() < self.until_ms && clock.monotonic_ms() < self.until_monotonic_ms
    }
}

/// A run that we drive.
#[derive(Debug)]
pub(super) struct HeldLease {
    /// Its key in the tables.
    pub(super) row: i64,
    /// The lease's number.
    pub(super) fence: i64,
    /// The number of its next event; `None` when only the database knows it.
    pub(super) next: Option<i64>,
}

/// The registered drivers that `lives` accepts, by their names and the ends of their leases.
pub(super) fn living(connection: &Connection, lives: impl Fn(&str, i64) -> bool) -> rusqlite::Result<Vec<String>> {
    let mut all = connection.prepare_cached("SELECT driver, until_ms FROM drivers")?;
    let drivers: Vec<(String, i64)> =
        all.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    Ok(drivers.into_iter().filter(|(name, until_ms)| lives(name, *until_ms)).map(|(name, _)| name).collect())
}

/// The leases of an opened store; the writer's own.
#[derive(Debug)]
pub(super) struct Leases {
    drivers: Drivers,
    clock: Clock,
    ttl: Duration,
    member: Option<Membership>,
    held: HashMap<String, HeldLease>,
    view: Arc<RwLock<LeaseView>>,
    /// A renewal that waits for its commit: its end, by both clocks.
    renewal: Option<(i64, u64)>,
    next_renewal_ms: u64,
    /// Leases that were granted after the caller had gone, or could not be released.
    orphans: Vec<(String, u64)>,
}

impl Leases {
    pub(super) fn new(drivers: Drivers, clock: Clock, ttl: Duration) -> Self {
        Self {
            drivers,
            clock,
            ttl,
            member: None,
            held: HashMap::new(),
            view: Arc::default(),
            renewal: None,
            next_renewal_ms: 0,
            orphans: Vec::new(),
        }
    }

    pub(super) fn view(&self) -> Arc<RwLock<LeaseView>> {
        Arc::clone(&self.view)
    }

    /// Our name, once we drive anything.
    pub(super) fn me(&self) -> Option<&str> {
        self.member.as_ref().map(|member| member.name.as_str())
    }

    pub(super) fn held(&mut self, run_id: &str) -> Option<&mut HeldLease> {
        self.held.get_mut(run_id)
    }

    /// Records a lease that was granted and is durable.
    pub(super) fn granted(&mut self, run_id: &str, held: HeldLease) {
        let fence = u64::try_from(held.fence).unwrap_or(0);
        self.edit(|view| view.fences.insert(run_id.to_owned(), fence));
        self.held.insert(run_id.to_owned(), held);
    }

    /// Records that a run is no longer ours.
    pub(super) fn lost(&mut self, run_id: &str) {
        self.edit(|view| view.fences.remove(run_id));
        self.held.remove(run_id);
    }

    /// Records that a run was released, unless another lease of it is held by now.
    pub(super) fn released(&mut self, run_id: &str, fence: u64) {
        if self.held.get(run_id).is_some_and(|held| u64::try_from(held.fence) == Ok(fence)) {
            self.lost(run_id);
        }
    }

    /// The time after this one, in milliseconds since 1970.
    pub(super) fn after(&self, time: Duration) -> i64 {
        self.clock.wall_ms().saturating_add_unsigned(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    /// Records a lease that nobody waits for any more.
    pub(super) fn orphaned(&mut self, run_id: &str, fence: u64) {
        self.orphans.push((run_id.to_owned(), fence));
    }

    /// The leases that nobody waits for any more.
    pub(super) fn take_orphans(&mut self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.orphans)
    }

    /// The drivers of the store.
    pub(super) fn drivers(&self) -> &Drivers {
        &self.drivers
    }

    /// How long the writer may sleep before the leases must be renewed; `None` without a limit.
    pub(super) fn rest(&self) -> Option<Duration> {
        let until = self.next_renewal_ms.saturating_sub(self.clock.monotonic_ms());
        (!self.held.is_empty()).then(|| Duration::from_millis(until))
    }

    /// Whether the leases are due to be renewed.
    pub(super) fn is_due(&self) -> bool {
        self.rest().is_some_and(|rest| rest.is_zero())
    }

    /// Returns a driver with a fresh lease, in the open transaction; registers it if needed.
    pub(super) fn ensure(&mut self, connection: &Connection) -> Result<(), RequestError> {
        let fresh = self.view.read().unwrap_or_else(PoisonError::into_inner).is_fresh(&self.clock);
        if self.renewal.is_some() || fresh && self.clock.monotonic_ms() < self.next_renewal_ms {
            return Ok(());
        }
        self.renew(connection)
    }

    /// Renews the lease in the open transaction. If it had expired, others may have taken some of our runs:
    /// those are given up.
    pub(super) fn renew(&mut self, connection: &Connection) -> Result<(), RequestError> {
        let ttl_ms = u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX);
        // The clocks are read before the row is written: we must not rely on the lease for longer than others
        // respect it.
        let renewal =
            (self.clock.wall_ms().saturating_add_unsigned(ttl_ms), self.clock.monotonic_ms().saturating_add(ttl_ms));
        let lapsed = !self.view.read().unwrap_or_else(PoisonError::into_inner).is_fresh(&self.clock);
        if self.member.is_none() {
            self.register(connection)?;
        }
        connection
            .prepare_cached(
                "INSERT INTO drivers (driver, until_ms, since_ms, version, process) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (driver) DO UPDATE SET until_ms = excluded.until_ms",
            )?
            .execute(params![
                self.me(),
                renewal.0,
                self.clock.wall_ms(),
                env!("CARGO_PKG_VERSION"),
                std::process::id()
            ])?;
        if lapsed {
            self.recount(connection)?;
        }
        self.renewal = Some(renewal);
        Ok(())
    }

    /// Registers as a driver, and removes dead drivers.
    fn register(&mut self, connection: &Connection) -> Result<(), RequestError> {
        self.drivers.sweep();
        let member = self.drivers.enter().map_err(|error| {
            RequestError::Refused(StoreError::ReadOnly(format!("a driver's lock file can't be made: {error}")))
        })?;
        self.member = Some(member);
        let mut all = connection.prepare_cached("SELECT driver FROM drivers")?;
        let names: Vec<String> = all.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?;
        for name in names.iter().filter(|name| !self.drivers.alive(name)) {
            self.remove_dead(connection, name)?;
        }
        Ok(())
    }

    /// Gives up the runs that others have taken.
    fn recount(&mut self, connection: &Connection) -> Result<(), RequestError> {
        let mut query = connection.prepare_cached("SELECT fence = ?2 AND driver = ?3 FROM runs WHERE id = ?1")?;
        let mut lost = Vec::new();
        for (run_id, held) in &self.held {
            let ours = query.query_row(params![held.row, held.fence, self.me()], |row| row.get::<_, Option<bool>>(0));
            if ours.optional()?.flatten() != Some(true) {
                lost.push(run_id.clone());
            }
        }
        for run_id in lost {
            self.lost(&run_id);
        }
        Ok(())
    }

    /// Whether the driver of this name, whose time ends at `until_ms`, must be left alone.
    pub(super) fn is_protected(&self, name: &str, until_ms: i64) -> bool {
        self.clock.wall_ms() < until_ms && self.drivers.alive(name)
    }

    /// The drivers whose runs must be left alone; `only_lives`: also those that live and no longer renew their leases.
    pub(super) fn protected(&self, connection: &Connection, only_lives: bool) -> rusqlite::Result<Vec<String>> {
        living(
            connection,
            |name, until_ms| {
                if only_lives { self.drivers.alive(name) } else { self.is_protected(name, until_ms) }
            },
        )
    }

    /// Removes a driver's row and file if it is dead. A driver that only hangs keeps both: it may wake up and
    /// continue the runs that nobody took.
    pub(super) fn remove_dead(&self, connection: &Connection, name: &str) -> rusqlite::Result<()> {
        if !self.drivers.alive(name) {
            connection.prepare_cached("DELETE FROM drivers WHERE driver = ?1")?.execute([name])?;
            self.drivers.remove(name);
        }
        Ok(())
    }

    /// The transaction is durable.
    pub(super) fn committed(&mut self) {
        if let Some((until_ms, until_monotonic_ms)) = self.renewal.take() {
            self.next_renewal_ms = until_monotonic_ms.saturating_sub(self.two_thirds_ms());
            self.edit(|view| {
                view.until_ms = until_ms;
                view.until_monotonic_ms = until_monotonic_ms;
            });
        }
    }

    /// The transaction was rolled back: the numbers that it counted must be read again.
    pub(super) fn rolled_back(&mut self) {
        if self.renewal.take().is_some() || self.is_due() {
            // Not at once: the store has just failed.
            self.next_renewal_ms = self.clock.monotonic_ms().saturating_add(self.two_thirds_ms() / 8 + 1);
        }
        for held in self.held.values_mut() {
            held.next = None;
        }
    }

    /// Stops being a driver: all its runs are free.
    pub(super) fn leave(&mut self, connection: &Connection) {
        if let Some(member) = self.member.take() {
            // If this fails, the next driver finds the lock free and removes the row.
            let _ = connection.execute("DELETE FROM drivers WHERE driver = ?1", [&member.name]);
            self.drivers.remove(&member.name);
            drop(member);
            self.drivers.sweep();
        }
    }

    fn two_thirds_ms(&self) -> u64 {
        u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX) / 3 * 2
    }

    fn edit<T>(&self, change: impl FnOnce(&mut LeaseView) -> T) -> T {
        change(&mut self.view.write().unwrap_or_else(PoisonError::into_inner))
    }
}
