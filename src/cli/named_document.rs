//! Documents by the names that people say: `triage` is `triage.json`; and what to do when none is named.

use std::path::{Path, PathBuf};

use super::failure::CommandError;
use super::input::name_of;
use super::next_commands::{program, quoted, quoted_path};
use crate::check::file_kind;
use crate::diagnostic::nearest;
use crate::project;
use crate::project::load::load;
use crate::syntax::document::{self, DocumentKind};

/// The folders beside a document in which loops and workflows are looked up.
const FOLDERS: [&str; 2] = ["loops", "workflows"];
/// The most JSON files of a folder that are looked at.
const MAX_FILES: usize = 200;
/// The most documents that a message names.
const MAX_NAMED: usize = 8;

/// The file that a name means: itself, or else `NAME.json`, here or in `loops` or `workflows`.
pub fn resolved(named: &Path) -> PathBuf {
    let is_there = named == Path::new("-") || named.try_exists().unwrap_or(true);
    let found = || candidates(named).into_iter().find(|path| path.is_file());
    if is_there { named.to_owned() } else { found().unwrap_or_else(|| named.to_owned()) }
}

fn candidates(named: &Path) -> Vec<PathBuf> {
    let Some(name) = named.file_name() else { return Vec::new() };
    if named.extension().is_some_and(|ending| ending == "json") {
        return Vec::new();
    }
    let mut file = name.to_owned();
    file.push(".json");
    let beside = FOLDERS.iter().map(|folder| named.with_file_name(folder).join(&file));
    std::iter::once(named.with_file_name(&file)).chain(beside).collect()
}

/// The document to run.
///
/// # Errors
/// When none is named, or there is none of that name.
pub fn of(named: Option<&Path>) -> Result<PathBuf, CommandError> {
    let Some(named) = named else { return Err(unnamed(Path::new("."))) };
    let path = resolved(named);
    if path.is_dir() {
        // A loop may have the name of a folder.
        return candidates(named).into_iter().find(|path| path.is_file()).ok_or_else(|| unnamed(&path));
    }
    match path.try_exists() {
        Ok(false) if path != Path::new("-") => Err(absent(&path)),
        _ => Ok(path),
    }
}

/// A name that no file has: the document of nearly this name, or those that there are.
fn absent(path: &Path) -> CommandError {
    let folder = project::folder_of(path);
    let found = documents(&folder);
    let message = format!("there is no file {}", name_of(path));
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stems: Vec<String> = found.iter().filter_map(|path| stem(path)).collect();
    let near = stem(path).and_then(|stem| nearest(&stem, stems.iter().map(String::as_str)).map(str::to_owned));
    if let Some(near) = found.iter().find(|path| near.is_some() && stem(path) == near) {
        return CommandError::usage_help(message, format!("the nearest name is {}", name_of(near)));
    }
    let yaml = ["yaml", "yml"].into_iter().map(|ending| path.with_extension(ending)).find(|path| path.is_file());
    if let Some(yaml) = yaml {
        return CommandError::usage_help(
            message,
            format!("{} is no JSON: documents are written in JSON", name_of(&yaml)),
        );
    }
    let names: Vec<String> = found.iter().take(MAX_NAMED).map(|path| name_of(path)).collect();
    let more = if found.len() > MAX_NAMED { ", and others" } else { "" };
    match names.as_slice() {
        [] => CommandError::usage(message),
        names => CommandError::usage_help(message, format!("there is {}{more}", names.join(", "))),
    }
}

/// What to do without a name.
fn unnamed(folder: &Path) -> CommandError {
    let is_here = folder == Path::new(".");
    let place = if is_here { "this folder".to_owned() } else { folder.display().to_string() };
    let program = quoted(&program());
    let found = documents(folder);
    match found.as_slice() {
        [] if is_here => CommandError::usage_help(
            "no loop is named, and this folder has none",
            format!(
                "`{program} demo` plays an example, `{program} init` makes a project here, and `{program} run FILE` runs a \
                 loop"
            ),
        ),
        [] => CommandError::usage_help(
            format!("{place} is a folder, and has no loop"),
            format!("name the document of a loop, or make a project there: {program} init {}", quoted_path(folder)),
        ),
        [only] => CommandError::usage_help(
            format!("no loop is named; {place} has one"),
            format!("{program} run {}{}", quoted_path(Path::new(&name_of(only))), inputs(only)),
        ),
        [first, ..] => {
            let mut names: Vec<String> = found.iter().take(MAX_NAMED).map(|path| name_of(path)).collect();
            // Of a folder with more files, not all were looked at.
            let is_cut = found.len() >= MAX_FILES;
            if found.len() > MAX_NAMED {
                names.push(if is_cut { "others".to_owned() } else { format!("{} more", found.len() - MAX_NAMED) });
            }
            let or_more = if is_cut { " or more" } else { "" };
            CommandError::usage_help(
                format!("no loop is named; {place} has {}{or_more}: {}", found.len(), names.join(", ")),
                format!("name one: {program} run {}{}", quoted_path(Path::new(&name_of(first))), inputs(first)),
            )
        }
    }
}

/// The inputs that a document requires, as flags.
fn inputs(path: &Path) -> String {
    let Ok(loaded) = load(path, &[]) else { return String::new() };
    let required = loaded.program.input.as_ref().map(|schema| schema.required()).unwrap_or_default();
    required.iter().map(|name| format!(" --input {}", quoted(&format!("{name}=...")))).collect()
}

/// The loops and workflows of a folder that can be run: first its own, then those of the folders that loops are looked up in.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let within = |name: &str| if folder == Path::new(".") { PathBuf::from(name) } else { folder.join(name) };
    let folders = std::iter::once(folder.to_owned()).chain(FOLDERS.iter().map(|name| within(name)));
    folders.flat_map(|folder| own_documents(&folder)).collect()
}

fn own_documents(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names =
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())).map(|entry| entry.file_name());
    let is_json = |name: &std::ffi::OsString| Path::new(name).extension().is_some_and(|ending| ending == "json");
    let mut names: Vec<_> = names.filter(is_json).take(MAX_FILES).collect();
    names.sort();
    let within = |name: &std::ffi::OsString| {
        if folder == Path::new(".") { PathBuf::from(name) } else { folder.join(name) }
    };
    names.iter().map(within).filter(|path| is_run(path)).collect()
}

fn is_run(path: &Path) -> bool {
    let Ok(source) = project::read(path) else { return false };
    let document = document::read(&source);
    let kind = matches!(document.kind, Some(DocumentKind::Loop | DocumentKind::Workflow | DocumentKind::AgentRequest));
    kind && file_kind::is_ours(&document)
}
