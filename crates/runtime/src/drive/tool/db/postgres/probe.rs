//! Prepares queries at a server without running them: its syntax, its tables and columns, and the types of its values.

use tokio_postgres::Error;

use super::call::{TypedParameter, translate, typed};
use super::connect::ServerConnection;
use super::failure::{self, is_lost};
use crate::drive::tool::db::probe::{PROBE_TIME, PreparedQuery, ProbeRuntime, ServerProbe};
use crate::drive::tool::db::server_pool::PooledConnection as _;
use crate::drive::tool::db::server_query::ServerQuery;
use crate::drive::tool::output::fault;
use crate::journal::postgres::address::PostgresAddress;
use loopctl_engine::event::ToolFault;
use loopctl_lang::compile::{QueryFault, QueryFaultKind, QueryParameter};
use loopctl_lang::policy::sql;

/// How many bytes the server may send for one query.
const MAX_READ: usize = 4 << 20;

/// The tables that a query finds without a schema.
const TABLES: &str = "SELECT relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = relnamespace \
    WHERE relkind IN ('r', 'v', 'm', 'p', 'f') AND pg_catalog.pg_table_is_visible(c.oid) \
    AND nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1 LIMIT 200";
/// The columns of some tables.
const COLUMNS: &str = "SELECT attname::text FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_class c ON c.oid = attrelid \
    WHERE relname::text = ANY($1) AND pg_catalog.pg_table_is_visible(c.oid) AND attnum > 0 AND NOT attisdropped LIMIT 2000";

/// A connection to a server.
pub(super) struct PostgresProbe {
    runtime: ProbeRuntime,
    connection: ServerConnection,
}

impl PostgresProbe {
    /// Connects.
    ///
    /// # Errors
    /// When no host of the address answers in time.
    pub(super) fn new(address: &PostgresAddress) -> Result<Self, ToolFault> {
        let runtime = ProbeRuntime::new()?;
        match runtime.run(async { tokio::time::timeout(PROBE_TIME, ServerConnection::connect(address)).await }) {
            Some(Ok(Ok(connection))) => Ok(Self { runtime, connection }),
            Some(Ok(Err(why))) => Err(why.fault),
            _ => Err(fault("database: can't be opened", "it does not answer")),
        }
    }
}

impl ServerProbe for PostgresProbe {
    fn prepare(&mut self, query: &str) -> PreparedQuery {
        let Self { runtime, connection } = self;
        // A server that takes too long says nothing.
        let look = async { tokio::time::timeout(PROBE_TIME, look(connection, query)).await.ok().flatten() };
        runtime.run(look).flatten().unwrap_or_default()
    }
}

fn invalid(message: String) -> QueryFault {
    QueryFault { kind: QueryFaultKind::Invalid, message, offset: None }
}

/// What the server says of a query; nothing when the connection is lost.
async fn look(connection: &mut ServerConnection, query: &str) -> Option<PreparedQuery> {
    let translated = match translate(query) {
        Ok(translated) => translated,
        Err(fault) => return Some(invalid(fault.detail).into()),
    };
    let ServerConnection { client, budget, descriptions, types, .. } = &mut *connection;
    budget.fill(MAX_READ);
    let transaction = client.build_transaction().read_only(true).start().await.ok()?;
    let prepared = match transaction.prepare(&translated.text).await {
        Ok(statement) => typed(statement, &transaction, descriptions, types).await,
        Err(error) => Err(error),
    };
    // What failed is over; the names are asked for in a new transaction.
    drop(transaction);
    match prepared {
        Ok(typed) => {
            let refused = |fault: ToolFault| {
                let class = fault.class.strip_prefix("database: ").unwrap_or(&fault.class).to_owned();
                invalid(if fault.detail.is_empty() { class } else { fault.detail })
            };
            let judged = typed.columns().and_then(|_| typed.parameters(&translated));
            Some(match judged {
                Ok(typed) => PreparedQuery { fault: None, parameters: parameters(&typed) },
                Err(fault) => refused(fault).into(),
            })
        }
        Err(error) if is_lost(&error) => descriptions.refused().map(|why| invalid(why).into()),
        Err(error) => Some(query_fault(connection, query, &translated, &error).await.into()),
    }
}

/// The parameters that have names.
fn parameters(typed: &[TypedParameter<'_>]) -> Vec<QueryParameter> {
    let parameter = |TypedParameter { slot, type_name, form }: &TypedParameter<'_>| {
        let name = slot.written.get(1..).filter(|name| !name.starts_with(|c: char| c.is_ascii_digit()))?;
        let (name, type_name) = (name.to_owned(), type_name.clone());
        (!name.is_empty()).then(|| QueryParameter { name, type_name, takes: form.takes() })
    };
    typed.iter().filter_map(parameter).collect()
}

async fn query_fault(
    connection: &ServerConnection,
    query: &str,
    translated: &ServerQuery,
    error: &Error,
) -> QueryFault {
    let offset = failure::place(error, translated);
    let message = failure::text(error);
    let is_table = match error.code().map(tokio_postgres::error::SqlState::code) {
        Some("42P01") => true,
        Some("42703") => false,
        _ => return QueryFault { kind: QueryFaultKind::Invalid, message, offset },
    };
    let name = offset.and_then(|at| name_at(query, at));
    let Some(name) = name else { return QueryFault { kind: QueryFaultKind::Invalid, message, offset } };
    let known = if is_table {
        connection.client.query(TABLES, &[]).await
    } else {
        let words: Vec<&str> = query.split(|c: char| !sql::is_name(c)).filter(|word| !word.is_empty()).collect();
        connection.client.query(COLUMNS, &[&words]).await
    };
    let known = known.unwrap_or_default().iter().filter_map(|row| row.try_get(0).ok()).collect();
    QueryFault { kind: QueryFaultKind::UnknownName { name: name.to_owned(), is_table, known }, message, offset }
}

/// The name that begins at a place of a query, with what it is qualified by; none for one between quotes.
fn name_at(query: &str, at: usize) -> Option<&str> {
    let rest = query.get(at..)?;
    let end = rest.find(|c: char| !sql::is_name(c) && c != '.').unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty())
}
