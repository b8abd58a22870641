//! The gallery of wrong documents, `docs/gallery.md`: each with what `loopctl check` says of it today.

#![expect(clippy::disallowed_methods, reason = "a test's own switch comes from the environment")]

use std::path::Path;
use std::process::Command;

const PAGE: &str = "docs/gallery.md";
const HEAD: &str = "# Ten wrong documents

Documents of the kind that people write, and what `loopctl check` says of each: one fault, the one that it is about. The files
are in `tests/gallery/`, and beside them is `actions/orders.json` with the action `find_order`. This page is made from them and from the program's own output: `UPDATE_GOLDEN=1 cargo test --test it gallery::`.
";

/// The names of the documents, in their order.
fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir("tests/gallery")
        .expect("the gallery is there")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".json"))
        .collect();
    names.sort();
    names
}

/// What the program says of a document, and its exit code.
fn said(name: &str) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_loopctl"))
        .args(["check", name])
        .current_dir("tests/gallery")
        .env_clear()
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .output()
        .expect("it starts");
    (String::from_utf8(output.stderr).expect("text"), output.status.code())
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for name in names() {
        let words = name.trim_end_matches(".json").split_once('-').expect("a number").1.replace('-', " ");
        let title: String = words.chars().take(1).flat_map(char::to_uppercase).chain(words.chars().skip(1)).collect();
        let text = std::fs::read_to_string(Path::new("tests/gallery").join(&name)).expect("it is there");
        page.push_str(&format!("\n## {title}\n\n```text\n{text}```\n\n```text\n{}```\n", said(&name).0));
    }
    page
}

#[test]
fn every_document_of_the_gallery_is_refused_with_its_place() {
    let names = names();
    assert_eq!(names.len(), 10);
    for name in names {
        let (shown, code) = said(&name);
        assert_eq!(code, Some(1), "{name}: {shown}");
        assert!(shown.contains("error[L") && shown.contains(&name), "{name}: {shown}");
        assert!(!shown.contains("any of"), "{name}: {shown}");
    }
}

#[test]
fn every_document_of_the_gallery_reports_the_one_fault_that_it_is_about() {
    for (name, code) in
        names().iter().zip(["L006", "L030", "L010", "L013", "L012", "L054", "L050", "L031", "L106", "L142"])
    {
        let output = Command::new(env!("CARGO_BIN_EXE_loopctl"))
            .args(["check", "--format", "json", name])
            .current_dir("tests/gallery")
            .env_clear()
            .output()
            .expect("it starts");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let codes: Vec<&str> =
            report.as_array().into_iter().flatten().filter_map(|fault| fault["code"].as_str()).collect();
        assert_eq!(codes, [code], "{name}: {report:#}");
    }
}

#[test]
fn the_page_of_the_gallery_is_what_the_program_says() {
    let page = page();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(PAGE, &page).expect("it is written");
    }
    let there = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(there == page, "{PAGE} is stale: UPDATE_GOLDEN=1 cargo test --test it gallery::");
}
