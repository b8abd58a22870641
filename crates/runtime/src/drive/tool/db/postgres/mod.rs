//! Databases of PostgreSQL servers. Each call is one statement in a transaction of its own, which is read-only unless
//! the action may write.

mod argument;
mod call;
mod connect;
mod failure;
mod forms;
#[cfg(feature = "probe")]
mod probe;
mod read;
mod server_types;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio_postgres::config::Host;

use self::connect::ServerConnection;
use super::address::DatabaseAddress;
use super::rows::RowLimit;
use super::server_pool::Pool;
use super::{CONNECTION_WAIT, DatabaseKind, Query, ToolDatabase};
use crate::drive::egress::Egress;
use crate::drive::future::BoxFuture;
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;
use crate::journal::postgres::address::{AddressError, OwnParameters, PostgresAddress};
use loopctl_engine::event::ToolFault;
use loopctl_lang::policy::host;
use loopctl_lang::program::table::TableRequest;

/// The kind of database.
pub(super) const KIND: DatabaseKind = DatabaseKind {
    schemes: &["postgres", "postgresql"],
    form: "postgres://USER@HOST/DATABASE",
    #[cfg(feature = "probe")]
    probe: Some(|address, egress| Ok(Box::new(probe::PostgresProbe::new(&read(address, egress)?)?))),
    is_valid: |rest| rest.starts_with("//"),
    open: |address, egress| {
        let pool = Pool::new(read(address, egress)?, address.connections);
        Ok(Arc::new(PostgresDatabase { pool: Arc::new(pool) }))
    },
};

/// A database on a server.
struct PostgresDatabase {
    pool: Arc<Pool<ServerConnection>>,
}

impl ToolDatabase for PostgresDatabase {
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

/// An address says nothing of its own.
struct NoParameters;

impl OwnParameters for NoParameters {
    const NAMES: &'static [&'static str] = &[];

    fn take(&mut self, _: &str, _: &str) -> Result<bool, &'static str> {
        Ok(false)
    }
}

/// Reads the address of a datasource.
///
/// # Errors
/// When it is none, or one of its hosts is not allowed.
#[cfg_attr(not(unix), expect(irrefutable_let_patterns, reason = "a host is a socket's folder on Unix only"))]
fn read(address: &DatabaseAddress, egress: &Egress) -> Result<PostgresAddress, ToolFault> {
    let read = PostgresAddress::read(address.url.expose_secret(), &address.root, &mut NoParameters);
    let mut read = read.map_err(|AddressError { shown, why }| {
        fault("database: not configured", format!("datasource `{}`, {shown}: {why}", address.name))
    })?;
    if let Some(password) = &address.password {
        read.config.password(password.expose_secret());
    }
    for (host, port) in connect::hosts(&read.config) {
        if let Host::Tcp(name) = host {
            let name = if name.contains(':') { format!("[{name}]") } else { name.clone() };
            let name = host::spelling(&name).unwrap_or(name);
            let checked = egress.check_listed(&name, Some(port));
            checked.map_err(|why| fault("address not allowed", why.to_string()))?;
        }
    }
    Ok(read)
}
