//! Where a PostgreSQL database is, and how it is reached: for stores, and for the datasources of tools. The password is in
//! no message: an address is shown by its user, hosts and database.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::Tls;

/// The port of a server, unless the address says otherwise: it is not shown.
const USUAL_PORT: u16 = 5432;
/// How long one attempt to connect may take, unless the address says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a database is, and how it is reached.
#[derive(Clone)]
pub(crate) struct PostgresAddress {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
    pub(crate) shown: String,
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

/// Why an address can't be used.
pub(crate) struct AddressError {
    /// The address, without a password.
    pub(crate) shown: String,
    /// What is wrong with it.
    pub(crate) why: String,
}

/// What an address may say beyond what all have in common.
pub(crate) trait OwnParameters {
    /// The names, for messages.
    const NAMES: &'static [&'static str];

    /// Takes a parameter; whether it is one of these.
    ///
    /// # Errors
    /// What its value must be.
    fn take(&mut self, key: &str, value: &str) -> Result<bool, &'static str>;
}

/// How the connection is to be protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protection {
    Off,
    Full,
}

impl PostgresAddress {
    /// Reads an address; relative paths in it start from `base`.
    ///
    /// # Errors
    /// When it is no address of a database, or says something that is not supported.
    pub(crate) fn read<O: OwnParameters>(url: &str, base: &Path, own: &mut O) -> Result<Self, AddressError> {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        if has_two_hosts(address) {
            // What is behind the first `@` would be shown, and may be a part of the password.
            let why = "its user or password has an `@`: write it as %40";
            return Err(AddressError { shown: "postgres://...".to_owned(), why: why.to_owned() });
        }
        let Ok(mut config) = Config::from_str(address) else {
            // Its parts can't be distinguished, so nothing of it is shown.
            let why = "it is no address of a database: write postgres://USER@HOST:PORT/DATABASE";
            return Err(AddressError { shown: "postgres://...".to_owned(), why: why.to_owned() });
        };
        let shown = shown(&config);
        let refuse = |why: String| AddressError { shown: shown.clone(), why };
        let mut common = CommonParameters { config: &mut config, protection: None, root_certificates: None, base };
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let (key, value) = (key.as_ref(), value.as_ref());
            let taken = own.take(key, value).and_then(|taken| if taken { Ok(true) } else { common.take(key, value) });
            match taken {
                Ok(true) => {}
                Ok(false) => {
                    let common = "sslmode, sslrootcert, connect_timeout, application_name, options, host, port, user, password and dbname";
                    let names = O::NAMES.iter().map(|name| format!("{name}, ")).collect::<String>();
                    let why = "its address has a parameter that is not known: these are";
                    return Err(refuse(format!("{why} {names}{common}")));
                }
                Err(what) => return Err(refuse(format!("`{key}` in its address is {what}"))),
            }
        }
        let CommonParameters { protection, root_certificates, .. } = common;
        if config.get_hosts().is_empty() {
            return Err(refuse("it names no host: write postgres://USER@HOST:PORT/DATABASE".to_owned()));
        }
        let is_local = config.get_hosts().iter().all(is_local);
        let protection = protection.unwrap_or(if is_local { Protection::Off } else { Protection::Full });
        config.ssl_mode(if protection == Protection::Full { SslMode::Require } else { SslMode::Disable });
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("loopctl");
        }
        let tls = Tls::new(root_certificates.as_deref()).map_err(refuse)?;
        Ok(Self { config, tls, shown })
    }

    /// The address as messages show it.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }
}

/// Whether there is an `@` more than the one that ends the user and the password.
fn has_two_hosts(address: &str) -> bool {
    let authority = address.split_once("://").map_or("", |(_, rest)| rest).split('/').next().unwrap_or_default();
    authority.matches('@').count() > 1
}

/// The parameters that all addresses have.
struct CommonParameters<'a> {
    config: &'a mut Config,
    protection: Option<Protection>,
    root_certificates: Option<PathBuf>,
    base: &'a Path,
}

impl CommonParameters<'_> {
    /// Sets what a parameter says; whether it is known.
    fn take(&mut self, key: &str, value: &str) -> Result<bool, &'static str> {
        match key {
            "sslmode" => {
                self.protection = Some(match value {
                    "disable" => Protection::Off,
                    "verify-full" => Protection::Full,
                    _ => {
                        return Err("`verify-full` or `disable`: a certificate that nobody checks protects nothing");
                    }
                });
            }
            "sslrootcert" => self.root_certificates = Some(self.base.join(value)),
            "application_name" => {
                self.config.application_name(value);
            }
            "options" => {
                self.config.options(value);
            }
            "connect_timeout" => {
                let seconds = value.parse().ok().filter(|seconds| *seconds > 0).ok_or("seconds")?;
                self.config.connect_timeout(Duration::from_secs(seconds));
            }
            "host" => {
                for host in value.split(',') {
                    self.config.host(host);
                }
            }
            "port" => {
                for port in value.split(',') {
                    self.config.port(port.parse().map_err(|_| "a number, or one for each host")?);
                }
            }
            "user" => {
                self.config.user(value);
            }
            "password" => {
                self.config.password(value);
            }
            "dbname" => {
                self.config.dbname(value);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Whether nobody can listen between this machine and the host.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn shown(config: &Config) -> String {
    let host = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    };
    // One port is that of all hosts; none is the usual one.
    let port = |at: usize| config.get_ports().get(at).or(config.get_ports().last()).copied().unwrap_or(USUAL_PORT);
    let with_port = |(at, of): (usize, &Host)| match port(at) {
        USUAL_PORT => host(of),
        port => format!("{}:{port}", host(of)),
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(with_port).collect();
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    format!("postgres://{user}{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}
