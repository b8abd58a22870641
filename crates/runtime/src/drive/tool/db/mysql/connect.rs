//! Connections to a server.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error};

use super::address::MysqlAddress;
use super::failure::of_connect;
use crate::drive::tool::db::server_call::transient;
use crate::drive::tool::db::server_pool::PooledConnection;
use crate::drive::tool::runner::RawFault;

/// How long the request to stop a statement may take, and the end of its connection.
const STOP: Duration = Duration::from_secs(5);
/// How long what a server still sends is read before its connection is dropped.
const DRAIN: Duration = Duration::from_millis(200);

/// What every call begins with. Texts are UTF-8, moments are in UTC, and a value that a column does not hold is refused.
/// The modes that change what quotes and backslashes mean are off.
const SETTINGS: &str = "SET NAMES utf8mb4, SESSION sql_notes = 1, SESSION time_zone = '+00:00', SESSION sql_mode = CONCAT_WS(',', \
    'STRICT_ALL_TABLES', \
    IF(FIND_IN_SET('ONLY_FULL_GROUP_BY', @@sql_mode), 'ONLY_FULL_GROUP_BY', NULL), \
    IF(FIND_IN_SET('NO_ZERO_DATE', @@sql_mode), 'NO_ZERO_DATE', NULL), \
    IF(FIND_IN_SET('NO_ZERO_IN_DATE', @@sql_mode), 'NO_ZERO_IN_DATE', NULL), \
    IF(FIND_IN_SET('NO_ENGINE_SUBSTITUTION', @@sql_mode), 'NO_ENGINE_SUBSTITUTION', NULL), \
    IF(FIND_IN_SET('NO_AUTO_VALUE_ON_ZERO', @@sql_mode), 'NO_AUTO_VALUE_ON_ZERO', NULL), \
    IF(FIND_IN_SET('PIPES_AS_CONCAT', @@sql_mode), 'PIPES_AS_CONCAT', NULL), \
    'ERROR_FOR_DIVISION_BY_ZERO')";

/// A connection.
pub(super) struct MysqlConnection {
    pub(super) connection: Conn,
    /// Whether the server is MariaDB.
    pub(super) is_mariadb: bool,
}

impl PooledConnection for MysqlConnection {
    type Address = MysqlAddress;

    async fn connect(address: &MysqlAddress) -> Result<Self, RawFault> {
        let connect = async {
            let mut connection = Conn::new(address.options.clone()).await?;
            connection.query_drop(SETTINGS).await?;
            let version: Option<String> = connection.query_first("SELECT VERSION()").await?;
            let is_mariadb = version.is_some_and(|version| version.contains("MariaDB"));
            Ok(Self { connection, is_mariadb })
        };
        match tokio::time::timeout(address.connect_timeout, connect).await {
            Ok(connected) => connected.map_err(|error: Error| of_connect(&error, &address.server())),
            Err(_) => Err(transient("database: can't be opened", format!("{}: it does not answer", address.server()))),
        }
    }

    fn is_closed(&self) -> bool {
        self.connection.is_disconnected()
    }

    async fn reset(&mut self) -> bool {
        // It rolls back, and ends temporary tables, locks, variables and prepared statements.
        matches!(self.connection.reset().await, Ok(true)) && self.connection.query_drop(SETTINGS).await.is_ok()
    }

    async fn stop(self, address: &MysqlAddress) {
        let id = self.connection.id();
        let kill = async {
            let mut other = Conn::new(address.options.clone()).await?;
            other.query_drop(format!("KILL {id}")).await?;
            other.disconnect().await
        };
        // If it can't be reached, the server's own time limit stops the statement.
        drop(tokio::time::timeout(STOP, kill).await);
        // The driver reads what was asked for before it says goodbye: that is not waited for.
        drop(tokio::time::timeout(DRAIN, self.connection.disconnect()).await);
    }
}
