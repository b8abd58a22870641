//! Prepares queries at a server without running them: its syntax, its tables and columns, and the types of its results.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, ServerError};
use tokio::time::timeout;

use super::address::MysqlAddress;
use super::call::{forms, translate};
use super::connect::MysqlConnection;
use super::failure::{is_lost, text};
use super::parameter_context::MeetingKind;
use super::{parameter_context, value_fit};
use crate::drive::tool::db::probe::{PROBE_TIME, PreparedQuery, ProbeRuntime, ServerProbe};
use crate::drive::tool::db::server_pool::PooledConnection as _;
use crate::drive::tool::db::server_query::ServerQuery;
use crate::drive::tool::output::fault;
use loopctl_engine::event::ToolFault;
use loopctl_lang::compile::{QueryFault, QueryFaultKind, QueryParameter};
use loopctl_lang::policy::sql;

/// The tables of the connection's database.
const TABLES: &str =
    "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1 LIMIT 200";
/// The columns of its tables that a text names.
const COLUMNS: &str = "SELECT DISTINCT column_name FROM information_schema.columns WHERE table_schema = DATABASE() \
    AND FIND_IN_SET(table_name, ?) LIMIT 2000";

/// A connection to a server.
pub(super) struct MysqlProbe {
    runtime: ProbeRuntime,
    connection: MysqlConnection,
}

impl MysqlProbe {
    /// Connects.
    ///
    /// # Errors
    /// When the server does not answer in time.
    pub(super) fn new(address: &MysqlAddress) -> Result<Self, ToolFault> {
        let runtime = ProbeRuntime::new()?;
        match runtime.run(async { timeout(PROBE_TIME, MysqlConnection::connect(address)).await }) {
            Some(Ok(Ok(connection))) => Ok(Self { runtime, connection }),
            Some(Ok(Err(why))) => Err(why.fault),
            _ => Err(fault("database: can't be opened", "it does not answer")),
        }
    }
}

impl ServerProbe for MysqlProbe {
    fn prepare(&mut self, query: &str) -> PreparedQuery {
        let Self { runtime, connection } = self;
        let server = &mut connection.connection;
        // A server that takes too long says nothing.
        let look = async {
            let fault = look(server, query).await;
            // It gives a parameter no type: what the parameter meets has one.
            let parameters = if fault.is_some() { Vec::new() } else { parameters(server, query).await };
            PreparedQuery { fault, parameters }
        };
        runtime.run(async { timeout(PROBE_TIME, look).await.unwrap_or_default() }).unwrap_or_default()
    }
}

fn invalid(message: String) -> QueryFault {
    QueryFault { kind: QueryFaultKind::Invalid, message, offset: None }
}

/// The named parameters that are compared with something, and what may be compared with it.
async fn parameters(connection: &mut Conn, query: &str) -> Vec<QueryParameter> {
    let (Ok(translated), mut found) = (translate(query, false), Vec::new()) else { return Vec::new() };
    for meeting in parameter_context::meetings(&translated.text) {
        let name = translated.slots.get(meeting.slot).and_then(|slot| slot.written.get(1..));
        let name = name.filter(|name| !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()));
        let (Some(name), MeetingKind::Compared) = (name, meeting.kind) else { continue };
        if let Ok(Some(column)) = value_fit::column(connection, &meeting).await {
            let (name, type_name) = (name.to_owned(), column.name().to_owned());
            found.push(QueryParameter { name, type_name, takes: column.takes() });
        }
    }
    found
}

/// What the server has against a query.
async fn look(connection: &mut Conn, query: &str) -> Option<QueryFault> {
    let translated = match translate(query, false) {
        Ok(translated) => translated,
        Err(fault) => return Some(invalid(fault.detail)),
    };
    match connection.prep(translated.text.as_str()).await {
        Ok(statement) => {
            let refused = forms(&statement.columns()).err();
            connection.close(statement).await.ok();
            refused.map(|fault| invalid(fault.class.trim_start_matches("database: ").to_owned()))
        }
        Err(Error::Server(error)) if !is_lost(&Error::Server(error.clone())) => {
            query_fault(connection, query, &translated, &error).await
        }
        Err(_) => None,
    }
}

async fn query_fault(
    connection: &mut Conn,
    query: &str,
    translated: &ServerQuery,
    error: &ServerError,
) -> Option<QueryFault> {
    let message = text(&Error::Server(error.clone()));
    // What a statement can't be prepared for is no fault of it.
    if error.code == 1295 {
        return None;
    }
    let is_table = match error.code {
        1146 | 1051 => true,
        1054 => false,
        _ => {
            let offset = near(&error.message, &translated.text).map(|at| translated.written_at(at));
            return Some(QueryFault { kind: QueryFaultKind::Invalid, message, offset });
        }
    };
    let written = error.message.split('\'').nth(1).unwrap_or_default();
    // Tables are named with their database.
    let name = if is_table { written.rsplit('.').next().unwrap_or_default() } else { written };
    if name.is_empty() {
        return Some(invalid(message));
    }
    let known = if is_table {
        connection.query(TABLES).await
    } else {
        let words: Vec<&str> = query.split(|c: char| !sql::is_name(c)).filter(|word| !word.is_empty()).collect();
        connection.exec(COLUMNS, (words.join(","),)).await
    };
    let known: Vec<String> = known.unwrap_or_default();
    let offset = find_name(query, name);
    Some(QueryFault { kind: QueryFaultKind::UnknownName { name: name.to_owned(), is_table, known }, message, offset })
}

/// Where the text begins that a message quotes as what could not be read: `near '...' at line 2`.
fn near(message: &str, text: &str) -> Option<usize> {
    let (_, quoted) = message.split_once(" near '")?;
    let (quoted, _) = quoted.rsplit_once("' at line ")?;
    if quoted.is_empty() { None } else { text.rfind(quoted) }
}

/// Where a name stands in a query, as a word of its own.
fn find_name(query: &str, name: &str) -> Option<usize> {
    let is_whole = |at: &usize| {
        let before = query.get(..*at).and_then(|before| before.chars().next_back());
        let after = query.get(at + name.len()..).and_then(|after| after.chars().next());
        ![before, after].into_iter().flatten().any(sql::is_name)
    };
    query.match_indices(name).map(|(at, _)| at).find(is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_fault_is_found_in_the_query() {
        let message = "You have an error in your SQL syntax; ... the right syntax to use near 'WHER id = ?' at line 1";
        assert_eq!(near(message, "SELECT a FROM t WHER id = ?"), Some(16));
        assert_eq!(near("no place", "SELECT"), None);
        assert_eq!(find_name("SELECT totls, totl FROM t", "totl"), Some(14));
        assert_eq!(find_name("SELECT totls", "totl"), None);
    }
}
