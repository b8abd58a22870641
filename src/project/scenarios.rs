//! Files of scenarios: reads what they name, and has them checked against the document that they test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::load::{Loaded, examine, load};
use super::{folder_of, guarded, within};
use crate::check;
use crate::check::scenario::ScenarioSubject;
use crate::compile::Texts;
use crate::diagnostic::{Diagnostic, codes, few, sort_by_place};
use crate::language::{Recording, ScenarioFile, Script};
use crate::syntax::MAX_BYTES;
use crate::syntax::document::Document;

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
    let mut scripts = BTreeMap::new();
    for (index, scenario) in file.scenarios.iter().enumerate() {
        let Some(script) = &scenario.script else { continue };
        match read_script(&within(&folder, script)) {
            Ok(script) => drop(scripts.insert(index, script)),
            Err(why) => {
                let pointer = format!("/scenarios/{index}/script");
                let place = document.tree.place(&pointer);
                let message = format!("the script `{script}` can't be used: {why}");
                let fault = Diagnostic::error(codes::SCENARIO_DOCUMENT, message, pointer, place);
                faults.push(fault.help("the path is relative to this file"));
            }
        }
    }
    let mut recordings = BTreeMap::new();
    for (index, scenario) in file.scenarios.iter().enumerate() {
        let Some(recording) = &scenario.recording else { continue };
        match read_recording(&within(&folder, recording)) {
            Ok(recording) => drop(recordings.insert(index, recording)),
            Err(why) => {
                let pointer = format!("/scenarios/{index}/recording");
                let place = document.tree.place(&pointer);
                let message = format!("the recording `{recording}` can't be used: {why}");
                let fault = Diagnostic::error(codes::SCENARIO_DOCUMENT, message, pointer, place);
                faults.push(fault.help("the path is relative to this file; `loopctl record RUN -o FILE` writes one"));
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

fn read_script(path: &Path) -> Result<Script, String> {
    let text = guarded::text(path, MAX_BYTES).map_err(|unread| unread.reason(MAX_BYTES))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Script::deserialize(&value).map_err(|error| error.to_string())
}

fn read_recording(path: &Path) -> Result<Recording, String> {
    let text = guarded::text(path, MAX_BYTES).map_err(|unread| unread.reason(MAX_BYTES))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let version = value.get("recording").and_then(Value::as_u64);
    if version != Some(u64::from(Recording::VERSION)) {
        return Err(match version {
            Some(version) => format!("it has the format {version}, and this version of loopctl reads 1"),
            None => "it is no recording".to_owned(),
        });
    }
    Recording::deserialize(&value).map_err(|error| error.to_string())
}
