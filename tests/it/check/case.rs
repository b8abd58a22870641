//! A case: a folder with a document, and the report of the checks on it.

#![expect(clippy::disallowed_methods, reason = "a test's own switch comes from the environment")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

use loopctl::check::{ScriptedLoops, script_calls};
use loopctl::cli::report;
use loopctl::compile::{Declared, Texts, alone, compile};
use loopctl::diagnostic::{Diagnostic, Source, codes};
use loopctl::load_texts;
use loopctl::program::bind;
use loopctl::project;
use loopctl::syntax::document;
use loopctl::trace::Look;
use serde_json::Value;

/// The width of the reports that are kept.
const WIDTH: usize = 100;

/// The codes of faults in scripts.
const OF_SCRIPTS: [&str; 3] = [codes::SCRIPT_REPLY, codes::SCRIPT_NAME, codes::SCRIPT_INPUT];
/// The codes of faults in files of scenarios.
const OF_SCENARIOS: [&str; 5] = [
    codes::SCENARIO_DOCUMENT,
    codes::SCENARIO_NAME,
    codes::SCENARIO_MATCHER,
    codes::SCENARIO_SENSE,
    codes::FORBIDDEN_PATH,
];

/// A folder of documents: `loop.json`, and where it needs them `loopctl.json`, `actions/*.json`, `loops/*.json`,
/// `given/*.json` (as named with `--actions`), and `input.json` (the input of a run).
pub struct Case {
    /// The code that it is about.
    pub code: String,
    folder: PathBuf,
    /// The report on its document, once it was asked for.
    report: OnceLock<CaseReport>,
}

/// What the checks report about texts.
pub struct CaseReport {
    pub diagnostics: Vec<Diagnostic>,
    pub sources: Vec<Source>,
}

/// All cases, in the order of their names. The tests of this program share them, and their reports.
pub fn cases() -> &'static [Case] {
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(read_cases);
    &CASES
}

fn read_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // Relative, so that reports name no folder of this machine.
    for of_code in entries(Path::new("tests/check")).into_iter().filter(|path| path.is_dir()) {
        for folder in entries(&of_code) {
            cases.push(Case { code: name(&of_code), folder, report: OnceLock::new() });
        }
    }
    assert!(!cases.is_empty(), "there are cases in tests/check");
    cases
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Case {
    /// `L010/fires-2`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.code, name(&self.folder))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether its code is reported; else the case is a clean one.
    pub fn fires(&self) -> bool {
        let name = name(&self.folder);
        let fires = name.starts_with("fires");
        assert!(fires || name.starts_with("clean"), "{}: a case is called `fires` or `clean`", self.folder.display());
        fires
    }

    /// The report on its document.
    pub fn report(&self) -> &CaseReport {
        self.report.get_or_init(|| match self.texts() {
            Ok(texts) => CaseReport::of(&self.code, &texts, self.input()),
            Err(report) => report,
        })
    }

    fn texts(&self) -> Result<Texts, CaseReport> {
        project::gather(&self.folder.join("loop.json"), &entries(&self.folder.join("given")))
            .map(|gathered| gathered.texts)
            .map_err(|diagnostics| CaseReport { diagnostics, sources: Vec::new() })
    }

    fn input(&self) -> Option<Value> {
        let text = fs::read_to_string(self.folder.join("input.json")).ok()?;
        Some(serde_json::from_str(&text).unwrap())
    }

    /// The differences between the report and the golden files; empty when they are the same.
    pub fn differences(&self) -> Vec<String> {
        let update = std::env::var_os("UPDATE_GOLDEN").is_some();
        let report = self.report();
        let mut different = Vec::new();
        for (file, text) in [("human.txt", report.human()), ("out.json", report.json())] {
            let path = self.folder.join(file);
            if update {
                fs::write(&path, &text).unwrap();
            }
            let kept = fs::read_to_string(&path).unwrap_or_default();
            if kept != text {
                different.push(format!("{}: golden:\n{kept}\nnow:\n{text}", path.display()));
            }
        }
        different
    }

    /// The suggestions that leave the fault in place, or bring another error.
    pub fn useless_suggestions(&self) -> Vec<String> {
        let Ok(texts) = self.texts() else { return Vec::new() };
        let report = CaseReport::of(&self.code, &texts, None);
        let errors = report.diagnostics.iter().filter(|fault| fault.is_error()).count();
        let mut useless = Vec::new();
        for fault in &report.diagnostics {
            let Some(suggestion) = fault.suggestion.as_ref().filter(|_| fault.place.file == texts.main.name) else {
                continue;
            };
            let mut text = texts.main.text.to_string();
            text.replace_range(suggestion.start..suggestion.end, &suggestion.replacement);
            let fixed = Texts { main: Source::new(texts.main.name.clone(), text), ..texts.clone() };
            let left = CaseReport::of(&self.code, &fixed, None).diagnostics;
            let again = left.iter().any(|other| other.code == fault.code && other.place.start == fault.place.start);
            let more = left.iter().filter(|fault| fault.is_error()).count() > errors;
            if again || more {
                useless.push(format!("{}: {}: {}: {left:#?}", self.name(), fault.code, fault.message));
            }
        }
        useless
    }
}

/// Whether a diagnostic is an error of its document. That workflows can't be run yet is reported of each.
pub fn is_fault(fault: &Diagnostic) -> bool {
    fault.is_error()
}

impl CaseReport {
    /// The report on texts, and on the input of a run when the texts are sound. `code` is what they are about.
    pub fn of(code: &str, texts: &Texts, input: Option<Value>) -> Self {
        if OF_SCRIPTS.contains(&code) {
            return Self::of_script(texts);
        }
        if OF_SCENARIOS.contains(&code) {
            return Self::of_scenarios(texts);
        }
        match load_texts(texts, PathBuf::new()) {
            Ok(loaded) => {
                let mut diagnostics = loaded.warnings;
                if let Some(input) = input {
                    let bound = bind(&loaded.program, input, "2026-01-01T00:00:00Z", "run_1");
                    diagnostics.extend(bound.err().into_iter().flatten());
                }
                Self { diagnostics, sources: loaded.sources }
            }
            Err(unsound) => Self { diagnostics: unsound.diagnostics, sources: unsound.sources },
        }
    }

    /// The report on a script beside the loops of its folder. That it is no loop is no fault there.
    fn of_script(texts: &Texts) -> Self {
        let script = document::read(&texts.main);
        let mut declared = Declared::default();
        texts.loops.iter().for_each(|source| declared.add(&document::read(source)));
        let mut diagnostics = alone(&script, &declared);
        let mut loops = ScriptedLoops::default();
        for source in &texts.loops {
            let compiled = compile(&Texts { main: source.clone(), ..texts.clone() });
            let is_sound = !compiled.has_errors();
            loops.add(&ScriptedLoops::of(&compiled, is_sound));
        }
        diagnostics.extend(script_calls(&script, &loops));
        let unsound = load_texts(texts, PathBuf::new()).expect_err("a script is no loop");
        diagnostics.extend(unsound.diagnostics.into_iter().filter(|fault| fault.code != codes::NO_LOOP));
        Self { diagnostics, sources: unsound.sources }
    }

    /// The report on scenarios of a document beside them.
    fn of_scenarios(texts: &Texts) -> Self {
        let named = Path::new(&*texts.main.name);
        // A page has no folder: the document that its scenarios test is that of a case.
        let beside = Path::new("tests/check/L023/clean/loop.json");
        let is_page = named.parent().is_none_or(|folder| folder.as_os_str().is_empty());
        let file = project::scenario_file(document::read(&texts.main), if is_page { beside } else { named });
        Self { diagnostics: file.examined.faults, sources: vec![texts.main.clone()] }
    }

    /// As people read it.
    pub fn human(&self) -> String {
        report::human(&self.diagnostics, &self.sources, &Look::plain(WIDTH))
    }

    /// As machines read it, in several lines.
    fn json(&self) -> String {
        let json: Value = serde_json::from_str(&report::json(&self.diagnostics)).unwrap();
        format!("{json:#}\n")
    }
}
