//! A call: one statement in a transaction of its own.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio_postgres::types::Type;
use tokio_postgres::{Column, Error, Portal, Row, Statement, Transaction};

use super::argument::Argument;
use super::connect::ServerConnection;
use super::failure::{is_lost, of_error, of_statement, text};
use super::forms::TypeForm;
use super::read::{self, RawValue};
use crate::drive::tool::db::Query;
use crate::drive::tool::db::rows::{MAX_BYTES, ResultRows};
use crate::drive::tool::db::server_call::{self, CallFailure, CallResult, LOST, ServerCall, UNKNOWN, transient};
use crate::drive::tool::db::server_pool::Pool;
use crate::drive::tool::db::server_query::{self, PlaceholderForm, QuerySlot, ServerQuery};
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;
use crate::engine::event::ToolFault;
use crate::policy::sql;

/// The most bytes that a call reads from the server, what its rows are wrapped in included.
const MAX_READ: usize = 4 * MAX_BYTES;

/// A call: a query with its translation.
struct PostgresCall {
    query: Query,
    translated: ServerQuery,
}

impl ServerCall<ServerConnection> for PostgresCall {
    async fn perform(&self, connection: &mut ServerConnection) -> Result<CallResult, CallFailure> {
        perform(connection, &self.query, &self.translated).await
    }
}

/// Makes a call.
///
/// # Errors
/// The class of the server's error; a value without a form that is exact.
pub(super) async fn run(pool: Arc<Pool<ServerConnection>>, query: Query) -> Result<Value, RawFault> {
    let translated = translate(&query.sql)?;
    server_call::run(&pool, &PostgresCall { query, translated }).await
}

/// The query for the server.
///
/// # Errors
/// For a statement that a call may not be.
pub(super) fn translate(query: &str) -> Result<ServerQuery, ToolFault> {
    if let Some(word) = sql::refused_by_servers(query) {
        return Err(fault("database: not allowed", format!("a call may not be `{word}`")));
    }
    if sql::is_several(query) {
        return Err(server_query::several());
    }
    Ok(ServerQuery::new(query, sql::placeholders(query), PlaceholderForm::Numbered))
}

async fn perform(
    connection: &mut ServerConnection,
    query: &Query,
    translated: &ServerQuery,
) -> Result<CallResult, CallFailure> {
    connection.budget.fill(MAX_READ);
    let budget = connection.budget.clone();
    let transaction = connection
        .client
        .build_transaction()
        .read_only(query.read_only)
        .start()
        .await
        .map_err(|error| unsent(&error))?;
    let prepared = prepare(&transaction, query, translated).await?;
    // A reader asks for one row more than it may keep; a writer takes all, so that its statement is done whole.
    let most = if query.read_only { i32::try_from(query.rows.most.saturating_add(1)).unwrap_or(i32::MAX) } else { 0 };
    let read = read_rows(&transaction, &prepared, most).await;
    let read = match read {
        Err(CallFailure::Broken(_)) if budget.is_spent() => {
            let why = format!("the server sent more than {MAX_READ} bytes; nothing was written");
            Err(CallFailure::Broken(fault("database: result too large", why).into()))
        }
        read => read,
    };
    let CallResult { value, is_ready } = read?;
    if !is_ready {
        // A reader leaves the rest: the server is asked to stop.
        return Ok(CallResult { value, is_ready });
    }
    match transaction.commit().await {
        Ok(()) => Ok(CallResult { value, is_ready }),
        Err(error) if !is_lost(&error) => Err(CallFailure::Refused(of_error(&error))),
        // Nothing was to be written.
        Err(_) if query.read_only => Ok(CallResult { value, is_ready: false }),
        Err(error) => Err(CallFailure::Broken(transient(UNKNOWN, text(&error)))),
    }
}

/// A failure before the statement was sent.
fn unsent(error: &Error) -> CallFailure {
    if is_lost(error) { CallFailure::Unsent(text(error)) } else { CallFailure::Refused(of_error(error)) }
}

/// A failure after that: without the end of the transaction, nothing is written.
fn sent(error: &Error) -> CallFailure {
    if is_lost(error) {
        let why = format!("{}; the transaction was not ended, so nothing was written", text(error));
        CallFailure::Broken(transient(LOST, why))
    } else {
        CallFailure::Refused(of_error(error))
    }
}

fn refused(fault: ToolFault) -> CallFailure {
    CallFailure::Refused(fault.into())
}

/// A statement with its values, ready to run.
struct PreparedCall {
    portal: Portal,
    columns: Vec<TypeForm>,
    rows: ResultRows,
}

/// Bounds the transaction's time, prepares the statement, and binds its values.
async fn prepare(
    transaction: &Transaction<'_>,
    query: &Query,
    translated: &ServerQuery,
) -> Result<PreparedCall, CallFailure> {
    // The query after the settings takes a snapshot: from then on the transaction can't be made to write.
    let ms = limit_ms(query.deadline);
    let settings =
        format!("SET LOCAL statement_timeout = {ms}; SET LOCAL idle_in_transaction_session_timeout = {ms}; SELECT 1");
    let (set, statement) = tokio::join!(transaction.batch_execute(&settings), transaction.prepare(&translated.text));
    set.map_err(|error| unsent(&error))?;
    let statement = statement.map_err(|error| match unsent(&error) {
        CallFailure::Refused(_) => CallFailure::Refused(of_statement(&error, translated)),
        unsent => unsent,
    })?;
    let columns = forms(&statement).map_err(refused)?;
    let arguments = arguments(&statement, query, translated).map_err(refused)?;
    let portal = transaction.bind_raw(&statement, arguments).await.map_err(|error| unsent(&error))?;
    Ok(PreparedCall {
        portal,
        columns,
        rows: ResultRows::new(statement.columns().iter().map(Column::name), query.rows),
    })
}

/// The time limit of a statement for the server; 0 would be none.
fn limit_ms(deadline: Duration) -> i32 {
    i32::try_from(deadline.as_millis()).unwrap_or(i32::MAX).max(1)
}

/// The forms of the columns of a result.
///
/// # Errors
/// For a column without one.
pub(super) fn forms(statement: &Statement) -> Result<Vec<TypeForm>, ToolFault> {
    let form = |column: &Column| {
        let refused = |why| {
            let name = column.name();
            fault(format!("database: the column `{name}` can't be read: {why}; cast it, as {name}::text"), "")
        };
        TypeForm::of(column.type_()).map_err(refused)
    };
    statement.columns().iter().map(form).collect()
}

/// The forms of the parameters of a statement.
///
/// # Errors
/// When the server reads more or fewer than the query has, or for one without a form.
pub(super) fn parameter_forms(statement: &Statement, translated: &ServerQuery) -> Result<Vec<TypeForm>, ToolFault> {
    let (wanted, given) = (statement.params().len(), translated.slots.len());
    if wanted != given {
        let why = format!("the server reads {wanted} parameters in the query, and there are {given}");
        return Err(fault("database: error in the query", why));
    }
    let form = |(slot, of): (&QuerySlot, &Type)| TypeForm::of(of).map_err(|why| not_valid(slot, of, &why));
    translated.slots.iter().zip(statement.params()).map(form).collect()
}

fn not_valid(slot: &QuerySlot, of: &Type, why: &str) -> ToolFault {
    fault(format!("database: value not valid: `{}` is of type `{}` and {why}", slot.written, of.name()), "")
}

fn arguments(statement: &Statement, query: &Query, translated: &ServerQuery) -> Result<Vec<Argument>, ToolFault> {
    let forms = parameter_forms(statement, translated)?;
    let slots = translated.slots.iter().zip(statement.params()).zip(&forms);
    let argument = |((slot, of), form): ((&QuerySlot, &Type), &TypeForm)| {
        Argument::new(slot.value(&query.values)?, form).map_err(|why| not_valid(slot, of, &why))
    };
    slots.map(argument).collect()
}

/// Runs the statement, and reads its rows within the limits.
async fn read_rows(
    transaction: &Transaction<'_>,
    prepared: &PreparedCall,
    most: i32,
) -> Result<CallResult, CallFailure> {
    let mut found = prepared.rows.clone();
    let mut rows = pin!(transaction.query_portal_raw(&prepared.portal, most).await.map_err(|error| sent(&error))?);
    while let Some(row) = rows.next().await {
        let row = row.map_err(|error| sent(&error))?;
        let values = values(&row, &prepared.columns).map_err(refused)?;
        let more = found.push(values, row.raw_size_bytes());
        if !more && most > 0 && !found.is_full() {
            // Its rows are long: what follows may be, too.
            let value = found.into_value().map_err(|fault| CallFailure::Broken(fault.into()))?;
            return Ok(CallResult { value, is_ready: false });
        }
    }
    let value = if prepared.columns.is_empty() {
        json!({ "changes": rows.rows_affected().unwrap_or(0) })
    } else {
        // Without its end, the transaction writes nothing.
        found.into_value().map_err(refused)?
    };
    Ok(CallResult { value, is_ready: true })
}

fn values(row: &Row, forms: &[TypeForm]) -> Result<Vec<Value>, ToolFault> {
    let value = |(at, form): (usize, &TypeForm)| {
        let name = || row.columns().get(at).map_or("", Column::name);
        let raw = row.try_get::<_, RawValue<'_>>(at).map_err(|error| fault("database: failed", error.to_string()))?;
        read::value(raw, form).map_err(|why| fault(format!("database: a value of the column `{}` {why}", name()), ""))
    };
    forms.iter().enumerate().map(value).collect()
}
