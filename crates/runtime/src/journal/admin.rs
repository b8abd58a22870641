//! What an administrator asks of a store: the statements that make it, whether it can be used, its migration, and the
//! processes that drive its runs.

use std::path::Path;

use serde::Serialize;

use super::StoreError;
use super::store_name::StoreName;
use loopctl_lang::policy::held_address;

/// What there is to say of a store.
#[derive(Debug, Clone, Default)]
pub struct StoreReport {
    /// The store as messages show it.
    pub store: String,
    /// Facts: what, and how it is.
    pub facts: Vec<(&'static str, String)>,
    /// Why it can't be used.
    pub wrong: Option<StoreError>,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl StoreReport {
    pub(super) fn of(store: &str) -> Self {
        Self { store: store.to_owned(), ..Self::default() }
    }

    pub(super) fn fact(&mut self, what: &'static str, how: String) {
        self.facts.push((what, how));
    }
}

/// Copies a store to a new file.
pub(super) type BackUp = fn(&StoreName<'_>, &Path) -> Result<(), StoreError>;

/// How the space that deleted runs leave in a store is given back; none where that is done by itself.
pub(super) type GiveBackHelp = fn(&StoreName<'_>) -> Option<&'static str>;

/// What can be asked of a kind of store.
pub(super) struct StoreAdmin {
    /// The statements that make the store.
    pub statements: fn(&StoreName<'_>) -> Result<String, StoreError>,
    /// Looks at the store; writes nothing.
    pub examine: fn(&StoreName<'_>) -> Result<StoreReport, StoreError>,
    /// The names of the living processes that have the store open; writes nothing.
    pub living: fn(&StoreName<'_>) -> Result<Vec<String>, StoreError>,
    /// Copies the store, which may be in use, to a new file; none where a store has programs of its own for that.
    pub back_up: Option<BackUp>,
    /// How the space that deleted runs leave is given back to the system; none where the database does that by itself.
    pub give_back: Option<GiveBackHelp>,
}

fn of<'a>(
    url: &'a str,
    source: Option<&'a str>,
    base: &'a Path,
) -> Result<(StoreName<'a>, &'static StoreAdmin), StoreError> {
    let name = StoreName::new(url, base).held_by(source);
    let kind = name.kind().ok_or_else(|| name.unknown())?;
    let admin = kind.admin.as_ref().ok_or_else(|| name.refuse("it keeps no runs: there is nothing to make"))?;
    Ok((name, admin))
}

/// The statements that make the store of this name, for who may not let loopctl make it.
///
/// # Errors
/// When the name is of no kind of store, or of one that keeps nothing.
pub fn statements(url: &str, source: Option<&str>, base: &Path) -> Result<String, StoreError> {
    let (name, admin) = of(url, source, base)?;
    (admin.statements)(&name).map_err(|fault| name.without_held(fault))
}

/// Looks at a store, and writes nothing.
///
/// # Errors
/// When it can't be reached.
pub fn examine(url: &str, source: Option<&str>, base: &Path) -> Result<StoreReport, StoreError> {
    let (name, admin) = of(url, source, base)?;
    let report = (admin.examine)(&name).map_err(|fault| name.without_held(fault))?;
    let wrong = report.wrong.map(|fault| name.without_held(fault));
    let Some(source) = name.source else { return Ok(StoreReport { wrong, ..report }) };
    let facts = report.facts.into_iter().map(|(what, how)| (what, held_address::hidden(&how, name.written)));
    Ok(StoreReport { store: source.to_owned(), facts: facts.collect(), wrong })
}

/// The names of the living processes that have a store open. Writes nothing: opening a store may make or migrate its tables.
///
/// # Errors
/// When it can't be read, or a newer loopctl made it.
pub fn living(url: &str, source: Option<&str>, base: &Path) -> Result<Vec<String>, StoreError> {
    let (name, admin) = of(url, source, base)?;
    (admin.living)(&name).map_err(|fault| name.without_held(fault))
}

/// Copies a store, which may be in use, as it is at one moment to a new file.
///
/// # Errors
/// When the store is no file, the new file exists, or one of them fails.
pub fn back_up(url: &str, source: Option<&str>, base: &Path, to: &Path) -> Result<(), StoreError> {
    let (name, admin) = of(url, source, base)?;
    let why = "only a store that is a file is backed up so; use the programs of the database, such as pg_dump";
    let back_up = admin.back_up.ok_or_else(|| name.refuse(why))?;
    back_up(&name, to).map_err(|fault| name.without_held(fault))
}

/// How the space that deleted runs leave in the store of this name is given back to the system, if it is not by itself.
pub fn give_back(url: &str, base: &Path) -> Option<&'static str> {
    of(url, None, base).ok().and_then(|(name, admin)| admin.give_back?(&name))
}

/// The most runs that are named of a worker.
pub const MOST_NAMED_RUNS: usize = 100;

/// A process that drives runs of a store, or serves a folder with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// Its name, which it made up for itself.
    pub name: String,
    /// Whether it is this process.
    pub is_self: bool,
    /// Whether it lives: its runs are left alone.
    pub is_alive: bool,
    /// The name of its machine; none where all are on this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The number of its process on that machine; none where an older version registered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Where it listens, when it is a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How far its clock was ahead of the store's when it last renewed its lease, in milliseconds; negative when it is behind. None
    /// where all read one clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ahead_ms: Option<i64>,
    /// Its version of loopctl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of the folder that it serves; none when it serves none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Since when it is there, in milliseconds since 1970.
    pub since_ms: i64,
    /// For how long it has not renewed its lease, in milliseconds; none where the system reports that a process died.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<i64>,
    /// How many runs it has.
    pub driven: u64,
    /// These runs, the oldest first; at most [`MOST_NAMED_RUNS`].
    pub runs: Vec<String>,
}
