//! Where the database of a datasource is: as the project file writes it, or in a secret, a variable or a file.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::{DATABASES, DatabaseKind};
use crate::drive::secret::Vault;
use crate::drive::tool::output::fault;
use crate::project::paths::in_project;
use loopctl_engine::event::ToolFault;
use loopctl_lang::language::Project;
use loopctl_lang::policy::database_address::{DatabaseServer, HAS_MYSQL, NO_MYSQL};
use loopctl_lang::policy::held_address;
use loopctl_lang::program::reference::Secrets as _;

/// Where a database is.
#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres", feature = "mysql")),
    expect(dead_code, reason = "read by databases only")
)]
pub(super) struct DatabaseAddress {
    pub(super) kind: &'static DatabaseKind,
    /// The name of its datasource.
    #[cfg_attr(not(any(feature = "postgres", feature = "mysql")), expect(dead_code, reason = "read by servers only"))]
    pub(super) name: String,
    /// The address.
    pub(super) url: SecretString,
    /// Whether a secret, a variable or a file holds it: then no message shows a part of it.
    pub(super) is_held: bool,
    /// The password, where it is not in the address.
    pub(super) password: Option<SecretString>,
    /// The most connections to a server.
    #[cfg_attr(not(any(feature = "postgres", feature = "mysql")), expect(dead_code, reason = "read by servers only"))]
    pub(super) connections: Option<u16>,
    /// The folder that relative paths start from.
    pub(super) root: PathBuf,
    /// The script that makes the database, with its path; or why it is not opened.
    #[cfg_attr(
        all(any(feature = "postgres", feature = "mysql"), not(feature = "sqlite")),
        expect(dead_code, reason = "read by files only")
    )]
    pub(super) init: Option<Result<PathBuf, String>>,
}

impl DatabaseAddress {
    /// The address of a datasource.
    ///
    /// # Errors
    /// When there is no such datasource, its secret can't be read, or no database is of its kind.
    pub(super) fn of(name: &str, project: &Project, root: &Path, vault: &Vault) -> Result<Self, ToolFault> {
        let unknown = |why: String| fault("database: not configured", why);
        let datasource = project.datasources.get(name);
        let written = match datasource {
            Some(datasource) => datasource.url.as_str(),
            None if name.starts_with("orgconfig:") => name,
            None => {
                return Err(unknown(format!("there is no datasource `{name}` in `datasources` of loopctl.json")));
            }
        };
        let held = read(written, vault);
        let is_held = held.is_some();
        let url = held.unwrap_or_else(|| Ok(SecretString::from(written))).map_err(unknown)?;
        let password = datasource.and_then(|datasource| datasource.password.as_deref());
        let password = password.map(|source| {
            // `check` refuses one that is written out.
            read(source, vault).unwrap_or_else(|| Err("`password` must say where it is".to_owned()))
        });
        let password = password.transpose().map_err(unknown)?;
        keep_password(name, &url, vault);
        let (scheme, rest) = url.expose_secret().split_once(':').unwrap_or((url.expose_secret(), ""));
        let Some(kind) = DATABASES.iter().find(|kind| kind.schemes.contains(&scheme) && (kind.is_valid)(rest)) else {
            // Without its mark the whole text would be shown, which may be a key.
            let is_hidden = is_held && !url.expose_secret().contains("://");
            return Err(not_supported(name, if is_hidden { written } else { scheme }, is_hidden));
        };
        let init = datasource.and_then(|datasource| datasource.init.as_deref());
        let init = init.map(|path| in_project(root, path).map_err(|why| format!("`{path}`: {why}")));
        let connections = datasource.and_then(|datasource| datasource.connections);
        Ok(Self { kind, name: name.to_owned(), url, is_held, password, connections, root: root.to_owned(), init })
    }

    /// A fault of the database without parts of an address that is held elsewhere. What the database says of a query is left as
    /// it is, but for the name of the database before that of a table.
    pub(super) fn without_held(&self, fault: ToolFault) -> ToolFault {
        if !self.is_held {
            return fault;
        }
        let is_of_address = ["can't be", "not ", "damaged", "refused"].iter().any(|word| fault.class.contains(word));
        let detail = match is_of_address {
            true => held_address::hidden(&fault.detail, self.url.expose_secret()),
            false => self.without_database(fault.detail),
        };
        ToolFault { detail, ..fault }
    }

    /// A message of MySQL names a table with its database: `'shop.orders'`.
    fn without_database(&self, detail: String) -> String {
        let Ok(url) = Url::parse(self.url.expose_secret()) else { return detail };
        let name = percent_encoding::percent_decode_str(url.path().trim_start_matches('/')).decode_utf8_lossy();
        if name.is_empty() || DatabaseServer::of(url.scheme()) != Some(DatabaseServer::Mysql) {
            return detail;
        }
        ["'", "`"].into_iter().fold(detail, |detail, quote| detail.replace(&format!("{quote}{name}."), quote))
    }

    /// What is before the colon.
    #[cfg(feature = "probe")]
    pub(super) fn scheme(&self) -> &str {
        self.url.expose_secret().split_once(':').map_or("", |(scheme, _)| scheme)
    }

    /// What follows the scheme and its colon.
    #[cfg(feature = "sqlite")]
    pub(super) fn rest(&self) -> &str {
        self.url.expose_secret().split_once(':').map_or("", |(_, rest)| rest)
    }
}

/// The secret of a source; none for a text that is no source.
fn read(source: &str, vault: &Vault) -> Option<Result<SecretString, String>> {
    match source.split_once(':') {
        Some(("orgconfig", key)) => Some(vault.secret(key).map(SecretString::from)),
        Some(("env" | "file", _)) => Some(vault.read(source)),
        _ => None,
    }
}

/// Removes the password of an address from all texts, where it stands alone.
fn keep_password(name: &str, url: &SecretString, vault: &Vault) {
    let Ok(url) = Url::parse(url.expose_secret()) else { return };
    let written = url.password().map(str::to_owned);
    let named = url.query_pairs().find(|(key, _)| key == "password").map(|(_, value)| value.into_owned());
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let passwords = written.as_deref().map(decoded).into_iter().chain(named).filter(|password| !password.is_empty());
    for (password, article) in passwords.zip(["the", "the other"]) {
        // One that is too long to be searched for can't stand in an answer either.
        drop(vault.keep(&format!("{article} password of the datasource {name}"), &SecretString::from(password)));
    }
}

/// `is_hidden`: what is shown is what holds the address.
fn not_supported(name: &str, scheme: &str, is_hidden: bool) -> ToolFault {
    if DatabaseServer::of(scheme) == Some(DatabaseServer::Mysql) && !HAS_MYSQL {
        return fault("database: not supported", NO_MYSQL);
    }
    if DATABASES.is_empty() {
        let why = "loopctl was built without a database: enable its cargo feature `sqlite`, `postgres` or `mysql`";
        return fault("database: not supported", why);
    }
    let forms: Vec<String> = DATABASES.iter().map(|kind| format!("`{}`", kind.form)).collect();
    if is_hidden {
        let why =
            format!("datasource `{name}`: only {} is, and what `{scheme}` holds is another one", forms.join(" or "));
        return fault("database: not supported", why);
    }
    // The address may hold a password: only its scheme is shown.
    let shown = if scheme.len() < 20 { scheme } else { "?" };
    let why = format!("datasource `{name}`: only {} is, not `{shown}:`", forms.join(" or "));
    fault("database: not supported", why)
}
