//! What `packaging/book` gives to mdbook, and to assistants that read Markdown: each page once, in `llms.txt` too, and
//! links that lead to files. The script itself checks the links and anchors of the html.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PYTHON: &str = "/usr/bin/python3";

/// The pages of the book in a folder; nothing where there is no Python.
fn written(folder: &Path) -> Option<()> {
    if !Path::new(PYTHON).exists() {
        eprintln!("skipped: {PYTHON}, for the book");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/book");
    let output = Command::new(PYTHON).arg(script).arg("--pages").arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|kind| kind == "md") && !path.ends_with("SUMMARY.md") {
            found.push(path);
        }
    }
    found
}

#[test]
fn each_page_is_in_the_book_and_its_links_lead_to_files() {
    let folder = tempfile::tempdir().unwrap();
    let Some(()) = written(folder.path()) else { return };
    let summary = fs::read_to_string(folder.path().join("SUMMARY.md")).unwrap();
    let index = fs::read_to_string(folder.path().join("llms.txt")).unwrap();
    let whole = fs::read_to_string(folder.path().join("llms-full.txt")).unwrap();
    assert!(index.starts_with("# loopctl\n\n> loopctl runs "), "{index}");
    let pages = pages(folder.path());
    let wanted = crate::readme::pages().len();
    assert!(pages.len() >= wanted, "{} of {wanted} pages: {pages:?}", pages.len());
    let mut links = 0;
    for path in pages {
        let name = path.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        for list in [&summary, &index] {
            assert_eq!(list.matches(&format!("]({name})")).count(), 1, "{name}:\n{list}");
        }
        assert!(whole.contains(text.trim()), "{name} is not whole in llms-full.txt");
        for rest in text.split("](").skip(1) {
            let target = rest.split([')', '#', ' ']).next().unwrap();
            if target.is_empty() || target.contains(':') {
                continue;
            }
            assert!(path.parent().unwrap().join(target).is_file(), "{name}: {target} is no file of the book");
            links += 1;
        }
    }
    assert!(links > 200, "only {links} links were found");
}

/// An index that says nothing of a page, or cuts a sentence, helps nobody.
#[test]
fn the_index_says_what_each_page_is_about() {
    let folder = tempfile::tempdir().unwrap();
    let Some(()) = written(folder.path()) else { return };
    let index = fs::read_to_string(folder.path().join("llms.txt")).unwrap();
    for line in index.lines().filter(|line| line.starts_with("- [")) {
        let about = line.split_once("): ").unwrap_or_else(|| panic!("{line}")).1;
        assert!(about.split_whitespace().count() > 3 && !about.contains("]("), "{line}");
    }
}
