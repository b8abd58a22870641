//! Small texts for the JSON reader, in the manner of the known suites for JSON parsers: a case that begins with
//! `y` must be read, one with `n` must be refused with one fault whose place is in the text, `i` may be either.
//! None may cause a panic.
//!
//! A case is a line of a file of `json_suite/`: `y NAME TEXT`. In a text, `⟦0a ff⟧` are bytes, and
//! `⟦[*100⟧` is a text a hundred times.

use std::path::Path;

use loopctl::compile::{Texts, compile};
use loopctl::diagnostic::{Diagnostic, Source};
use loopctl::project;
use loopctl::syntax::{parse, repeated_keys};

struct Case {
    kind: char,
    name: String,
    bytes: Vec<u8>,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/json_suite");
    let mut cases = Vec::new();
    for file in ["structure", "strings", "numbers", "encodings"] {
        let text = std::fs::read_to_string(folder.join(format!("{file}.txt"))).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (kind, rest) = line.split_once(' ').unwrap();
            let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
            let kind = kind.chars().next().unwrap();
            cases.push(Case { kind, name: format!("{file}/{name}"), bytes: bytes(text) });
        }
    }
    cases
}

/// The bytes that a case's text encodes.
fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('⟦') {
        bytes.extend(before.bytes());
        let (inside, after) = after.split_once('⟧').expect("a closing bracket");
        match inside.rsplit_once('*') {
            Some((part, count)) => bytes.extend(part.repeat(count.parse().unwrap()).bytes()),
            None => bytes.extend(inside.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap())),
        }
        rest = after;
    }
    bytes.extend(rest.bytes());
    bytes
}

/// Reads a case the way that a file is read.
fn read(folder: &Path, case: &Case) -> Result<Source, Box<Diagnostic>> {
    let file = folder.join("case.json");
    std::fs::write(&file, &case.bytes).unwrap();
    project::read(&file)
}

fn lies_in(fault: &Diagnostic, source: &Source) -> bool {
    let place = &fault.place;
    let lines = u32::try_from(source.text.lines().count()).unwrap().max(1);
    place.start <= place.end
        && source.text.get(place.start..place.end).is_some()
        && (1..=lines + 1).contains(&place.line)
        && place.line <= place.end_line
        && place.column >= 1
        && *place == source.place(place.start, place.end)
}

#[test]
fn there_are_many_cases_and_no_two_of_one_name() {
    let cases = cases();
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len());
    assert!(cases.len() >= 250, "{}", cases.len());
    assert!(cases.iter().all(|case| matches!(case.kind, 'y' | 'n' | 'i')));
}

#[test]
fn what_is_json_is_read_and_what_is_not_is_refused_with_one_fault_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for case in cases() {
        let Ok(source) = read(folder.path(), &case) else {
            if case.kind == 'y' {
                wrong.push(format!("{} is JSON, and the file was refused", case.name));
            }
            continue;
        };
        let (tree, faults) = parse(&source);
        let messages: Vec<String> = faults
            .iter()
            .map(|fault| format!("{}:{} {} {}", fault.place.line, fault.place.column, fault.code, fault.message))
            .collect();
        let expected = match case.kind {
            'y' => faults.is_empty() && repeated_keys(&tree).is_empty(),
            'n' => faults.len() == 1,
            _ => true,
        };
        if !expected {
            wrong.push(format!("{}: {}", case.name, messages.join("; ")));
        }
        for fault in faults.iter().chain(&repeated_keys(&tree)).filter(|fault| !lies_in(fault, &source)) {
            wrong.push(format!("{}: its fault lies outside of it: {:?}", case.name, fault.place));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn a_reader_that_is_known_agrees() {
    let folder = tempfile::tempdir().unwrap();
    for case in cases() {
        // Our bounds are tighter: so much is JSON and no document.
        let bounded = case.name.starts_with("structure/too_");
        let known = serde_json::from_slice::<serde_json::Value>(&case.bytes).is_ok();
        let taken = read(folder.path(), &case).is_ok_and(|source| parse(&source).1.is_empty());
        assert!(taken == known || bounded || case.name == "structure/deep_enough", "{}: {known}", case.name);
    }
}

#[test]
fn none_of_them_is_a_loop_and_each_is_reported_as_none() {
    let folder = tempfile::tempdir().unwrap();
    for case in cases() {
        let Ok(source) = read(folder.path(), &case) else { continue };
        let compiled = compile(&Texts::new(source.clone()));
        assert!(compiled.program.is_none(), "{}", case.name);
        assert!(compiled.has_errors(), "{}", case.name);
        for fault in &compiled.diagnostics {
            assert!(lies_in(fault, &source), "{}: {fault:?}", case.name);
        }
    }
}

#[test]
fn a_text_that_is_cut_off_anywhere_is_reported_and_its_faults_have_places_in_it() {
    let whole =
        r#"{"type":"loop","properties":{"mode":"react","objective":"a \u00e9 {{input.x}}","tools":[-1.5e3,null]}}"#;
    for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
        let source = Source::new("cut.json", &whole[..end]);
        let faults = parse(&source).1;
        assert_eq!(faults.len(), 1, "{:?}: {faults:?}", &whole[..end]);
        assert!(faults.iter().all(|fault| lies_in(fault, &source)));
        assert!(compile(&Texts::new(source)).has_errors());
    }
}
