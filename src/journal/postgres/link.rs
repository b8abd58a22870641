//! A connection that renews itself: when it is lost, the next statement makes a new one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

use super::target::PostgresTarget;
use super::trouble::StatementFailure;
use crate::journal::{StoreFault, failpoint};

/// The value of a parameter, and its type.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The first wait before a statement is sent again; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// The longest of these waits.
const LONGEST_WAIT: Duration = Duration::from_millis(1_000);

/// A connection that renews itself.
pub(super) struct Link {
    target: Arc<PostgresTarget>,
    connection: tokio::sync::Mutex<Option<Arc<Connected>>>,
    /// How often a connection was made.
    made: AtomicU64,
}

struct Connected {
    client: Client,
    /// By their texts.
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl Link {
    pub(super) fn new(target: Arc<PostgresTarget>) -> Self {
        Self { target, connection: tokio::sync::Mutex::default(), made: AtomicU64::new(0) }
    }

    /// How often a connection was made: differs from an earlier value when one was lost in between.
    pub(super) fn made(&self) -> u64 {
        self.made.load(Ordering::SeqCst)
    }

    async fn connected(&self) -> Result<Arc<Connected>, StatementFailure> {
        let mut connection = self.connection.lock().await;
        if let Some(connected) = connection.as_ref().filter(|connected| !connected.client.is_closed()) {
            return Ok(Arc::clone(connected));
        }
        *connection = None;
        let (client, driver) = self.target.address.config.connect(self.target.address.tls.clone()).await?;
        tokio::spawn(async move {
            // A statement that waits for an answer gets this error too.
            drop(driver.await);
        });
        self.made.fetch_add(1, Ordering::SeqCst);
        let connected = Arc::new(Connected { client, statements: Mutex::default() });
        *connection = Some(Arc::clone(&connected));
        Ok(connected)
    }

    /// The rows of a statement. In its text, `@` is the schema.
    pub(super) async fn query(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StatementFailure> {
        let connected = self.connected().await?;
        let failure = failpoint::statement();
        if let Some((code, false)) = failure {
            return Err(self.broken(code).await);
        }
        let rows = if self.target.prepares {
            let statement = connected.prepared(sql, &self.target.schema, parameters).await?;
            let values: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|(value, _)| *value).collect();
            connected.client.query(&statement, &values).await
        } else {
            connected.client.query_typed(&sql.replace('@', &self.target.schema), parameters).await
        };
        // The answer to a statement that was done is lost.
        if let Some((code, true)) = failure {
            return Err(self.broken(code).await);
        }
        let rows = rows.map_err(StatementFailure::from);
        if let Err(StatementFailure::Lost(_)) = &rows {
            self.drop_connection().await;
        }
        rows
    }

    /// The same for a text that is made for one use.
    pub(super) async fn query_once(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StatementFailure> {
        let connected = self.connected().await?;
        let rows = connected.client.query_typed(&sql.replace('@', &self.target.schema), parameters).await;
        Ok(rows?)
    }

    /// Several statements without parameters, in one transaction.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), StatementFailure> {
        let connected = self.connected().await?;
        Ok(connected.client.batch_execute(&sql.replace('@', &self.target.schema)).await?)
    }

    /// The next statement makes a new connection.
    async fn drop_connection(&self) {
        *self.connection.lock().await = None;
    }

    /// The trouble of a fail point, with its connection broken if its kind of error breaks it.
    async fn broken(&self, code: &str) -> StatementFailure {
        if code.starts_with("08") || code.starts_with("57P") {
            self.drop_connection().await;
        }
        StatementFailure::of(code, "a fail point")
    }
}

impl Connected {
    async fn prepared(
        &self,
        sql: &'static str,
        schema: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Statement, StatementFailure> {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let types: Vec<Type> = parameters.iter().map(|(_, of)| of.clone()).collect();
        let statement = self.client.prepare_typed(&sql.replace('@', schema), &types).await?;
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(sql, statement.clone());
        Ok(statement)
    }
}

/// The patience with a statement whose outcome is not known.
pub(super) struct StatementPatience {
    until: tokio::time::Instant,
    wait: Duration,
}

impl StatementPatience {
    /// For so long.
    pub(super) fn new(time: Duration) -> Self {
        Self { until: tokio::time::Instant::now() + time, wait: FIRST_WAIT }
    }

    /// Waits before the statement is sent again; the fault when it is not.
    pub(super) async fn again(&mut self, trouble: StatementFailure) -> Result<(), StoreFault> {
        match trouble {
            StatementFailure::Lost(_) | StatementFailure::Undone(_) if !self.is_over() => {
                // Statements that failed together do not come back together.
                let wait_ms = u64::try_from(self.wait.as_millis()).unwrap_or(u64::MAX);
                tokio::time::sleep(Duration::from_millis(fastrand::u64(wait_ms / 2..=wait_ms))).await;
                self.wait = self.wait.saturating_mul(2).min(LONGEST_WAIT);
                Ok(())
            }
            trouble => Err(trouble.into_fault()),
        }
    }

    fn is_over(&self) -> bool {
        tokio::time::Instant::now() >= self.until
    }
}

/// Sends a statement until its outcome is known, or the patience is over.
pub(super) async fn persist<T, F: Future<Output = Result<T, StatementFailure>>>(
    time: Duration,
    send: impl Fn() -> F,
) -> Result<T, StoreFault> {
    let mut patience = StatementPatience::new(time);
    loop {
        match send().await {
            Ok(answer) => return Ok(answer),
            Err(trouble) => patience.again(trouble).await?,
        }
    }
}
