//! Connections to the hosts of an address, each tried in its order.

use std::io;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{MakeTlsConnect, NoTls, TlsConnect as _};
use tokio_postgres::{CancelToken, Client, Config, SimpleQueryMessage};

use super::failure::of_connect;
use super::server_types::ServerTypes;
use super::stream::{DescribedStream, Descriptions, MeteredStream, ReadBudget, ServerSocket};
use crate::drive::tool::db::server_pool::PooledConnection;
use crate::drive::tool::runner::RawFault;
use crate::journal::postgres::address::PostgresAddress;

/// The port of a server whose address names none.
const PORT: u16 = 5432;
/// How many bytes a server may send until it is connected: what it says of itself.
const GREETING: usize = 1 << 20;
/// How many bytes its answer to a reset may have.
const RESET_BYTES: usize = 1 << 20;
/// What a statement can leave on its connection: cursors, a role, settings, channels, locks, temporary tables. The last
/// query names the statements that it prepared by SQL; those of drivers and poolers are not theirs to end.
const RESET: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
                     SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES; \
                     SELECT name AS left_prepared FROM pg_catalog.pg_prepared_statements WHERE from_sql";
/// The column of its names.
const LEFT: &str = "left_prepared";
/// The message that asks a server for TLS: its length and its number.
const ASK_FOR_TLS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// How long the request to stop a statement may take.
const CANCEL: Duration = Duration::from_secs(5);

/// A connection.
pub(super) struct ServerConnection {
    pub(super) client: Client,
    /// What may still be read from it.
    pub(super) budget: ReadBudget,
    /// The types that its server described last.
    pub(super) descriptions: Descriptions,
    /// The types that are not built in, as far as they are known.
    pub(super) types: ServerTypes,
    /// The host, by its place in the address.
    host: usize,
    /// The task that reads and writes.
    driver: AbortHandle,
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum ConnectFault {
    /// The server answered; `server` is its host and port, or its socket.
    Server {
        /// The server.
        server: String,
        /// What it answered, or why the connection ended.
        error: tokio_postgres::Error,
    },
    /// It can't be reached.
    Unreachable(String),
}

/// The hosts of an address with their ports.
pub(super) fn hosts(config: &Config) -> impl Iterator<Item = (&Host, u16)> {
    let ports = config.get_ports();
    let port = move |at: usize| ports.get(at).or_else(|| ports.first()).copied().unwrap_or(PORT);
    config.get_hosts().iter().enumerate().map(move |(at, host)| (host, port(at)))
}

/// A host of an address with its port, for messages.
fn server(config: &Config, host: usize) -> String {
    match hosts(config).nth(host) {
        Some((Host::Tcp(name), port)) if name.contains(':') => format!("[{name}]:{port}"),
        Some((Host::Tcp(name), port)) => format!("{name}:{port}"),
        #[cfg(unix)]
        Some((Host::Unix(folder), port)) => format!("{}/.s.PGSQL.{port}", folder.display()),
        None => "the address".to_owned(),
    }
}

/// Connects to the first host that answers.
///
/// # Errors
/// That of the last one.
async fn connect(address: &PostgresAddress) -> Result<ServerConnection, ConnectFault> {
    let mut last = ConnectFault::Unreachable("the address names no host".to_owned());
    for host in 0..address.config.get_hosts().len() {
        let limit = address.config.get_connect_timeout().copied().unwrap_or(Duration::MAX);
        match tokio::time::timeout(limit, connect_to(address, host)).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(fault)) => last = fault,
            Err(_) => {
                last = ConnectFault::Unreachable(format!("{}: it does not answer", server(&address.config, host)));
            }
        }
    }
    Err(last)
}

async fn connect_to(address: &PostgresAddress, host: usize) -> Result<ServerConnection, ConnectFault> {
    let server = server(&address.config, host);
    let unreachable = |error: io::Error| ConnectFault::Unreachable(format!("{server}: {error}"));
    let (budget, descriptions) = (ReadBudget::default(), Descriptions::default());
    budget.fill(GREETING);
    let stream = protected(address, host, budget.clone()).await.map_err(unreachable)?;
    let stream = DescribedStream::new(stream, descriptions.clone());
    let mut config = address.config.clone();
    // What is to be encrypted is it already.
    config.ssl_mode(SslMode::Disable);
    let connected = config.connect_raw(stream, NoTls).await;
    let (client, connection) = connected.map_err(|error| ConnectFault::Server { server, error })?;
    // What waits for an answer gets the error too.
    let driver = tokio::spawn(async move { drop(connection.await) }.boxed()).abort_handle();
    let types = ServerTypes::default();
    Ok(ServerConnection { client, budget, descriptions, types, host, driver })
}

/// A connection to a host, encrypted where its address says so.
async fn protected(address: &PostgresAddress, host: usize, budget: ReadBudget) -> io::Result<Box<dyn ServerSocket>> {
    let mut stream = MeteredStream { socket: dial(&address.config, host).await?, budget };
    if address.config.get_ssl_mode() == SslMode::Disable {
        return Ok(Box::new(stream));
    }
    stream.write_all(&ASK_FOR_TLS).await?;
    stream.flush().await?;
    if stream.read_u8().await? != b'S' {
        let why = "the server does not encrypt its connections: `sslmode=disable` in the address does without it";
        return Err(io::Error::other(why));
    }
    Ok(Box::new(tls_for(address, host)?.connect(stream).await?))
}

async fn dial(config: &Config, host: usize) -> io::Result<Box<dyn ServerSocket>> {
    let none = || io::Error::other("the address names no such host");
    Ok(match hosts(config).nth(host).ok_or_else(none)? {
        (Host::Tcp(name), port) => {
            let stream = TcpStream::connect((name.as_str(), port)).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
        #[cfg(unix)]
        (Host::Unix(folder), port) => {
            Box::new(tokio::net::UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await?)
        }
    })
}

type HostTls = <crate::journal::postgres::tls::Tls as MakeTlsConnect<MeteredStream>>::TlsConnect;

fn tls_for(address: &PostgresAddress, host: usize) -> io::Result<HostTls> {
    let name = match address.config.get_hosts().get(host) {
        Some(Host::Tcp(name)) => name.as_str(),
        _ => "",
    };
    MakeTlsConnect::<MeteredStream>::make_tls_connect(&mut address.tls.clone(), name)
}

impl PooledConnection for ServerConnection {
    type Address = PostgresAddress;

    async fn connect(address: &PostgresAddress) -> Result<Self, RawFault> {
        connect(address).await.map_err(|fault| of_connect(&fault))
    }

    fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    async fn reset(&mut self) -> bool {
        self.budget.fill(RESET_BYTES);
        let Ok(messages) = self.client.simple_query(RESET).await else { return false };
        let left = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.try_get(LEFT).ok().flatten(),
            _ => None,
        });
        let ends: String = left.map(|name| format!("DEALLOCATE \"{}\"; ", name.replace('"', "\"\""))).collect();
        ends.is_empty() || self.client.batch_execute(&ends).await.is_ok()
    }

    async fn stop(self, address: &PostgresAddress) {
        let token = self.client.cancel_token();
        // If it can't be reached, the server's own time limit stops the statement.
        drop(tokio::time::timeout(CANCEL, cancel(address, self.host, token)).await);
    }
}

async fn cancel(address: &PostgresAddress, host: usize, token: CancelToken) -> io::Result<()> {
    let budget = ReadBudget::default();
    budget.fill(GREETING);
    token.cancel_query_raw(protected(address, host, budget).await?, NoTls).await.map_err(io::Error::other)
}
