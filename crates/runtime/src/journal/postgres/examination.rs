//! What a database must be before it holds runs: its server, its settings, the version of its tables, and the rights of
//! the role. It only reads.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio_postgres::types::Type;

use super::connection::Link;
use super::database_errors::StatementError;
use super::schema::{GRANTS, LEASE, NAMES, VERSION, newer};
use super::target::PostgresTarget;
use crate::journal::StoreError;
use crate::journal::admin::StoreReport;

/// The oldest server: 13.
const MIN_SERVER_VERSION: i32 = 130_000;

const SETTINGS: &str = "SELECT current_setting('server_version_num')::int, current_setting('server_version'),
    current_setting('fsync'), current_setting('synchronous_commit'), current_setting('server_encoding'),
    coalesce(current_setting('synchronous_standby_names', true), ''), current_user::text";
/// The schema, the tables, and what the role may not do: `$1` is the schema as it is quoted, `$2` the tables.
const THERE: &str = "
WITH n AS (SELECT to_regnamespace($1)::oid AS oid)
SELECT n.oid IS NOT NULL,
  EXISTS (SELECT 1 FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relname = 'loopctl'),
  coalesce(has_schema_privilege(n.oid, 'USAGE'), true),
  coalesce(has_schema_privilege(n.oid, 'CREATE'), has_database_privilege(current_database(), 'CREATE')),
  ARRAY (SELECT c.relname::text FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relname = ANY ($2::text[])
    AND NOT (has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
      AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')) ORDER BY 1)
FROM n";
const LIVING: &str = "SELECT driver::text FROM @.drivers WHERE until > clock_timestamp() ORDER BY driver";
const FOUND: &str = "SELECT version, oldest_reader, lease_ms FROM @.loopctl";

/// What there is of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundTables {
    /// No tables.
    Nothing {
        /// Whether their schema exists.
        has_schema: bool,
    },
    /// Tables that this loopctl can use, or migrate.
    Tables {
        /// Their version.
        version: i32,
        /// The lease of the store.
        lease: Duration,
    },
}

#[derive(Debug, Clone)]
pub(super) struct ServerSettings {
    pub(super) number: i32,
    pub(super) version: String,
    pub(super) fsync: String,
    pub(super) commit: String,
    pub(super) encoding: String,
    pub(super) standbys: String,
    pub(super) role: String,
}

impl ServerSettings {
    async fn read(link: &Link, target: &PostgresTarget) -> Result<Self, StatementError> {
        let rows = link.query_once(SETTINGS, &[]).await?;
        let Some(row) = rows.first() else { return Err(target.refuse("it says nothing of its settings").into()) };
        let (number, version, fsync) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let (commit, encoding, standbys, role) = (row.try_get(3)?, row.try_get(4)?, row.try_get(5)?, row.try_get(6)?);
        Ok(Self { number, version, fsync, commit, encoding, standbys, role })
    }

    /// Why runs would not be safe there.
    pub(super) fn fault(&self) -> Option<String> {
        if self.number < MIN_SERVER_VERSION {
            return Some(format!("its server is PostgreSQL {}: use version 13 or later", self.version));
        }
        if self.fsync != "on" {
            let why = "its server runs with `fsync = off` and loses runs when the machine fails: set `fsync = on`";
            return Some(why.to_owned());
        }
        if self.commit == "off" {
            return Some(
                "`synchronous_commit` is `off` and the server loses what it acknowledged when it fails: set it to `on` for \
                 this role (ALTER ROLE ... SET synchronous_commit = on)"
                    .to_owned(),
            );
        }
        (self.encoding != "UTF8")
            .then(|| format!("its encoding is {}: create the database with ENCODING 'UTF8'", self.encoding))
    }
}

/// Whether the tables are there, and whether this role can use them.
struct RoleRights {
    has_schema: bool,
    has_tables: bool,
    uses_schema: bool,
    may_make: bool,
    /// The tables that the role may not read and write.
    refused: Vec<String>,
}

impl RoleRights {
    async fn read(link: &Link, target: &PostgresTarget) -> Result<Self, StatementError> {
        let names = NAMES.as_slice();
        let rows = link.query_once(THERE, &[(&target.schema, Type::TEXT), (&names, Type::TEXT_ARRAY)]).await?;
        let Some(row) = rows.first() else { return Err(target.refuse("it says nothing of its tables").into()) };
        let (has_schema, has_tables, uses_schema) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(Self { has_schema, has_tables, uses_schema, may_make: row.try_get(3)?, refused: row.try_get(4)? })
    }

    fn fault(&self) -> Option<String> {
        if self.uses_schema && self.refused.is_empty() {
            return None;
        }
        let what = match self.refused.as_slice() {
            _ if !self.uses_schema => "its schema".to_owned(),
            tables => format!("its tables {}", tables.join(", ")),
        };
        Some(format!("this role may not use {what}: give it {GRANTS}"))
    }
}

/// Checks the server and the role, and returns what is there.
///
/// # Errors
/// A sentence that says what to do.
pub(super) async fn found(link: &Link, target: &PostgresTarget) -> Result<FoundTables, StatementError> {
    if let Some(why) = ServerSettings::read(link, target).await?.fault() {
        return Err(target.refuse(&why).into());
    }
    let rights = RoleRights::read(link, target).await?;
    if let Some(why) = rights.fault() {
        return Err(target.refuse(&why).into());
    }
    if rights.has_tables {
        tables(link, target).await
    } else {
        Ok(FoundTables::Nothing { has_schema: rights.has_schema })
    }
}

async fn tables(link: &Link, target: &PostgresTarget) -> Result<FoundTables, StatementError> {
    let rows = link.query_once(FOUND, &[]).await?;
    let Some(row) = rows.first() else { return Err(target.refuse("its table loopctl is empty").into()) };
    let (version, oldest_reader, lease_ms): (i32, i32, i32) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    if oldest_reader > VERSION {
        return Err(newer(target, version).into());
    }
    let lease = u64::try_from(lease_ms).map_or(LEASE, Duration::from_millis);
    Ok(FoundTables::Tables { version, lease })
}

/// Looks at the database.
pub(super) fn examine(target: PostgresTarget) -> Result<StoreReport, StoreError> {
    asked(target, async |link, target| report(link, target).await)
}

/// The drivers of the store that live.
pub(super) fn living(target: PostgresTarget) -> Result<Vec<String>, StoreError> {
    asked(target, async |link, target| {
        if !matches!(found(link, target).await?, FoundTables::Tables { .. }) {
            return Ok(Vec::new());
        }
        let rows = link.query_once(LIVING, &[]).await?;
        rows.iter().map(|row| row.try_get(0).map_err(Into::into)).collect()
    })
}

/// Asks the database on a connection of its own.
fn asked<T: Send>(
    target: PostgresTarget,
    question: impl AsyncFn(&Link, &PostgresTarget) -> Result<T, StatementError> + Sync,
) -> Result<T, StoreError> {
    let target = Arc::new(target);
    let answer = || {
        let failed = |error: std::io::Error| target.refuse(&error.to_string());
        Builder::new_current_thread().enable_all().build().map_err(failed)?.block_on(async {
            let link = Link::new(Arc::clone(&target), LEASE);
            question(&link, &target).await.map_err(|trouble| trouble.while_opening(&target))
        })
    };
    // The caller may be on a runtime already.
    let answer = std::thread::scope(|scope| scope.spawn(answer).join());
    answer.unwrap_or_else(|_| Err(StoreError::Other("the store's thread is gone".to_owned())))
}

/// What there is to say of a store: facts, and the first thing that is wrong.
async fn report(link: &Link, target: &PostgresTarget) -> Result<StoreReport, StatementError> {
    let settings = ServerSettings::read(link, target).await?;
    let mut report = StoreReport::of(target.shown());
    report.fact("server", format!("PostgreSQL {}", settings.version));
    report.fact("synchronous_commit", settings.commit.clone());
    let standby = if settings.standbys.is_empty() {
        "none: a failover loses what the standby had not received".to_owned()
    } else {
        settings.standbys.clone()
    };
    report.fact("synchronous standby", standby);
    let rights = RoleRights::read(link, target).await?;
    let may = match (rights.fault().is_none(), rights.may_make) {
        (true, true) => "uses the tables, and may migrate them",
        (true, false) => "uses the tables; another role migrates them",
        (false, _) => "may not use the tables",
    };
    report.fact("role", format!("{}: {may}", settings.role));
    report.wrong = settings.fault().or_else(|| rights.fault()).map(|why| target.refuse(&why));
    if report.wrong.is_some() {
        return Ok(report);
    }
    if !rights.has_tables {
        report.fact("tables", format!("none; this loopctl makes version {VERSION}"));
        let why = "it has no tables yet: call `loopctl store migrate` with a role that may make them";
        report.wrong = Some(target.refuse(why));
        return Ok(report);
    }
    match tables(link, target).await {
        Ok(FoundTables::Tables { version, lease }) => {
            report.fact("tables", format!("version {version}; this loopctl knows {VERSION}"));
            report.fact("lease", format!("{} ms", lease.as_millis()));
            if version < VERSION {
                let why =
                    "its tables are of an older version: call `loopctl store migrate` with a role that may change them";
                report.wrong = Some(target.refuse(why));
            }
        }
        Ok(FoundTables::Nothing { .. }) => {}
        Err(StatementError::Refused(StoreError::Newer { store, found, known })) => {
            report.fact("tables", format!("version {found}; this loopctl knows {known}"));
            report.wrong = Some(StoreError::Newer { store, found, known });
        }
        Err(trouble) => return Err(trouble),
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_too_old_or_loses_runs_is_refused_with_what_to_do() {
        let fit = ServerSettings {
            number: 130_000,
            version: "13.0".to_owned(),
            fsync: "on".to_owned(),
            commit: "remote_write".to_owned(),
            encoding: "UTF8".to_owned(),
            standbys: String::new(),
            role: "ada".to_owned(),
        };
        assert_eq!(fit.fault(), None);
        let old = ServerSettings { number: 120_022, version: "12.22".to_owned(), ..fit.clone() };
        assert_eq!(old.fault().unwrap(), "its server is PostgreSQL 12.22: use version 13 or later");
        let careless = ServerSettings { fsync: "off".to_owned(), ..fit.clone() };
        assert!(careless.fault().unwrap().ends_with("set `fsync = on`"));
        let other = ServerSettings { encoding: "LATIN1".to_owned(), ..fit };
        assert!(other.fault().unwrap().ends_with("create the database with ENCODING 'UTF8'"));
    }
}
