//! A pooler before the database that shares connections among its clients and does not know prepared statements. A
//! client could then execute the statement of another one, which has the same name: it is refused before it is used.

use std::time::Duration;

use tokio_postgres::types::Type;

use super::connection::{Link, persist};
use super::database_errors::StatementError;
use super::target::PostgresTarget;
use crate::journal::StoreError;

/// A statement that one connection prepares.
const PREPARED: &str = "SELECT 1 AS prepared_by_loopctl";
/// How often another connection finds it in its own session, by a name that clients give. A pooler that knows prepared
/// statements gives them names of its own.
const SHARED: &str = "SELECT count(*) FROM pg_prepared_statements WHERE statement = $1 AND name ~ '^s[0-9]+$'";

/// Refuses a database whose pooler mixes the prepared statements of these two connections. A pooler that was busy at
/// that moment, and gave them different connections of the database, is not found. A statement that fails on the way is
/// sent again for as long as `patience`.
pub(super) async fn refuse_mixed(
    one: &Link,
    other: &Link,
    target: &PostgresTarget,
    patience: Duration,
) -> Result<(), StoreError> {
    if !target.prepares {
        return Ok(());
    }
    if persist(patience, || is_mixed(one, other)).await? {
        return Err(target.refuse(
            "a pooler before the database shares its connections and keeps no prepared statements. Add `prepare=off` to \
             the address of the store",
        ));
    }
    Ok(())
}

async fn is_mixed(one: &Link, other: &Link) -> Result<bool, StatementError> {
    one.query(PREPARED, &[]).await?;
    let rows = other.query_once(SHARED, &[(&PREPARED, Type::TEXT)]).await?;
    let found: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(found > 0)
}
