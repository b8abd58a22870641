//! The processes that drive runs of the store, and the folders that they serve.

use rusqlite::{Connection, params};

use super::database_errors::RequestError;
use super::drivers::Drivers;
use super::write_request::{Transaction, WriteRequest};
use crate::journal::Worker;
use crate::journal::admin::MOST_NAMED_RUNS;

impl Drivers {
    /// The folders that living drivers serve, but this one.
    pub(super) fn foreign(&self, connection: &Connection, mine: Option<&str>) -> rusqlite::Result<Vec<String>> {
        let mut query = connection.prepare_cached("SELECT driver, folder FROM drivers WHERE folder IS NOT ?1")?;
        let mut rows = query.query([mine])?;
        let mut folders = Vec::new();
        while let Some(row) = rows.next()? {
            let (driver, folder): (String, Option<String>) = (row.get(0)?, row.get(1)?);
            folders.extend(folder.filter(|_| self.alive(&driver)));
        }
        Ok(folders)
    }

    /// All drivers that live, and those that died with runs.
    pub(super) fn workers(&self, connection: &Connection, me: Option<&str>) -> Result<Vec<Worker>, RequestError> {
        let mut query = connection.prepare_cached(
            "SELECT driver, since_ms, version, folder, process, (SELECT count(*) FROM runs WHERE runs.driver = drivers.driver),
               address
             FROM drivers ORDER BY since_ms, driver",
        )?;
        let mut named = connection.prepare_cached("SELECT run_id FROM runs WHERE driver = ?1 ORDER BY id LIMIT ?2")?;
        let most = i64::try_from(MOST_NAMED_RUNS).unwrap_or(i64::MAX);
        let mut rows = query.query(())?;
        let mut workers = Vec::new();
        while let Some(row) = rows.next()? {
            let (name, driven): (String, i64) = (row.get(0)?, row.get(5)?);
            let is_alive = self.alive(&name);
            if !is_alive && driven == 0 {
                continue;
            }
            let runs = named.query_map(params![name, most], |row| row.get(0))?.collect::<Result<_, _>>()?;
            workers.push(Worker {
                is_self: me == Some(name.as_str()),
                name,
                is_alive,
                host: None,
                process: row.get(4)?,
                address: row.get(6)?,
                clock_ahead_ms: None,
                version: row.get(2)?,
                folder: row.get(3)?,
                since_ms: row.get(1)?,
                silent_ms: None,
                driven: u64::try_from(driven).unwrap_or_default(),
                runs,
            });
        }
        Ok(workers)
    }
}

/// Notes which folder this process serves, and where it listens.
pub(super) struct Introduce {
    pub(super) folder: String,
    pub(super) address: Option<String>,
}

impl WriteRequest for Introduce {
    type Answer = ();

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        transaction.leases.ensure(transaction.connection)?;
        transaction
            .connection
            .prepare_cached("UPDATE drivers SET folder = ?2, address = ?3 WHERE driver = ?1")?
            .execute(params![transaction.leases.me(), self.folder, self.address])?;
        Ok(())
    }
}

/// The drivers of the store, as the writer sees them: it knows which one it is.
pub(super) struct ListWorkers;

impl WriteRequest for ListWorkers {
    type Answer = Vec<Worker>;

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<Vec<Worker>, RequestError> {
        let me = transaction.leases.me();
        transaction.leases.drivers().workers(transaction.connection, me)
    }
}
