//! The judged rules over their cases in `tests/check`: each fires at its place, alone, and is silent
//! about the clean twin.

mod beyond;
mod places;
mod silence;
mod words;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::{RULES, judge};
use crate::compile::embedded_tools::EmbeddedFile;
use crate::compile::locked_tools::{LockFile, LockedTools};
use crate::compile::{Texts, compile};
use crate::diagnostic::{Diagnostic, Source, codes};

fn all_diagnostics(texts: &Texts) -> Vec<Diagnostic> {
    let mut compiled = compile(texts);
    let judged = judge(texts, &compiled);
    let mut all = std::mem::take(&mut compiled.diagnostics);
    all.extend(judged);
    all
}

/// The same of a case, whose document may be a script or a workflow: that it is no loop, or can't be run yet, is no
/// fault of it.
fn of_case(texts: &Texts) -> Vec<Diagnostic> {
    let mut all = all_diagnostics(texts);
    all.retain(|fault| fault.code != codes::NO_LOOP);
    all
}

/// A document, a project file (none when empty) and an actions file (none when empty).
fn texts(main: &str, project: &str, actions: &str) -> Texts {
    let mut texts = Texts::new(Source::new("loop.json", main));
    texts.project = Some(project).filter(|text| !text.is_empty()).map(|text| Source::new("loopctl.json", text));
    if !actions.is_empty() {
        texts.actions.push(Source::new("actions/a.json", actions));
    }
    texts
}

/// The case of a code, with the action files of its folder.
fn case(code: &str, which: &str) -> Texts {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/check").join(code).join(which);
    let main = fs::read_to_string(folder.join("loop.json")).unwrap_or_else(|error| panic!("{code}: {error}"));
    let project = fs::read_to_string(folder.join("loopctl.json")).unwrap_or_default();
    let mut texts = texts(&main, &project, "");
    if let Ok(lock) = fs::read_to_string(folder.join("mcp.lock.json")) {
        let file = LockFile::new(Source::new("mcp.lock.json", lock));
        texts.locked = LockedTools::File(Arc::new(file));
    }
    if let Ok(tools) = fs::read_to_string(folder.join("tools.json")) {
        texts.embedded_file = Some(Arc::new(EmbeddedFile::read(&Source::new("tools.json", tools))));
    }
    let mut files: Vec<_> = fs::read_dir(folder.join("actions")).into_iter().flatten().flatten().collect();
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let name = format!("actions/{}", file.file_name().display());
        texts.actions.push(Source::new(name, fs::read_to_string(file.path()).unwrap()));
    }
    texts
}

/// `CODE file:line:column path: text`
fn shown(fault: &Diagnostic, texts: &Texts) -> String {
    let place = &fault.place;
    let source = std::iter::once(&texts.main)
        .chain(&texts.project)
        .chain(&texts.actions)
        .find(|source| source.name == place.file)
        .unwrap();
    let text = &source.text[place.start..place.end];
    format!("{} {}:{}:{} {}: {text}", fault.code, place.file, place.line, place.column, fault.path)
}

/// All diagnostics of texts, each as [`shown`].
fn all_shown(texts: &Texts) -> Vec<String> {
    all_diagnostics(texts).iter().map(|fault| shown(fault, texts)).collect()
}

fn judged() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.code)
}

#[test]
fn each_judged_rule_fires_alone_and_at_its_place() {
    let found: Vec<String> = judged()
        .flat_map(|code| {
            let texts = case(code, "fires");
            of_case(&texts).into_iter().map(move |fault| shown(&fault, &texts))
        })
        .collect();
    assert_eq!(found, places::PLACES, "\n{}\n", found.join("\n"));
}

#[test]
fn each_judged_rule_is_silent_about_the_clean_twin() {
    for code in judged() {
        let found = of_case(&case(code, "clean"));
        assert!(found.is_empty(), "{code}: {found:#?}");
    }
}

#[test]
fn each_fault_has_the_severity_of_its_rule_and_says_how_to_fix_it() {
    for rule in RULES.iter().map(|rule| codes::find(rule.code).unwrap()) {
        for fault in of_case(&case(rule.code, "fires")) {
            // A script that the model writes a part of is more than a script.
            assert!(fault.severity == rule.severity || rule.code == "L111", "{fault:#?}");
            assert!(fault.help.is_some(), "{}", rule.code);
            assert!(!fault.message.ends_with('.'), "{}", fault.message);
        }
    }
}

#[test]
fn a_suggestion_in_the_project_file_fixes_its_fault_too() {
    let mut seen = 0;
    for code in judged() {
        let texts = case(code, "fires");
        for fault in of_case(&texts) {
            let Some(suggestion) = &fault.suggestion else { continue };
            seen += 1;
            let mut fixed = texts.clone();
            let source = match &mut fixed.project {
                Some(project) if *fault.place.file == *project.name => project,
                _ => &mut fixed.main,
            };
            let mut text = source.text.to_string();
            text.replace_range(suggestion.start..suggestion.end, &suggestion.replacement);
            *source = Source::new(source.name.clone(), text);
            assert!(of_case(&fixed).is_empty(), "{code}: {:#?}", of_case(&fixed));
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn called_loops_are_checked_with_their_steps_and_each_fault_is_reported_once() {
    let react = |tools: &str, more: &str| {
        format!(r#"{{"type": "loop", "properties": {{"mode": "react", "objective": "x", "tools": [{tools}]{more}}}}}"#)
    };
    let call = react(r#"{"type": "loop", "name": "a"}"#, "");
    let mut texts = texts(&format!(r#"{{"name": "w", "definition": {{"actions": [{call}, {call}]}}}}"#), "", "");
    let bare = r#", "system_prompt": "x""#;
    let called = react(r#"{"type": "mcp", "server": "s"}"#, bare);
    let step = format!(r#"{{"description": "Does it.", "onFalse": {}, "#, react("", bare));
    texts.loops.push(Source::new("loops/a.json", called.replacen('{', &step, 1)));
    let found = all_diagnostics(&texts);
    let places = found.iter().filter(|fault| fault.code == "L124");
    let places: Vec<_> = places.map(|fault| (&*fault.place.file, fault.path.as_str())).collect();
    let of_called = ["/onFalse/properties/system_prompt", "/properties/system_prompt"];
    assert_eq!(places, of_called.map(|path| ("loops/a.json", path)), "{found:?}");
}
