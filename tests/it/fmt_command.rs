//! `loopctl fmt` as a user or a pipeline meets it: which files are formatted, what is refused, and the exit code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use loopctl::compile::Texts;
use loopctl::diagnostic::{Diagnostic, Source};
use loopctl::examine;
use loopctl::syntax::document::{self, DocumentKind};
use loopctl::syntax::formatter::formatted;
use serde_json::{Value, json};

use crate::common::{Place, Ran, is_sampled};

const LOOP: &str =
    r#"{"properties": {"tools": [], "objective": "Do it.", "mode": "react"}, "type": "loop", "name": "a"}"#;
const FORMATTED: &str = "{
  \"type\": \"loop\",
  \"name\": \"a\",
  \"properties\": { \"mode\": \"react\", \"objective\": \"Do it.\", \"tools\": [] }
}
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap()
}

fn fmt(place: &Place, args: &[&str], code: i32) -> Ran {
    let args: Vec<&str> = ["fmt"].iter().chain(args).copied().collect();
    let ran = place.call(&args);
    assert_eq!(ran.code, code, "{args:?}: {ran:#?}");
    assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("internal error"), "{ran:#?}");
    ran
}

fn text(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path().join(name)).unwrap()
}

#[test]
fn the_documents_of_a_folder_are_formatted_and_no_other_file() {
    let place = Place::new();
    let package = r#"{"name": "x", "version": "1.0.0", "type": "module", "dependencies": {}}"#;
    place.file("package.json", package);
    place.file("node_modules/loop.json", LOOP);
    place.file("loops/a.json", LOOP);
    place.file("loops/b.json", FORMATTED);
    place.file("loopctl.json", r#"{"models": {"m": {"script": "s.json", "provider": "script"}}}"#);
    // A script that the project names, in which nothing else says what it is.
    place.file("s.json", r#"{"tools": {}, "replies": []}"#);
    let ran = fmt(&place, &[], 0);
    assert_eq!(ran.stdout, "loopctl.json\nloops/a.json\ns.json\n");
    assert_eq!(ran.stderr, "3 files formatted, 1 file already formatted\n");
    assert_eq!(text(&place, "loops/a.json"), FORMATTED);
    assert_eq!(text(&place, "s.json"), "{\n  \"replies\": [],\n  \"tools\": {}\n}\n");
    assert_eq!(text(&place, "package.json"), package);
    assert_eq!(text(&place, "node_modules/loop.json"), LOOP);
    let again = fmt(&place, &[], 0);
    assert_eq!((again.stdout.as_str(), again.stderr.as_str()), ("", "4 files already formatted\n"));
}

#[test]
fn check_changes_nothing_lists_the_files_and_shows_what_would_change() {
    let place = Place::new();
    place.file("a.json", LOOP);
    place.file("b.json", FORMATTED);
    let ran = fmt(&place, &["--check"], 1);
    assert_eq!(ran.stdout, "a.json\n");
    for line in [
        "a.json\n@ line 1\n",
        "\n- {\"properties\"",
        "\n+   \"name\": \"a\",\n",
        "1 file not formatted, 1 file already",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    assert_eq!(text(&place, "a.json"), LOOP);
    assert_eq!(fmt(&place, &["--check", "b.json"], 0).stdout, "");
    let annotated = fmt(&place, &["--check", "--format", "github"], 1);
    assert_eq!(
        annotated.stdout,
        "::error file=a.json,line=1,endLine=1,title=fmt::the file is not formatted: run `loopctl fmt`\n"
    );
}

#[test]
fn what_would_change_shows_no_secret_and_ends() {
    let place = Place::new();
    let key = "sk-proj-Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0";
    place.file(
        "loopctl.json",
        format!(
            r#"{{"models": {{"m": {{"api_key": "{key}", "provider": "openai", "extra_body": {{"a": {:?}}}}}}}}}"#,
            "x".repeat(200)
        ),
    );
    let ran = fmt(&place, &["--check"], 1);
    assert!(ran.stderr.contains("+ ") && !ran.stderr.contains(key), "{}", ran.stderr);
    let long: Vec<Value> = (0..2_000).map(|number| json!({ "text": format!("{number:0>90}") })).collect();
    place.file("script.json", json!({ "replies": long }).to_string());
    let ran = fmt(&place, &["--check", "script.json"], 1);
    assert!(ran.stderr.lines().count() < 80 && ran.stderr.contains("more lines"), "{}", ran.stderr);
    assert!(ran.stderr.lines().all(|line| line.chars().count() <= 110), "{}", ran.stderr);
}

#[test]
fn a_file_that_is_no_json_is_reported_as_check_does_and_stays_and_the_others_are_formatted() {
    let place = Place::new();
    let broken = [
        ("comment.json", "{\"type\": \"loop\", // why\n\"properties\": {}}"),
        ("twice.json", r#"{"type": "loop", "type": "loop", "properties": {"objective": "x"}}"#),
        ("comma.json", r#"{"type": "loop", "properties": {"objective": "x",}}"#),
        ("open.json", r#"{"type": "loop", "properties": {"objective": "x""#),
        ("mark.json", "\u{feff}{\"type\": \"loop\", \"properties\": {\"objective\": \"x\"}}"),
    ];
    for (name, text) in broken {
        place.file(name, text);
    }
    place.file("latin.json", b"{\"type\": \"loop\", \"properties\": {\"objective\": \"\xe9\"}}");
    place.file("sound.json", LOOP);
    let ran = fmt(&place, &[], 1);
    assert_eq!(ran.stdout, "sound.json\n");
    assert!(ran.stderr.contains("1 file formatted, 6 faulty files left unchanged"), "{}", ran.stderr);
    for (name, before) in broken {
        assert_eq!(text(&place, name), before, "{name}");
        let reported = fmt(&place, &[name], 1);
        let checked = place.call(&["check", name]).stderr;
        let first = reported.stderr.lines().next().unwrap();
        assert!(first.starts_with("error[L") && checked.contains(first), "{name}: {first}\n{checked}");
    }
    assert_eq!(fmt(&place, &["--check", "latin.json"], 1).stdout, "");
}

#[test]
fn standard_input_is_formatted_to_standard_output() {
    let place = Place::new();
    let from = |args: &[&str], text: &str| place.call_reading(&[&["fmt"], args].concat(), text.as_bytes());
    let ran = from(&["-"], LOOP);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, FORMATTED, ""));
    let ran = from(&["-"], FORMATTED);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, FORMATTED));
    let ran = from(&["-"], "{\"type\": \"loop\",,}");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("error[L"), "{}", ran.stderr);
    let ran = from(&["-"], "{}");
    assert!(ran.code == 1 && ran.stderr.contains("L016"), "{ran:#?}");
    let ran = from(&["-", "--check"], LOOP);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "-\n"));
    let ran = from(&["-", "a.json"], LOOP);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
}

#[test]
fn wrong_arguments_and_nothing_to_format_are_no_success() {
    let place = Place::new();
    assert!(fmt(&place, &[], 2).stderr.contains("nothing to format in .: it contains no JSON file"));
    place.file("package.json", "{}");
    assert!(fmt(&place, &["--check"], 2).stderr.contains("nothing to format"));
    assert!(fmt(&place, &["absent.json"], 2).stderr.contains("there is no such file"));
    // A file that is named and is no document is not touched.
    assert!(fmt(&place, &["package.json"], 1).stderr.contains("error[L"));
    assert_eq!(text(&place, "package.json"), "{}");
}

#[cfg(unix)]
#[test]
fn permissions_stay_and_links_and_files_that_are_not_to_be_written_are_left_alone() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    let place = Place::new();
    let file = place.file("loops/a.json", LOOP);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(place.path().join("others")).unwrap();
    symlink(&file, place.path().join("others/link.json")).unwrap();
    // Found in a folder, a link is passed by; named, it is not written through.
    assert!(fmt(&place, &["others"], 2).stderr.contains("nothing to format"));
    assert!(fmt(&place, &["others/link.json"], 2).stderr.contains("this is a link"));
    assert_eq!(text(&place, "loops/a.json"), LOOP);
    assert_eq!(fmt(&place, &[], 0).stdout, "loops/a.json\n");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(place.path().join("others/link.json")).unwrap().is_symlink());
    // What is formatted is not written: its time stays.
    let before = fs::metadata(&file).unwrap().ino();
    fmt(&place, &[], 0);
    assert_eq!(fs::metadata(&file).unwrap().ino(), before);
    place.file("loops/b.json", LOOP);
    fs::set_permissions(place.path().join("loops/b.json"), fs::Permissions::from_mode(0o444)).unwrap();
    let ran = fmt(&place, &[], 2);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("its permissions say so"), "{ran:#?}");
    assert_eq!(text(&place, "loops/b.json"), LOOP);
}

#[test]
fn a_recording_keeps_the_layout_of_record() {
    let place = Place::new();
    let recording = fs::read_to_string(root().join("tests/record/recording.json")).unwrap();
    place.file("recording.json", &recording);
    place.file("a.json", FORMATTED);
    fmt(&place, &["--check"], 0);
    fmt(&place, &[], 0);
    assert_eq!(text(&place, "recording.json"), recording);
}

#[test]
fn the_examples_are_formatted() {
    let place = Place::new();
    let examples = root().join("examples");
    let ran = fmt(&place, &["--check", examples.to_str().unwrap()], 0);
    assert!(ran.stderr.contains("files already formatted"), "{ran:#?}");
}

/// Each JSON file of the tests and the examples that is a document: its text.
fn documents() -> Vec<(PathBuf, String)> {
    let mut folders = vec![root().join("examples"), root().join("tests")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "json")
                && let Ok(text) = fs::read_to_string(&path)
            {
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// What a document comes to, without the places and the text: its faults, and the program.
fn meaning(name: &str, text: &str) -> (BTreeMap<(String, String, String), usize>, String) {
    let source = Source::new(name, text);
    let examined = examine(&Texts::new(source.clone()), document::read(&source));
    let mut faults = BTreeMap::new();
    for Diagnostic { code, path, message, .. } in examined.diagnostics {
        *faults.entry((code.to_owned(), path, message)).or_default() += 1;
    }
    (faults, examined.program.map(|program| without_sources(&format!("{program:?}"))).unwrap_or_default())
}

/// The words that are shown of a program, sorted, because the order of its look-up tables is random; without the texts that
/// it was compiled from, which are those of its parts, too.
fn without_sources(program: &str) -> String {
    let mut parts = program.split("sources: [");
    let first = parts.next().unwrap_or_default().to_owned();
    let shown = parts.fold(first, |shown, part| shown + part.split_once("], levels: ").expect("the levels").1);
    let mut words: Vec<&str> = shown.split([' ', ',', '(', ')', '[', ']', '{', '}']).collect();
    words.sort_unstable();
    words.join(" ")
}

#[test]
fn each_document_of_the_tests_and_examples_means_the_same_once_formatted() {
    let (mut count, mut programs) = (0, 0);
    for (_, (path, text)) in documents().into_iter().enumerate().filter(|(nth, _)| is_sampled(*nth)) {
        let name = path.display().to_string();
        let source = Source::new(name.as_str(), text.as_str());
        let read = document::read(&source);
        let Some(kind) = read.kind.filter(|kind| *kind != DocumentKind::Recording) else { continue };
        let Ok(after) = formatted(&source, kind) else { continue };
        let again = formatted(&Source::new(name.as_str(), after.as_str()), kind).unwrap();
        assert_eq!(after, again, "{name}: formatted twice");
        let (old, new): (Value, Value) = (serde_json::from_str(&text).unwrap(), serde_json::from_str(&after).unwrap());
        assert_eq!(old, new, "{name}");
        let now = document::read(&Source::new(name.as_str(), after.as_str()));
        assert_eq!(now.kind, Some(kind), "{name}");
        assert_eq!(read.value, now.value, "{name}");
        let both = || (meaning(&name, &text), meaning(&name, &after));
        // What all programs share is compiled at its first use, which may be that of another test between the two: then both
        // are looked at again.
        let (before, after) = (0..20).map(|_| both()).find(|(before, after)| before == after).unwrap_or_else(both);
        assert_eq!(before, after, "{name}");
        count += 1;
        programs += usize::from(!before.1.is_empty());
    }
    assert!(count > 150 && programs > 30, "{count} documents, {programs} programs");
}
