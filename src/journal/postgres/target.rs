//! Which database a store's name means, and how it is reached. The password is in no message: a name is shown by its
//! user, hosts and database.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::tls::Tls;
use crate::journal::StoreFault;

/// The schema of a store whose name has none.
const SCHEMA: &str = "loopctl";
/// How long one attempt to connect may take, unless the name says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The bounds of `lease_ms`.
const LEASES_MS: std::ops::RangeInclusive<u64> = 1_000..=3_600_000;

/// A database, and how it is reached.
pub(super) struct PostgresTarget {
    pub(super) config: Config,
    pub(super) tls: Tls,
    /// The schema, quoted.
    pub(super) schema: String,
    /// Whether connections keep prepared statements.
    pub(super) prepares: bool,
    /// The lease of a store that is made.
    pub(super) lease: Option<Duration>,
    shown: String,
}

impl fmt::Debug for PostgresTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

/// How the connection is to be protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protection {
    Off,
    Full,
}

/// What the name says beyond what the client library knows.
#[derive(Default)]
struct OwnParameters {
    schema: Option<String>,
    lease: Option<Duration>,
    no_prepare: bool,
    protection: Option<Protection>,
    root_certificates: Option<PathBuf>,
}

impl PostgresTarget {
    /// Reads the name of a store; relative paths in it start from `base`.
    ///
    /// # Errors
    /// When it is no address of a database, or says something that is not supported.
    pub(super) fn read(url: &str, base: &Path) -> Result<Self, StoreFault> {
        let unreadable = || {
            // Its parts can't be distinguished, so nothing of it is shown.
            refuse("postgres://...", "it is no address of a database: write postgres://USER@HOST:PORT/DATABASE")
        };
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let mut config = Config::from_str(address).map_err(|_| unreadable())?;
        let shown = shown(&config);
        let own = own_parameters(&mut config, query, &shown, base)?;
        if config.get_hosts().is_empty() {
            return Err(refuse(&shown, "it names no host: write postgres://USER@HOST:PORT/DATABASE"));
        }
        let is_local = config.get_hosts().iter().all(is_local);
        let protection = own.protection.unwrap_or(if is_local { Protection::Off } else { Protection::Full });
        config.ssl_mode(if protection == Protection::Full { SslMode::Require } else { SslMode::Disable });
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("loopctl");
        }
        let tls = Tls::new(own.root_certificates.as_deref()).map_err(|why| refuse(&shown, &why))?;
        let schema = own.schema.unwrap_or_else(|| SCHEMA.to_owned());
        let schema = format!("\"{}\"", schema.replace('"', "\"\""));
        let (prepares, lease) = (!own.no_prepare, own.lease);
        Ok(Self { config, tls, schema, prepares, lease, shown })
    }

    /// The store as messages show it.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// The fault of a store that can't be opened.
    pub(super) fn refuse(&self, why: &str) -> StoreFault {
        refuse(&self.shown, why)
    }
}

fn refuse(store: &str, why: &str) -> StoreFault {
    StoreFault::Open { store: store.to_owned(), reason: why.to_owned() }
}

/// Sets what the query of the name says; returns what is ours.
fn own_parameters(config: &mut Config, query: &str, shown: &str, base: &Path) -> Result<OwnParameters, StoreFault> {
    let mut own = OwnParameters::default();
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let value = value.as_ref();
        let wrong = |what: &str| refuse(shown, &format!("`{key}` in its name is {what}"));
        match key.as_ref() {
            "schema" if !value.is_empty() && value.len() < 64 && !value.contains('\0') => {
                own.schema = Some(value.to_owned());
            }
            "schema" => return Err(wrong("a name of 1 to 63 bytes")),
            "lease_ms" => {
                let ms = value.parse().ok().filter(|ms| LEASES_MS.contains(ms));
                own.lease = Some(Duration::from_millis(ms.ok_or_else(|| wrong("1000 to 3600000"))?));
            }
            "prepare" => own.no_prepare = on_or_off(value).map(|on| !on).ok_or_else(|| wrong("`on` or `off`"))?,
            "sslmode" => {
                own.protection = Some(match value {
                    "disable" => Protection::Off,
                    "verify-full" => Protection::Full,
                    _ => {
                        return Err(wrong(
                            "`verify-full` or `disable`: a certificate that nobody checks protects nothing",
                        ));
                    }
                });
            }
            "sslrootcert" => own.root_certificates = Some(base.join(value)),
            "application_name" => {
                config.application_name(value);
            }
            "options" => {
                config.options(value);
            }
            "connect_timeout" => {
                let seconds = value.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| wrong("seconds"))?;
                config.connect_timeout(Duration::from_secs(seconds));
            }
            "host" => {
                for host in value.split(',') {
                    config.host(host);
                }
            }
            "port" => {
                for port in value.split(',') {
                    config.port(port.parse().map_err(|_| wrong("a number, or one for each host"))?);
                }
            }
            "user" => {
                config.user(value);
            }
            "password" => {
                config.password(value);
            }
            "dbname" => {
                config.dbname(value);
            }
            "target_session_attrs" if value == "read-write" => {}
            "target_session_attrs" => return Err(wrong("`read-write`")),
            _ => {
                let why = "its name has a parameter that is not known: these are schema, lease_ms, prepare, sslmode, \
                           sslrootcert, connect_timeout, application_name, options, host, port, user, password and dbname";
                return Err(refuse(shown, why));
            }
        }
    }
    Ok(own)
}

fn on_or_off(value: &str) -> Option<bool> {
    match value {
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
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
    let hosts: Vec<String> = config.get_hosts().iter().map(host).collect();
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    format!("postgres://{user}{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<PostgresTarget, StoreFault> {
        PostgresTarget::read(url, Path::new("."))
    }

    #[test]
    fn the_name_says_what_it_reaches_and_how() {
        let target = read("postgres://ada:s3cret@db1,db2/loops?schema=a%22b&lease_ms=2000&prepare=off").unwrap();
        assert_eq!(target.shown(), "postgres://ada@db1,db2/loops");
        assert_eq!((target.schema.as_str(), target.prepares), ("\"a\"\"b\"", false));
        assert_eq!(target.lease, Some(Duration::from_secs(2)));
        assert_eq!(target.config.get_ssl_mode(), SslMode::Require, "another machine's name is checked");
        for local in ["postgres://ada@localhost/d", "postgres://ada@127.0.0.1:5433/d", "postgres://ada@%2Ftmp%2Fpg/d"] {
            assert_eq!(read(local).unwrap().config.get_ssl_mode(), SslMode::Disable, "{local}");
        }
    }

    #[test]
    fn a_name_that_is_refused_shows_no_password() {
        for name in [
            "postgres://ada:s3cret@h:port/d",
            "postgres://ada:s3cret@h/d?sslmode=require",
            "postgres://ada:s3cret@h/d?password=s3cret&nonsense=s3cret",
            "postgres://ada:s3cret@h/d?lease_ms=s3cret",
            "postgres://ada:s3cret@h/d?prepare=s3cret",
            "postgres://ada:s3cret@h/d?schema=",
            "postgres://ada:s3cret@h:1:2/d?port=s3cret",
            "postgres://?password=s3cret",
        ] {
            let Err(fault) = read(name) else { panic!("{name} was read") };
            assert_eq!(fault.code(), "store_open");
            let (shown, debugged) = (fault.to_string(), format!("{fault:?}"));
            assert!(!shown.contains("s3cret") && !debugged.contains("s3cret"), "{shown}");
        }
        let target = read("postgres://ada:s3cret@h/d").unwrap();
        assert!(!format!("{target:?}").contains("s3cret"));
    }
}
