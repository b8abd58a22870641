//! The workflows of Hyphen's pages, one a file in `tests/hyphen`: each says which page shows it and which words are ours,
//! because a page is cut off in what could be seen or because the words stand for its own. Each runs to its end and pauses
//! exactly where its file has a decision, with `max_concurrency` as it is written and with 7: the results are the same.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::Place;
use crate::run::hyphen_workflows::concurrent;
use crate::run::workflows::resume;

/// A page's workflow, with all that it needs.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    page: String,
    ours: String,
    document: Value,
    actions: Value,
    script: Value,
    input: Value,
    /// What a human does, by the address of the step that waits.
    decisions: BTreeMap<String, Vec<String>>,
    answer: Value,
}

fn pages() -> Vec<(String, Page)> {
    let folder = std::fs::read_dir("tests/hyphen").unwrap();
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let page = |file: &std::path::PathBuf| {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let page = serde_json::from_slice(&std::fs::read(file).unwrap());
        (name.clone(), page.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    files.iter().map(page).collect()
}

/// Runs a page's workflow to its end: what it answers.
fn answer(name: &str, page: &Page, document: &Value) -> Value {
    let place = Place::new();
    place.json("loop.json", document);
    place.json("actions/all.json", &page.actions);
    place.json("script.json", &page.script);
    place.json("input.json", &page.input);
    let (mut ran, mut result) = place.run(&["--run-id", "r", "--input-file", "input.json"]);
    let mut open = page.decisions.clone();
    while ran.code == 3 {
        let at = result["pause"]["steps"][0]["at"].as_str().unwrap_or_else(|| panic!("{name}: {result}")).to_owned();
        let how = open.remove(&at).unwrap_or_else(|| panic!("{name} pauses at {at}"));
        let how: Vec<&str> = how.iter().map(String::as_str).chain(["--at", at.as_str()]).collect();
        (ran, result) = resume(&place, &how);
    }
    assert_eq!(ran.code, 0, "{name}: {ran:#?}");
    assert!(open.is_empty(), "{name} does not pause at {open:?}");
    result["result"]["answer"].clone()
}

#[test]
fn each_workflow_of_the_pages_runs_to_its_end_whatever_max_concurrency_says() {
    let pages = pages();
    assert!(pages.len() >= 16, "{} pages", pages.len());
    for (name, page) in pages {
        assert!(!page.page.is_empty() && !page.ours.is_empty(), "{name} says where it is from");
        let written = answer(&name, &page, &page.document);
        assert_eq!(written, page.answer, "{name}");
        let mut document = page.document.clone();
        concurrent(&mut document, 7);
        assert_eq!(answer(&name, &page, &document), written, "{name} with 7 items at a time");
    }
}
