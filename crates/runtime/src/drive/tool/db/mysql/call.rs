//! A call: one statement in a transaction of its own.

use std::sync::Arc;

use mysql_async::prelude::Queryable as _;
use mysql_async::{BinaryProtocol, Column, Conn, Error, Params, QueryResult, Row, Value as Sql};
use serde_json::{Map, Value, json};

use super::argument::MysqlArgument;
use super::connect::MysqlConnection;
use super::failure::{is_lost, is_too_large, of_error, text};
use super::forms::ColumnForm;
use super::read;
use super::{parameter_context, value_fit};
use crate::drive::tool::db::rows::{MAX_BYTES, ResultRows, RowLimit};
use crate::drive::tool::db::server_call::{self, CallFailure, CallResult, ServerCall, lost};
use crate::drive::tool::db::server_pool::Pool;
use crate::drive::tool::db::server_query::{self, PlaceholderForm, QuerySlot, ServerQuery};
use crate::drive::tool::db::{Query, QueryValues};
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;
use loopctl_engine::event::ToolFault;
use loopctl_lang::policy::mysql;

/// The most bytes of rows that a call reads from the server.
const MAX_READ: usize = 4 * MAX_BYTES;

/// The warnings of values that were rounded, cut, or read as something else: of types, ranges, lengths, NULL, divisions by 0.
const CHANGED: [u16; 10] = [1048, 1264, 1265, 1292, 1365, 1366, 1406, 1411, 1918, 4078];
/// The warning of a table that keeps what its transaction did not end with.
const NOT_ROLLED_BACK: u16 = 1196;

/// A call: a query with its translation and its values.
struct MysqlCall {
    query: Query,
    translated: ServerQuery,
    arguments: Vec<MysqlArgument>,
}

impl ServerCall<MysqlConnection> for MysqlCall {
    async fn perform(&self, connection: &mut MysqlConnection) -> Result<CallResult, CallFailure> {
        perform(connection, &self.query, &self.translated, &self.arguments).await
    }
}

/// Makes a call.
///
/// # Errors
/// The class of the server's error; a value without a form that is exact.
pub(super) async fn run(pool: Arc<Pool<MysqlConnection>>, query: Query) -> Result<Value, RawFault> {
    let translated = translate(&query.sql, query.read_only)?;
    let arguments = arguments(&translated, &query.values)?;
    let limit = query.deadline;
    server_call::run(&pool, limit, &MysqlCall { query, translated, arguments }).await
}

/// The query for the server.
///
/// # Errors
/// For a statement that a call may not be.
pub(super) fn translate(query: &str, read_only: bool) -> Result<ServerQuery, ToolFault> {
    if mysql::is_several(query) {
        return Err(server_query::several());
    }
    if let Some(why) = mysql::refusal(query, read_only) {
        return Err(fault("database: not allowed", why));
    }
    Ok(ServerQuery::new(query, mysql::placeholders(query), PlaceholderForm::Question))
}

fn arguments(translated: &ServerQuery, values: &QueryValues) -> Result<Vec<MysqlArgument>, ToolFault> {
    let argument = |slot: &QuerySlot| {
        let refused = |why| fault(format!("database: value not valid: `{}`: {why}", slot.written), "");
        MysqlArgument::new(slot.value(values)?).map_err(refused)
    };
    translated.slots.iter().map(argument).collect()
}

async fn perform(
    connection: &mut MysqlConnection,
    query: &Query,
    translated: &ServerQuery,
    arguments: &[MysqlArgument],
) -> Result<CallResult, CallFailure> {
    let server = &mut connection.connection;
    let limits = limits(query, connection.is_mariadb);
    server.query_drop(limits).await.map_err(|error| unsent(&error))?;
    let begin = if query.read_only { "START TRANSACTION READ ONLY" } else { "START TRANSACTION READ WRITE" };
    server.query_drop(begin).await.map_err(|error| unsent(&error))?;
    refuse_unfit(server, query, translated).await?;
    let text = translated.with_expressions(arguments.iter().map(|argument| argument.expression.as_str()));
    let statement = server.prep(text).await.map_err(|error| unsent(&error))?;
    forms(&statement.columns()).map_err(refused)?;
    let values: Vec<Sql> = arguments.iter().map(|argument| argument.value.clone()).collect();
    let params = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
    let sent = |error: &Error| sent(error, query.read_only);
    let result = server.exec_iter(&statement, params).await.map_err(|error| sent(&error))?;
    let read = read_rows(result, query.read_only, query.rows).await?;
    if query.read_only || !read.is_ready {
        // What was read needs no end: the reset rolls back.
        return Ok(read);
    }
    if server.get_warnings() > 0 && !mysql::commits_itself(&query.sql) {
        refuse_changed(server).await?;
    }
    server.query_drop("COMMIT").await.map_err(|error| sent(&error))?;
    Ok(read)
}

/// Refuses a value that MySQL would compare as something else, or round.
async fn refuse_unfit(server: &mut Conn, query: &Query, translated: &ServerQuery) -> Result<(), CallFailure> {
    for meeting in parameter_context::meetings(&translated.text) {
        let Some(slot) = translated.slots.get(meeting.slot) else { continue };
        let value = slot.value(&query.values).map_err(refused)?;
        let why = value_fit::refusal(server, &meeting, value).await.map_err(|error| unsent(&error))?;
        if let Some(why) = why {
            return Err(refused(fault(format!("database: value not valid: `{}`: {why}", slot.written), "")));
        }
    }
    Ok(())
}

/// Takes a statement back that changed a value to one that its column holds.
async fn refuse_changed(server: &mut Conn) -> Result<(), CallFailure> {
    let lost = |error: &Error| sent(error, false);
    let warnings: Vec<(String, u16, String)> = server.query("SHOW WARNINGS").await.map_err(|error| lost(&error))?;
    let Some((_, _, message)) = warnings.into_iter().find(|(_, code, _)| CHANGED.contains(code)) else { return Ok(()) };
    server.query_drop("ROLLBACK").await.map_err(|error| lost(&error))?;
    let warnings: Vec<(String, u16, String)> = server.query("SHOW WARNINGS").await.map_err(|error| lost(&error))?;
    let is_kept = warnings.iter().any(|(_, code, _)| *code == NOT_ROLLED_BACK);
    let outcome =
        if is_kept { "the table has no transactions, and keeps what was written" } else { "nothing was written" };
    Err(refused(fault(format!("database: value not valid: {message}; {outcome}"), "")))
}

/// The limits of a call, for the server.
fn limits(query: &Query, is_mariadb: bool) -> String {
    let ms = query.deadline.as_millis().clamp(1, 1_000_000_000);
    let seconds = ms.div_ceil(1000);
    let time = if is_mariadb {
        format!("max_statement_time = {}.{:03}", ms / 1000, ms % 1000)
    } else {
        format!("max_execution_time = {ms}")
    };
    // A reader asks for one row more than it may keep.
    let most = query.rows.most.saturating_add(1);
    let rows = if query.read_only { format!(", SESSION sql_select_limit = {most}") } else { String::new() };
    format!(
        "SET SESSION {time}, SESSION lock_wait_timeout = {seconds}, SESSION innodb_lock_wait_timeout = {seconds}{rows}"
    )
}

/// A failure before the statement was sent.
fn unsent(error: &Error) -> CallFailure {
    if is_lost(error) { CallFailure::Unsent(text(error)) } else { CallFailure::Refused(of_error(error)) }
}

/// A failure after that.
fn sent(error: &Error, read_only: bool) -> CallFailure {
    if is_too_large(error) {
        return too_large();
    }
    if is_lost(error) {
        return CallFailure::Broken(lost(read_only, text(error)));
    }
    match error {
        Error::Server(_) => CallFailure::Refused(of_error(error)),
        _ => CallFailure::Broken(of_error(error)),
    }
}

fn too_large() -> CallFailure {
    let why = format!("the server sent a row of more than {MAX_BYTES} bytes, or more than {MAX_READ} bytes of rows");
    CallFailure::Broken(fault("database: result too large", why).into())
}

fn refused(fault: ToolFault) -> CallFailure {
    CallFailure::Refused(fault.into())
}

fn broken(fault: ToolFault) -> CallFailure {
    CallFailure::Broken(fault.into())
}

/// The forms of the columns of a result.
///
/// # Errors
/// For a column without one.
pub(super) fn forms(columns: &[Column]) -> Result<Vec<ColumnForm>, ToolFault> {
    let form = |column: &Column| {
        let refused = |why| {
            let name = column.name_str();
            fault(format!("database: the column `{name}` can't be read: {why}; convert it, as ST_AsText({name})"), "")
        };
        ColumnForm::of(column).map_err(refused)
    };
    columns.iter().map(form).collect()
}

/// Reads the rows of a statement within the limits, and nothing behind them.
async fn read_rows(
    mut result: QueryResult<'_, '_, BinaryProtocol>,
    read_only: bool,
    limit: RowLimit,
) -> Result<CallResult, CallFailure> {
    let columns = result.columns().unwrap_or_else(|| Arc::from(Vec::new()));
    let forms = forms(&columns).map_err(broken)?;
    let names: Vec<String> = columns.iter().map(|column| column.name_str().into_owned()).collect();
    let mut found = ResultRows::new(names.iter().map(String::as_str), limit);
    let (mut bytes, mut is_over, failed) = (0_usize, false, |error: Error| sent(&error, read_only));
    let (changes, id) = (result.affected_rows(), result.last_insert_id());
    while let Some(row) = result.next().await.map_err(failed)? {
        bytes = bytes.saturating_add(raw_size(&row));
        if bytes > MAX_READ {
            return Err(too_large());
        }
        if found.has_room(size(&row, &forms)) {
            found.push(values(row, &forms, &names).map_err(broken)?);
        } else if read_only {
            if is_over || !found.is_full() {
                // Its rows are long, or its own limit is higher: what follows may be much.
                return Ok(CallResult { value: found.into_value().map_err(broken)?, is_ready: false });
            }
            is_over = true;
        }
    }
    while !result.is_empty() {
        // A procedure ends with a result that has no columns.
        if !result.columns_ref().is_empty() {
            let why = "database: the statement gives more than one result, and a call has one";
            return Err(broken(fault(why, "")));
        }
        result.next().await.map_err(failed)?;
    }
    // Without its end, the transaction writes nothing.
    let value = if columns.is_empty() { written(changes, id) } else { found.into_value().map_err(broken)? };
    Ok(CallResult { value, is_ready: true })
}

/// What a statement without rows did.
fn written(changes: u64, id: Option<u64>) -> Value {
    let mut written = Map::new();
    written.insert("changes".to_owned(), json!(changes));
    if let Some(id) = id.filter(|id| *id > 0) {
        written.insert("last_insert_id".to_owned(), json!(id));
    }
    Value::Object(written)
}

/// How many bytes a row takes as JSON, at most.
fn size(row: &Row, forms: &[ColumnForm]) -> usize {
    let size = |(at, form): (usize, &ColumnForm)| read::size(row.as_ref(at).unwrap_or(&Sql::NULL), *form);
    forms.iter().enumerate().map(size).fold(0, usize::saturating_add)
}

/// About how many bytes a row is.
fn raw_size(row: &Row) -> usize {
    let size = |at| match row.as_ref(at) {
        Some(Sql::Bytes(bytes)) => bytes.len(),
        _ => 8,
    };
    (0..row.len()).map(size).sum()
}

fn values(row: Row, forms: &[ColumnForm], names: &[String]) -> Result<Vec<Value>, ToolFault> {
    let fields = row.unwrap_raw().into_iter().zip(forms).zip(names);
    let value = |((sql, form), name): ((Option<Sql>, &ColumnForm), &String)| {
        let refused = |why| fault(format!("database: a value of the column `{name}` {why}"), "");
        read::value(sql.unwrap_or(Sql::NULL), *form).map_err(refused)
    };
    fields.map(value).collect()
}
