//! Databases of MySQL and MariaDB servers. Each call is one statement in a transaction of its own, which is read-only
//! unless the action may write.

mod address;
mod argument;
mod call;
mod connect;
mod failure;
mod forms;
mod parameter_context;
#[cfg(feature = "probe")]
mod probe;
mod read;
mod value_fit;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use self::connect::MysqlConnection;
use super::rows::RowLimit;
use super::server_pool::Pool;
use super::{CONNECTION_WAIT, DatabaseKind, Query, ToolDatabase};
use crate::drive::future::BoxFuture;
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;
use loopctl_lang::program::table::TableRequest;

/// The kind of database.
pub(super) const KIND: DatabaseKind = DatabaseKind {
    schemes: &["mysql", "mariadb"],
    form: "mysql://USER@HOST/DATABASE",
    #[cfg(feature = "probe")]
    probe: Some(|address, egress| Ok(Box::new(probe::MysqlProbe::new(&address::read(address, egress)?)?))),
    is_valid: |rest| rest.starts_with("//"),
    open: |address, egress| {
        let pool = Pool::new(address::read(address, egress)?, address.connections);
        Ok(Arc::new(MysqlDatabase { pool: Arc::new(pool) }))
    },
};

/// A database on a server.
struct MysqlDatabase {
    pool: Arc<Pool<MysqlConnection>>,
}

impl ToolDatabase for MysqlDatabase {
    fn waiting(&self) -> Duration {
        CONNECTION_WAIT
    }

    fn run(&self, query: Query) -> BoxFuture<'static, Result<Value, RawFault>> {
        Box::pin(call::run(Arc::clone(&self.pool), query))
    }

    fn request(&self, _: TableRequest, _: RowLimit, _: Duration) -> BoxFuture<'static, Result<Value, RawFault>> {
        let why = "custom tables are those of an SQLite file; use a `db` action for this database";
        Box::pin(async move { Err(fault("database: not supported", why).into()) })
    }
}
