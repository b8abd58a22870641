//! Which database a store's name means, and what the name says of the store.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use tokio_postgres::config::TargetSessionAttrs;

use super::address::{AddressError, OwnParameters, PostgresAddress};
use crate::journal::StoreError;
use crate::journal::store_name::StoreName;

/// The schema of a store whose name has none.
const SCHEMA: &str = "loopctl";
/// The bounds of `lease_ms`.
const LEASES_MS: std::ops::RangeInclusive<u64> = 1_000..=3_600_000;

/// A database, and how it is reached.
pub(super) struct PostgresTarget {
    pub(super) address: PostgresAddress,
    /// The schema, quoted.
    pub(super) schema: String,
    /// Whether connections keep prepared statements.
    pub(super) prepares: bool,
    /// The lease of a store that is made.
    pub(super) lease: Option<Duration>,
}

impl fmt::Debug for PostgresTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(formatter)
    }
}

/// What the name of a store says of the store.
#[derive(Default)]
struct StoreParameters {
    schema: Option<String>,
    lease: Option<Duration>,
    no_prepare: bool,
}

impl PostgresTarget {
    /// Reads the name of a store; relative paths in it start from `base`.
    ///
    /// # Errors
    /// When it is no address of a database, or says something that is not supported.
    pub(super) fn read(url: &str, base: &Path) -> Result<Self, StoreError> {
        let mut own = StoreParameters::default();
        let address = PostgresAddress::read(url, base, &mut own);
        let mut address = address.map_err(|AddressError { shown, why }| refuse(&shown, &why))?;
        address.config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        let schema = own.schema.unwrap_or_else(|| SCHEMA.to_owned());
        let schema = format!("\"{}\"", schema.replace('"', "\"\""));
        Ok(Self { address, schema, prepares: !own.no_prepare, lease: own.lease })
    }

    /// The database of a name; messages show what holds the name, if it is not written out.
    ///
    /// # Errors
    /// As those of [`read`](Self::read).
    pub(super) fn named(name: &StoreName<'_>) -> Result<Self, StoreError> {
        let mut target = Self::read(name.written, name.base)?;
        if let Some(source) = name.source {
            target.address.shown = source.to_owned();
        }
        Ok(target)
    }

    /// The store as messages show it.
    pub(super) fn shown(&self) -> &str {
        self.address.shown()
    }

    /// The fault of a store that can't be reached now.
    pub(super) fn away(&self, why: &str) -> StoreError {
        StoreError::Away { store: self.shown().to_owned(), reason: why.to_owned() }
    }

    /// The fault of a store that can't be opened.
    pub(super) fn refuse(&self, why: &str) -> StoreError {
        refuse(self.shown(), why)
    }
}

fn refuse(store: &str, why: &str) -> StoreError {
    StoreError::Open { store: store.to_owned(), reason: why.to_owned() }
}

impl OwnParameters for StoreParameters {
    const NAMES: &'static [&'static str] = &["schema", "lease_ms", "prepare"];

    fn take(&mut self, key: &str, value: &str) -> Result<bool, &'static str> {
        match key {
            "schema" if !value.is_empty() && value.len() < 64 && !value.contains('\0') => {
                self.schema = Some(value.to_owned());
            }
            "schema" => return Err("a name of 1 to 63 bytes"),
            "lease_ms" => {
                let ms = value.parse().ok().filter(|ms| LEASES_MS.contains(ms));
                self.lease = Some(Duration::from_millis(ms.ok_or("1000 to 3600000")?));
            }
            "prepare" => self.no_prepare = on_or_off(value).map(|on| !on).ok_or("`on` or `off`")?,
            "target_session_attrs" if value == "read-write" => {}
            "target_session_attrs" => return Err("`read-write`"),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn on_or_off(value: &str) -> Option<bool> {
    match value {
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::SslMode;

    use super::*;

    fn read(url: &str) -> Result<PostgresTarget, StoreError> {
        PostgresTarget::read(url, Path::new("."))
    }

    #[test]
    fn the_name_says_what_it_reaches_and_how() {
        let target = read("postgres://ada:s3cret@db1,db2/loops?schema=a%22b&lease_ms=2000&prepare=off").unwrap();
        assert_eq!(target.shown(), "postgres://ada@db1,db2/loops");
        for (url, shown) in [
            ("postgres://ada@h:5433/d", "postgres://ada@h:5433/d"),
            ("postgres://ada@h:5432/d", "postgres://ada@h/d"),
            ("postgres://ada@h1:5432,h2:5433/d", "postgres://ada@h1,h2:5433/d"),
        ] {
            assert_eq!(read(url).unwrap().shown(), shown);
        }
        assert_eq!((target.schema.as_str(), target.prepares), ("\"a\"\"b\"", false));
        assert_eq!(target.lease, Some(Duration::from_secs(2)));
        assert_eq!(target.address.config.get_ssl_mode(), SslMode::Require, "another machine's name is checked");
        for local in ["postgres://ada@localhost/d", "postgres://ada@127.0.0.1:5433/d", "postgres://ada@%2Ftmp%2Fpg/d"] {
            assert_eq!(read(local).unwrap().address.config.get_ssl_mode(), SslMode::Disable, "{local}");
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
            "postgres://ada:half@s3cret@h/d",
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
