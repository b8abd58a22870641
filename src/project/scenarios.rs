//! Files of scenarios: reads what they name, and has them checked against the document that they test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::load::{Loaded, examine, load};
use super::{folder_of, guarded, name_of, within};
use crate::check;
use crate::check::scenario::ScenarioSubject;
use crate::compile::Texts;
use crate::diagnostic::{Diagnostic, Place, Source, codes, few, sort_by_place};
use crate::language::{Recording, ScenarioFile, Script};
use crate::syntax::MAX_BYTES;
use crate::syntax::document::{Document, DocumentKind, read_as};

/// A file of scenarios that can be played.
#[derive(Debug)]
pub struct ScenarioSet {
    /// What is written.
    pub file: ScenarioFile,
    /// The document that is tested.
    pub loaded: Loaded,
    /// The scripts that scenarios name, by the place of the scenario.
    pub scripts: BTreeMap<usize, Script>,
    /// The recordings that scenarios name, by the place of the scenario.
    pub recordings: BTreeMap<usize, Recording>,
    /// The folder that its paths start from.
    pub folder: PathBuf,
}

/// A file of scenarios, checked.
#[derive(Debug)]
pub struct ExaminedScenarios {
    /// What can be played; none if there is an error.
    pub set: Option<ScenarioSet>,
    /// Its faults, besides those of its text and shape.
    pub faults: Vec<Diagnostic>,
}

/// The file of scenarios at `path`, with all its faults.
#[derive(Debug)]
pub struct ScenarioDocument {
    /// Its text, with the position of every value.
    pub document: Document,
    /// What can be played, and the faults of all kinds.
    pub examined: ExaminedScenarios,
}

/// Checks the file of scenarios that was read from `path`, with everything that it names.
pub fn scenario_file(document: Document, path: &Path) -> ScenarioDocument {
    let compiled = examine(&Texts::new(document.tree.source.clone()), document);
    let mut examined = scenarios(&compiled.document, path);
    // That it is no loop is no fault of it.
    examined.faults.extend(compiled.diagnostics.into_iter().filter(|fault| fault.code != codes::NO_LOOP));
    sort_by_place(&mut examined.faults);
    if examined.faults.iter().any(Diagnostic::is_error) {
        examined.set = None;
    }
    ScenarioDocument { document: compiled.document, examined }
}

/// Checks a file of scenarios, which was read from `path`, with the document that it tests.
pub fn scenarios(document: &Document, path: &Path) -> ExaminedScenarios {
    let mut faults = Vec::new();
    let Ok(file) = ScenarioFile::deserialize(&document.value) else {
        if !document.is_broken() {
            let fault = "the file matches its schema, and can't be read";
            faults.push(Diagnostic::error(codes::UNREADABLE, fault, "", document.tree.source.whole()));
        }
        return ExaminedScenarios { set: None, faults };
    };
    let folder = folder_of(path);
    let loaded = match load(&within(&folder, &file.document), &[]) {
        Ok(loaded) => Some(loaded),
        Err(unsound) => {
            let errors: Vec<&Diagnostic> = unsound.diagnostics.iter().filter(|fault| fault.is_error()).collect();
            let first = errors.first().map_or_else(String::new, |first| format!(": {}", first.message));
            let message = format!("the document `{}` can't be tested{first}", file.document);
            let place = document.tree.place("/document");
            let fault = Diagnostic::error(codes::SCENARIO_DOCUMENT, message, "/document", place);
            let fault = match errors.first() {
                Some(first) if first.code != codes::FILE => fault.related(&first.place, "the error is here"),
                _ => fault,
            };
            faults
                .push(fault.help("the path is relative to this file; `loopctl check` lists the errors of a document"));
            None
        }
    };
    let (mut scripts, mut recordings) = (BTreeMap::new(), BTreeMap::new());
    for (index, scenario) in file.scenarios.iter().enumerate() {
        if let Some(script) = &scenario.script {
            match read_script(&within(&folder, script)) {
                Ok(script) => drop(scripts.insert(index, script)),
                Err(unusable) => {
                    let fault = unusable.fault(document, &format!("the script `{script}`"), &at(index, "script"));
                    faults.push(fault.help("the path is relative to this file"));
                }
            }
        }
        if let Some(recording) = &scenario.recording {
            match read_recording(&within(&folder, recording)) {
                Ok(recording) => drop(recordings.insert(index, recording)),
                Err(unusable) => {
                    let named = format!("the recording `{recording}`");
                    let fault = unusable.fault(document, &named, &at(index, "recording"));
                    let help = "the path is relative to this file; `loopctl record RUN -o FILE` writes one";
                    faults.push(fault.help(help));
                }
            }
        }
    }
    let program = loaded.as_ref().map(|loaded| &*loaded.program);
    let subject = ScenarioSubject { document, file: &file, program, scripts: &scripts, recordings: &recordings };
    check::scenario::judge(&subject, &mut faults);
    faults.retain(|fault| !document.is_guessed(fault));
    few(&mut faults);
    let sound = !document.is_broken() && !faults.iter().any(Diagnostic::is_error);
    let set = loaded.filter(|_| sound).map(|loaded| ScenarioSet { file, loaded, scripts, recordings, folder });
    ExaminedScenarios { set, faults }
}

fn at(scenario: usize, field: &str) -> String {
    format!("/scenarios/{scenario}/{field}")
}

/// Why a file that a scenario names can't be played.
struct UnusableFile {
    why: String,
    /// Where its first error is; none when it can't be read at all.
    place: Option<Place>,
}

impl UnusableFile {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), place: None }
    }

    fn fault(&self, document: &Document, named: &str, pointer: &str) -> Diagnostic {
        let message = format!("{named} can't be used: {}", self.why);
        let fault = Diagnostic::error(codes::SCENARIO_DOCUMENT, message, pointer, document.tree.place(pointer));
        match &self.place {
            Some(place) => fault.related(place, "the error is here"),
            None => fault,
        }
    }
}

fn read_script(path: &Path) -> Result<Script, UnusableFile> {
    let text = text_of(path)?;
    let read = serde_json::from_str::<Value>(&text).ok().and_then(|value| Script::deserialize(&value).ok());
    read.ok_or_else(|| first_error(path, text, DocumentKind::Script))
}

fn read_recording(path: &Path) -> Result<Recording, UnusableFile> {
    let text = text_of(path)?;
    let value = serde_json::from_str::<Value>(&text).ok();
    match value.as_ref().map(|value| value.get("recording").and_then(Value::as_u64)) {
        Some(Some(version)) if version != u64::from(Recording::VERSION) => {
            let why = format!("it has the format {version}, and this version of loopctl reads 1");
            return Err(UnusableFile::new(why));
        }
        Some(None) => return Err(UnusableFile::new("it is no recording")),
        _ => {}
    }
    let read = value.and_then(|value| Recording::deserialize(&value).ok());
    read.ok_or_else(|| first_error(path, text, DocumentKind::Recording))
}

fn text_of(path: &Path) -> Result<String, UnusableFile> {
    guarded::text(path, MAX_BYTES).map_err(|unread| UnusableFile::new(unread.reason(MAX_BYTES)))
}

/// The first error that `check` reports in a file that can't be read.
fn first_error(path: &Path, text: String, kind: DocumentKind) -> UnusableFile {
    let document = read_as(&Source::new(name_of(path), text), Some(kind));
    match document.faults.into_iter().find(Diagnostic::is_error) {
        Some(first) => UnusableFile { why: first.message, place: Some(first.place) },
        None => UnusableFile::new(format!("it matches the schema of {}, and can't be read", kind.called())),
    }
}
