//! A connection that renews itself: when it is lost, the next statement makes a new one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row, Statement};

use super::address::PostgresAddress;
use super::columns::NumberedStatement;
use super::database_errors::StatementError;
use super::target::PostgresTarget;
use crate::journal::{StoreError, failpoint};

/// The value of a parameter, and its type.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The text in a `bytea` column: a column of type `text` would refuse a NUL, which what clients write may contain.
pub(super) fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The first wait before a statement is sent again; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// The longest of these waits.
const MAX_WAIT: Duration = Duration::from_millis(1_000);
/// How often the time for an answer doubles.
const MAX_DOUBLINGS: u32 = 6;

/// The settings of a connection that sends a few statements again and again. Each is planned once: the arrays of a batch
/// look so short to the planner that it would plan each execution, which takes longer than the execution. A plan that is
/// kept must not scan a table which was small when it was made.
pub(super) const PLANNED_ONCE: &str = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off";

/// A connection that renews itself.
pub(super) struct Link {
    target: Arc<PostgresTarget>,
    /// Settings that are asked for when the connection is made.
    settings: Option<&'static str>,
    /// Whether a pooler refuses settings: then the connection is made without.
    refuses_settings: AtomicBool,
    connection: tokio::sync::Mutex<Option<Arc<Connected>>>,
    /// How often a connection was made.
    made: AtomicU64,
    /// How long an answer may take. A network can lose a connection without a word: then no answer ever comes.
    answered_in_ms: AtomicU64,
    /// How many answers in a row did not come. The time doubles with each: a server that is slow is not sent the same
    /// again and again.
    unanswered: AtomicU32,
}

struct Connected {
    client: Client,
    /// By their texts.
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl Link {
    /// A connection with this time limit for answers.
    pub(super) fn new(target: Arc<PostgresTarget>, answered_in: Duration) -> Self {
        let link = Self {
            target,
            settings: None,
            refuses_settings: AtomicBool::new(false),
            connection: tokio::sync::Mutex::default(),
            made: AtomicU64::new(0),
            answered_in_ms: AtomicU64::new(0),
            unanswered: AtomicU32::new(0),
        };
        link.set_time(answered_in);
        link
    }

    /// The same, for a few statements that are sent again and again.
    pub(super) fn planned_once(target: Arc<PostgresTarget>, answered_in: Duration) -> Self {
        let settings = target.prepares.then_some(PLANNED_ONCE);
        Self { settings, ..Self::new(target, answered_in) }
    }

    /// Sets how long an answer may take.
    pub(super) fn set_time(&self, answered_in: Duration) {
        self.answered_in_ms.store(u64::try_from(answered_in.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// The answer, if it comes in time. If it does not, the connection is taken for dead.
    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StatementError> {
        let doublings = self.unanswered.load(Ordering::SeqCst).min(MAX_DOUBLINGS);
        let time_ms = self.answered_in_ms.load(Ordering::SeqCst).saturating_mul(1 << doublings);
        let Ok(answer) = tokio::time::timeout(Duration::from_millis(time_ms), answer).await else {
            self.unanswered.fetch_add(1, Ordering::SeqCst);
            return Err(StatementError::Lost(format!("no answer in {time_ms} ms")));
        };
        self.unanswered.store(0, Ordering::SeqCst);
        Ok(answer?)
    }

    /// How often a connection was made in place of one that was lost.
    pub(super) fn reconnects(&self) -> u64 {
        self.made.load(Ordering::SeqCst).saturating_sub(1)
    }

    async fn connected(&self) -> Result<Arc<Connected>, StatementError> {
        let mut connection = self.connection.lock().await;
        if let Some(connected) = connection.as_ref().filter(|connected| !connected.client.is_closed()) {
            return Ok(Arc::clone(connected));
        }
        *connection = None;
        let PostgresAddress { config, tls, .. } = &self.target.address;
        let connecting = async {
            let Some(settings) = self.settings.filter(|_| !self.refuses_settings.load(Ordering::SeqCst)) else {
                return config.connect(tls.clone()).await;
            };
            match with_settings(config, settings).connect(tls.clone()).await {
                Err(error) if is_refusal_of_settings(&error) => {
                    self.refuses_settings.store(true, Ordering::SeqCst);
                    config.connect(tls.clone()).await
                }
                made => made,
            }
        };
        let (client, driver) = self.in_time(connecting).await?;
        tokio::spawn(
            async move {
                // A statement that waits for an answer gets this error too.
                drop(driver.await);
            }
            .boxed(),
        );
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
    ) -> Result<Vec<Row>, StatementError> {
        let connected = self.connected().await?;
        let failure = failpoint::statement();
        if let Some((code, false)) = failure {
            return Err(self.broken(&connected, code).await);
        }
        let asked = async {
            if self.target.prepares {
                let statement = connected.prepared(sql, &self.target.schema, parameters).await?;
                let values: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|(value, _)| *value).collect();
                connected.client.query(&statement, &values).await
            } else {
                connected.client.query_typed(&sql.replace('@', &self.target.schema), parameters).await
            }
        };
        let rows = self.in_time(asked).await;
        // The answer to a statement that was done is lost.
        if let Some((code, true)) = failure {
            return Err(self.broken(&connected, code).await);
        }
        if let Err(StatementError::Lost(_)) = &rows {
            self.drop_connection(&connected).await;
        }
        found(sql, rows)
    }

    /// The same for a statement whose parameters have their numbers from names; `all` are all of them.
    pub(super) async fn query_numbered(
        &self,
        statement: &'static NumberedStatement,
        all: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StatementError> {
        self.query(statement.text(), statement.taken(all)).await
    }

    /// The same for a text that is made for one use.
    pub(super) async fn query_once(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, StatementError> {
        let connected = self.connected().await?;
        let sql = sql.replace('@', &self.target.schema);
        let rows = self.in_time(connected.client.query_typed(&sql, parameters)).await;
        if let Err(StatementError::Lost(_)) = &rows {
            self.drop_connection(&connected).await;
        }
        found(&sql, rows)
    }

    /// Several statements without parameters, in one transaction.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), StatementError> {
        let connected = self.connected().await?;
        Ok(connected.client.batch_execute(&sql.replace('@', &self.target.schema)).await?)
    }

    /// The next statement makes a new connection, unless another one has made one since.
    async fn drop_connection(&self, broken: &Arc<Connected>) {
        let mut connection = self.connection.lock().await;
        if connection.as_ref().is_some_and(|connected| Arc::ptr_eq(connected, broken)) {
            *connection = None;
        }
    }

    /// The trouble of a fail point, with its connection broken if its kind of error breaks it.
    async fn broken(&self, connected: &Arc<Connected>, code: &str) -> StatementError {
        if code.starts_with("08") || code.starts_with("57P") {
            self.drop_connection(connected).await;
        }
        StatementError::of(code, "a fail point")
    }
}

impl Connected {
    async fn prepared(
        &self,
        sql: &'static str,
        schema: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Statement, tokio_postgres::Error> {
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

/// What a statement found. One that reads, and is given a text with a NUL as an id or a name, finds nothing: the database refuses
/// such a text, and no row has it.
fn found(sql: &str, rows: Result<Vec<Row>, StatementError>) -> Result<Vec<Row>, StatementError> {
    match rows {
        Err(StatementError::Database { code, .. })
            if code == SqlState::CHARACTER_NOT_IN_REPERTOIRE.code() && sql.trim_start().starts_with("SELECT") =>
        {
            Ok(Vec::new())
        }
        rows => rows,
    }
}

/// The settings before those of the address: PostgreSQL takes the last one of a name.
fn with_settings(config: &Config, settings: &str) -> Config {
    let mut config = config.clone();
    let options = config.get_options().map_or_else(|| settings.to_owned(), |own| format!("{settings} {own}"));
    config.options(options);
    config
}

/// Whether a pooler does not let clients set anything.
fn is_refusal_of_settings(error: &tokio_postgres::Error) -> bool {
    let refusals = [&SqlState::PROTOCOL_VIOLATION, &SqlState::FEATURE_NOT_SUPPORTED];
    error.code().is_some_and(|code| refusals.contains(&code))
}

/// The patience with a statement whose outcome is not known.
pub(super) struct StatementPatience {
    until: tokio::time::Instant,
    wait: Duration,
}

impl StatementPatience {
    /// Patience for this time.
    pub(super) fn new(time: Duration) -> Self {
        Self { until: tokio::time::Instant::now() + time, wait: FIRST_WAIT }
    }

    /// Waits before the statement is sent again; the fault when it is not.
    pub(super) async fn again(&mut self, trouble: StatementError) -> Result<(), StoreError> {
        match trouble {
            StatementError::Lost(_) | StatementError::Undone(_) if !self.is_over() => {
                // Statements that failed together do not come back together.
                let wait_ms = u64::try_from(self.wait.as_millis()).unwrap_or(u64::MAX);
                tokio::time::sleep(Duration::from_millis(fastrand::u64(wait_ms / 2..=wait_ms))).await;
                self.wait = self.wait.saturating_mul(2).min(MAX_WAIT);
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
pub(super) async fn persist<T, F: Future<Output = Result<T, StatementError>>>(
    time: Duration,
    send: impl Fn() -> F,
) -> Result<T, StoreError> {
    let mut patience = StatementPatience::new(time);
    loop {
        match send().await {
            Ok(answer) => return Ok(answer),
            Err(trouble) => patience.again(trouble).await?,
        }
    }
}
