//! Files of scenarios: reads what they name, and has them checked against the document that they test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::load::{Loaded, examine, load_with};
use super::paths::NamedFiles;
use super::snapshot_file::{self, SnapshotText};
use super::{folder_of, guarded_read, name_of};
use loopctl_lang::check;
use loopctl_lang::check::scenario::ScenarioSubject;
use loopctl_lang::compile::{Texts, ToolSignature};
use loopctl_lang::diagnostic::{Diagnostic, Help, Place, Remedy, Source, codes, few, sort_by_place};
use loopctl_lang::language::scenario::Scenario;
use loopctl_lang::language::{Recording, ScenarioFile, Script};
use loopctl_lang::policy::json_text;
use loopctl_lang::program::scripted_case;
use loopctl_lang::syntax::MAX_BYTES;
use loopctl_lang::syntax::document::{Document, DocumentKind, read_as};

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

impl ScenarioSet {
    /// Replaces a recording that a scenario names: a file that was read as one, and still is one.
    ///
    /// # Errors
    /// Why it was not written, in a sentence without a final stop.
    pub fn rewrite(&self, recording: &str, text: &str) -> Result<(), String> {
        let files = NamedFiles::new(self.folder.clone());
        let path = files.named(recording)?;
        if path.is_foreign {
            return Err(super::paths::OUTSIDE.to_owned());
        }
        read_recording(&path.path).map_err(|unusable| unusable.why)?;
        // A link within the project is followed; the file that it leads to is replaced.
        let real = path.path.canonicalize().map_err(|error| super::reason(&error))?;
        if let Some(hidden) = files.hidden_in(&real) {
            return Err(format!(
                "`{}` is hidden, and nothing is written there",
                loopctl_lang::diagnostic::shown(&hidden)
            ));
        }
        let before = guarded_read::text(&real, MAX_BYTES).map_err(|unread| unread.reason(MAX_BYTES))?;
        super::replace(&real, &before, text).map_err(|fault| fault.message.clone())
    }
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
    scenario_file_with(document, path, &[])
}

/// The same in a program that has these tools.
pub fn scenario_file_with(document: Document, path: &Path, embedded: &[ToolSignature]) -> ScenarioDocument {
    let compiled = examine(&Texts::new(document.tree.source.clone()), document);
    let mut examined = scenarios(&compiled.document, path, embedded);
    // That it is no loop is no fault of it.
    examined.faults.extend(compiled.diagnostics.into_iter().filter(|fault| fault.code != codes::NO_LOOP));
    sort_by_place(&mut examined.faults);
    if examined.faults.iter().any(Diagnostic::is_error) {
        examined.set = None;
    }
    ScenarioDocument { document: compiled.document, examined }
}

/// Checks a file of scenarios, which was read from `path`, with the document that it tests, in a program that has these tools.
pub fn scenarios(document: &Document, path: &Path, embedded: &[ToolSignature]) -> ExaminedScenarios {
    let mut faults = Vec::new();
    let Ok(file) = ScenarioFile::deserialize(&document.value) else {
        if !document.is_broken() {
            let fault = "the file matches its schema, and can't be read";
            faults.push(Diagnostic::error(codes::UNREADABLE, fault, "", document.tree.source.whole()));
        }
        return ExaminedScenarios { set: None, faults };
    };
    let files = NamedFiles::new(folder_of(path));
    let loaded = tested(document, &file, &files, embedded, &mut faults);
    let (mut scripts, mut recordings) = (BTreeMap::new(), BTreeMap::new());
    for (index, scenario) in file.scenarios.iter().enumerate() {
        if let Some(script) = &scenario.script {
            let read = NamedRead { document, named: format!("the script `{script}`"), pointer: at(index, "script") };
            match read.with(&files, script, read_script) {
                Ok(script) => {
                    let script = of_scenario(document, script, index, scenario, loaded.as_ref(), &mut faults);
                    scripts.insert(index, script);
                }
                Err(fault) => faults.push(fault.help("the path is relative to this file")),
            }
        }
        if let Some(recording) = &scenario.recording {
            let named = format!("the recording `{recording}`");
            match (NamedRead { document, named, pointer: at(index, "recording") }).with(
                &files,
                recording,
                read_recording,
            ) {
                Ok(recording) => drop(recordings.insert(index, recording)),
                Err(fault) => {
                    let help = "the path is relative to this file; `loopctl record RUN -o FILE` writes one";
                    faults.push(fault.help(help));
                }
            }
        }
    }
    snapshots(document, &file, &files, &mut faults);
    let program = loaded.as_ref().map(|loaded| &*loaded.program);
    let subject = ScenarioSubject { document, file: &file, program, scripts: &scripts, recordings: &recordings };
    check::scenario::judge(&subject, &mut faults);
    faults.retain(|fault| !document.is_guessed(fault));
    few(&mut faults);
    let sound = !document.is_broken() && !faults.iter().any(Diagnostic::is_error);
    let set =
        loaded.filter(|_| sound).map(|loaded| ScenarioSet { file, loaded, scripts, recordings, folder: files.folder });
    ExaminedScenarios { set, faults }
}

/// A script with the replies for the input of a scenario. In a workflow, the loops of its steps have inputs of their own.
fn of_scenario(
    document: &Document,
    script: Script,
    index: usize,
    scenario: &Scenario,
    loaded: Option<&Loaded>,
    faults: &mut Vec<Diagnostic>,
) -> Script {
    let Some(program) = loaded.map(|loaded| &loaded.program).filter(|program| !program.is_flow()) else {
        return script;
    };
    let input = scenario.input.as_ref().or_else(|| program.default_input());
    let script = scripted_case::for_input(script, &input.map_or(Value::Null, |input| Value::Object(input.clone())));
    if !script.cases.is_empty() {
        let pointer = at(index, if scenario.input.is_some() { "input" } else { "script" });
        let message = scripted_case::no_case(script.cases.iter().map(|case| &case.when));
        let place = document.tree.place(&pointer);
        let fault = Diagnostic::error(codes::SCENARIO_SENSE, message, pointer, place);
        faults.push(fault.help("give the script a case for it, or `replies`, which are for all other inputs"));
    }
    script
}

/// The document that the scenarios test.
fn tested(
    document: &Document,
    file: &ScenarioFile,
    files: &NamedFiles,
    embedded: &[ToolSignature],
    faults: &mut Vec<Diagnostic>,
) -> Option<Loaded> {
    let named = format!("the document `{}`", file.document);
    let pointer = "/document".to_owned();
    let path = match files.named(&file.document) {
        Ok(path) => path,
        Err(why) => {
            faults.push(forbidden(document, &named, pointer, why));
            return None;
        }
    };
    let unsound = match load_with(&path.path, &[], embedded) {
        Ok(loaded) => return Some(loaded),
        Err(unsound) => unsound,
    };
    let first = unsound.diagnostics.iter().find(|fault| fault.is_error());
    // Nothing of a file is shown that is no document: it may be a key.
    let first = first.filter(|first| !path.is_foreign && (first.code == codes::FILE || may_be_shown(&path.path)));
    let why = match first {
        Some(first) => format!(": {}", first.message),
        None if path.is_foreign => String::new(),
        None => ": it is no loop and no workflow".to_owned(),
    };
    let message = format!("{named} can't be tested{why}");
    let fault = Diagnostic::error(codes::SCENARIO_DOCUMENT, message, pointer.as_str(), document.tree.place(&pointer));
    let fault = match first {
        Some(first) if first.code != codes::FILE => fault.related(&first.place, "the error is here"),
        _ => fault,
    };
    faults.push(fault.help("the path is relative to this file; `loopctl check` lists the errors of a document"));
    None
}

/// Whether a file seems to be a document of ours.
fn may_be_shown(path: &Path) -> bool {
    let text = guarded_read::text(path, MAX_BYTES);
    text.is_ok_and(|text| {
        check::file_kind::is_ours(&loopctl_lang::syntax::document::read(&Source::new(name_of(path), text)))
    })
}

/// A path that leads where nothing is opened.
fn forbidden(document: &Document, named: &str, pointer: String, why: &str) -> Diagnostic {
    let place = document.tree.place(&pointer);
    Diagnostic::error(codes::FORBIDDEN_PATH, format!("{named} is not opened: {why}"), pointer, place)
}

/// Reports the snapshots that are neither compared nor written.
fn snapshots(document: &Document, file: &ScenarioFile, files: &NamedFiles, faults: &mut Vec<Diagnostic>) {
    /// The most bytes of snapshots that are read.
    const MAX_SNAPSHOT_BYTES: usize = 64 << 20;
    let mut read = 0_usize;
    for (index, scenario) in file.scenarios.iter().enumerate() {
        let under = scenario.under_faults.as_ref().and_then(|expect| expect.snapshot.as_ref());
        let named = [(scenario.expect.snapshot.as_ref(), "expect/snapshot"), (under, "under_faults/snapshot")];
        for (name, field) in named.into_iter().filter_map(|(name, field)| Some((name?, field))) {
            let kept = snapshot_file::located(&files.folder, name).and_then(|path| {
                if read < MAX_SNAPSHOT_BYTES { snapshot_file::read(&path) } else { Ok(SnapshotText::Absent) }
            });
            match kept {
                Ok(SnapshotText::Kept(text)) => read = read.saturating_add(text.len()),
                Ok(SnapshotText::Absent) => {}
                Err(why) => {
                    let fault = forbidden(document, &format!("the snapshot `{name}`"), at(index, field), &why);
                    let before = "name a file below the folder of this file, like `snapshots/paid.txt`; ";
                    faults.push(fault.help(Help::ending(before, Remedy::WriteSnapshots)));
                }
            }
        }
    }
}

/// A file that a scenario names, to be read.
struct NamedRead<'a> {
    document: &'a Document,
    /// What it is, in a sentence.
    named: String,
    pointer: String,
}

impl NamedRead<'_> {
    fn with<T>(
        self,
        files: &NamedFiles,
        file: &str,
        read: impl FnOnce(&Path) -> Result<T, UnusableFile>,
    ) -> Result<T, Box<Diagnostic>> {
        let forbidden = |why| Box::new(forbidden(self.document, &self.named, self.pointer.clone(), why));
        let path = files.named(file).map_err(forbidden)?;
        read(&path.path).map_err(|unusable| {
            let unusable = if path.is_foreign {
                UnusableFile::new(format!("{}, and is none of that kind", super::paths::OUTSIDE))
            } else {
                unusable
            };
            Box::new(unusable.fault(self.document, &self.named, &self.pointer))
        })
    }
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

/// The keys of which a script has one.
const SCRIPT_KEYS: [&str; 3] = ["replies", "loops", "tools"];

fn read_script(path: &Path) -> Result<Script, UnusableFile> {
    let text = text_of(path)?;
    let value = parsed(&text)?;
    if !SCRIPT_KEYS.iter().any(|key| value.get(key).is_some()) {
        return Err(UnusableFile::new("it is no script"));
    }
    Script::deserialize(&value).map_err(|_| first_error(path, text, DocumentKind::Script))
}

fn read_recording(path: &Path) -> Result<Recording, UnusableFile> {
    let text = text_of(path)?;
    let value = parsed(&text)?;
    match value.get("recording").and_then(Value::as_u64) {
        Some(version) if version != u64::from(Recording::VERSION) => {
            let why = format!("it has the format {version}, and this version of loopctl reads 1");
            return Err(UnusableFile::new(why));
        }
        None => return Err(UnusableFile::new("it is no recording")),
        Some(_) => {}
    }
    Recording::deserialize(&value).map_err(|_| first_error(path, text, DocumentKind::Recording))
}

/// The JSON of a file. Nothing of another file is shown: it may be a key.
fn parsed(text: &str) -> Result<Value, UnusableFile> {
    let no_json = |error: serde_json::Error| {
        UnusableFile::new(format!("it is no JSON from line {}, column {} on", error.line(), error.column()))
    };
    json_text::read(text).map_err(no_json)
}

fn text_of(path: &Path) -> Result<String, UnusableFile> {
    guarded_read::text(path, MAX_BYTES).map_err(|unread| UnusableFile::new(unread.reason(MAX_BYTES)))
}

/// The first error that `check` reports in a file that can't be read.
fn first_error(path: &Path, text: String, kind: DocumentKind) -> UnusableFile {
    let document = read_as(&Source::new(name_of(path), text), Some(kind));
    match document.faults.into_iter().find(Diagnostic::is_error) {
        Some(first) => UnusableFile { why: first.message, place: Some(first.place) },
        None => UnusableFile::new(format!("it matches the schema of {}, and can't be read", kind.called())),
    }
}
