//! A call: one statement in a transaction of its own.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio_postgres::{Column, Error, Portal, Row, Statement, Transaction};

use super::argument::Argument;
use super::connect::ServerConnection;
use super::failure::{is_lost, of_error, of_statement, text};
use super::forms::TypeForm;
use super::read::{self, RawValue};
use super::server_types::ServerTypes;
use super::stream::{DescribedTypes, Descriptions};
use crate::drive::tool::db::Query;
use crate::drive::tool::db::rows::{MAX_BYTES, ResultRows};
use crate::drive::tool::db::server_call::{self, CallFailure, CallResult, ServerCall, lost};
use crate::drive::tool::db::server_pool::Pool;
use crate::drive::tool::db::server_query::{self, PlaceholderForm, QuerySlot, ServerQuery};
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;
use loopctl_engine::event::ToolFault;
use loopctl_lang::policy::sql;

/// The most bytes that a call reads from the server, what its rows are wrapped in included.
const MAX_READ: usize = 4 * MAX_BYTES;

/// A call: a query with its translation.
struct PostgresCall {
    query: Query,
    translated: ServerQuery,
}

impl ServerCall<ServerConnection> for PostgresCall {
    async fn perform(&self, connection: &mut ServerConnection) -> Result<CallResult, CallFailure> {
        let performed = perform(connection, &self.query, &self.translated).await;
        match connection.descriptions.refused() {
            // The connection was ended for it.
            Some(why) => Err(CallFailure::Broken(fault("database: result too large", why).into())),
            None => performed,
        }
    }
}

/// Makes a call.
///
/// # Errors
/// The class of the server's error; a value without a form that is exact.
pub(super) async fn run(pool: Arc<Pool<ServerConnection>>, query: Query) -> Result<Value, RawFault> {
    let translated = translate(&query.sql)?;
    let limit = query.deadline;
    server_call::run(&pool, limit, &PostgresCall { query, translated }).await
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
    let ServerConnection { client, budget, descriptions, types, .. } = connection;
    budget.fill(MAX_READ);
    let transaction =
        client.build_transaction().read_only(query.read_only).start().await.map_err(|error| unsent(&error))?;
    let statement = prepare(&transaction, query, translated).await?;
    let statement = typed(statement, &transaction, descriptions, types).await.map_err(|error| unsent(&error))?;
    let prepared = bind(&transaction, &statement, query, translated).await?;
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
        Err(error) => Err(CallFailure::Broken(lost(false, text(&error)))),
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
        CallFailure::Broken(lost(true, why))
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

/// A statement with the types of its parameters and columns.
pub(super) struct TypedStatement<'t> {
    statement: Statement,
    described: DescribedTypes,
    types: &'t ServerTypes,
}

/// A statement that was just prepared, with its types: those that are not known are looked up.
///
/// # Errors
/// That of the server.
pub(super) async fn typed<'t>(
    statement: Statement,
    transaction: &Transaction<'_>,
    descriptions: &Descriptions,
    types: &'t mut ServerTypes,
) -> Result<TypedStatement<'t>, Error> {
    let described = descriptions.last();
    types.look_up(transaction, &[&described.parameters[..], &described.columns].concat()).await?;
    Ok(TypedStatement { statement, described, types })
}

/// Bounds the transaction's time, and prepares the statement.
async fn prepare(
    transaction: &Transaction<'_>,
    query: &Query,
    translated: &ServerQuery,
) -> Result<Statement, CallFailure> {
    // The query after the settings takes a snapshot: from then on the transaction can't be made to write.
    let ms = limit_ms(query.deadline);
    let settings =
        format!("SET LOCAL statement_timeout = {ms}; SET LOCAL idle_in_transaction_session_timeout = {ms}; SELECT 1");
    let (set, statement) = tokio::join!(transaction.batch_execute(&settings), transaction.prepare(&translated.text));
    set.map_err(|error| unsent(&error))?;
    statement.map_err(|error| match unsent(&error) {
        CallFailure::Refused(_) => CallFailure::Refused(of_statement(&error, translated)),
        unsent => unsent,
    })
}

/// Binds the values of a statement.
async fn bind(
    transaction: &Transaction<'_>,
    typed: &TypedStatement<'_>,
    query: &Query,
    translated: &ServerQuery,
) -> Result<PreparedCall, CallFailure> {
    let columns = typed.columns().map_err(refused)?;
    let arguments = arguments(typed, query, translated).map_err(refused)?;
    let portal = transaction.bind_raw(&typed.statement, arguments).await.map_err(|error| unsent(&error))?;
    let names = typed.statement.columns().iter().map(Column::name);
    Ok(PreparedCall { portal, columns, rows: ResultRows::new(names, query.rows) })
}

/// The time limit of a statement for the server; 0 would be none.
fn limit_ms(deadline: Duration) -> i32 {
    i32::try_from(deadline.as_millis()).unwrap_or(i32::MAX).max(1)
}

/// A parameter of a statement: what the query writes, the name of its type, and the type's form.
pub(super) struct TypedParameter<'q> {
    pub(super) slot: &'q QuerySlot,
    pub(super) type_name: String,
    pub(super) form: TypeForm,
}

impl TypedParameter<'_> {
    fn not_valid(&self, why: &str) -> ToolFault {
        not_valid(self.slot, &self.type_name, why)
    }
}

fn not_valid(slot: &QuerySlot, type_name: &str, why: &str) -> ToolFault {
    fault(format!("database: value not valid: `{}` is of type `{type_name}` and {why}", slot.written), "")
}

impl TypedStatement<'_> {
    /// The forms of the columns of its result.
    ///
    /// # Errors
    /// For a column without one.
    pub(super) fn columns(&self) -> Result<Vec<TypeForm>, ToolFault> {
        let columns = self.statement.columns();
        if columns.len() != self.described.columns.len() {
            return Err(fault("database: failed", "the server described the columns in two ways"));
        }
        let form = |(column, of): (&Column, &u32)| {
            let refused = |why| {
                let name = column.name();
                fault(format!("database: the column `{name}` can't be read: {why}; cast it, as {name}::text"), "")
            };
            self.types.form(*of).map_err(refused)
        };
        columns.iter().zip(&self.described.columns).map(form).collect()
    }

    /// Its parameters.
    ///
    /// # Errors
    /// When the server reads more or fewer than the query has, or for one whose type has no form.
    pub(super) fn parameters<'q>(&self, translated: &'q ServerQuery) -> Result<Vec<TypedParameter<'q>>, ToolFault> {
        let (wanted, given) = (self.described.parameters.len(), translated.slots.len());
        if wanted != given {
            let why = format!("the server reads {wanted} parameters in the query, and there are {given}");
            return Err(fault("database: error in the query", why));
        }
        let parameter = |(slot, of): (&'q QuerySlot, &u32)| {
            let type_name = self.types.name(*of);
            let form = self.types.form(*of).map_err(|why| not_valid(slot, &type_name, &why))?;
            Ok(TypedParameter { slot, type_name, form })
        };
        translated.slots.iter().zip(&self.described.parameters).map(parameter).collect()
    }
}

fn arguments(typed: &TypedStatement<'_>, query: &Query, translated: &ServerQuery) -> Result<Vec<Argument>, ToolFault> {
    let argument = |parameter: &TypedParameter<'_>| {
        let value = parameter.slot.value(&query.values)?;
        Argument::new(value, &parameter.form).map_err(|why| parameter.not_valid(&why))
    };
    typed.parameters(translated)?.iter().map(argument).collect()
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
        let raw = raw_values(&row, prepared.columns.len()).map_err(refused)?;
        let size = raw.iter().zip(&prepared.columns).map(|(value, form)| read::size(*value, form));
        if found.has_room(size.fold(0, usize::saturating_add)) {
            found.push(values(&raw, &row, &prepared.columns).map_err(refused)?);
        } else if most > 0 && !found.is_full() {
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

fn raw_values(row: &Row, count: usize) -> Result<Vec<RawValue<'_>>, ToolFault> {
    let value = |at| row.try_get::<_, RawValue<'_>>(at).map_err(|error| fault("database: failed", error.to_string()));
    (0..count).map(value).collect()
}

fn values(raw: &[RawValue<'_>], row: &Row, forms: &[TypeForm]) -> Result<Vec<Value>, ToolFault> {
    let value = |((raw, form), column): ((&RawValue<'_>, &TypeForm), &Column)| {
        let refused = |why| fault(format!("database: a value of the column `{}` {why}", column.name()), "");
        read::value(*raw, form).map_err(refused)
    };
    raw.iter().zip(forms).zip(row.columns()).map(value).collect()
}
