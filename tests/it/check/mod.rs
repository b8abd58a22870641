//! Every code of `check` is shown by cases: folders in `tests/check/CODE`. `fires` (and `fires-2`, ...) are
//! documents with that fault, and the report on them for people and for machines; `clean` are similar documents
//! that are sound. Every code also has a page, whose examples do what they say.
//!
//! `UPDATE_GOLDEN=1 cargo test --test it check::` writes the reports again: read the difference.

mod case;
mod page;
mod pairs;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use case::{Case, CaseReport, cases};
use loopctl::check::RULES;
use loopctl::diagnostic::codes::{self, Code, TABLE};
use loopctl::project;

/// Codes that no file can show, and why.
const UNSEEN: &[(&str, &str)] = &[
    ("L017", "only a schema that disagrees with its own type brings it: that would be a fault of ours"),
    ("L133", "it is about the environment, and only `check --env` reads it"),
];

/// Codes whose page shows no document, and why.
const UNWRITTEN: &[(&str, &str)] = &[
    ("L000", "it is about a file that is not there"),
    ("L058", "it is about a file that is not there"),
    ("L158", "it is about a file that is not there"),
    ("L002", "a page is UTF-8 itself"),
    ("L003", "an empty block shows nothing"),
    ("L009", "what is too large has no room on a page"),
    ("L017", "no document brings it"),
    ("L049", "so many loops have no room on a page"),
    ("L053", "what is too large has no room on a page"),
    ("L133", "it is about the environment, and a page has none"),
    ("L180", "it is about a database, and a page has none"),
    ("L181", "it is about a database, and a page has none"),
    ("L182", "it is about a file that is not there"),
    ("L184", "it is about a database, and a page has none"),
];

/// Cases where two errors are at one place, and why both are right.
const SHARED: &[(&str, &str)] = &[];

fn listed(list: &[(&str, &str)], name: &str) -> bool {
    list.iter().any(|(listed, _)| *listed == name)
}

fn must_be_empty(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn each_case_reports_what_its_golden_files_say() {
    let faults: Vec<String> = cases().iter().filter(|case| case.fires()).flat_map(Case::differences).collect();
    assert!(
        faults.is_empty(),
        "\n{}\nread it; if it is right: UPDATE_GOLDEN=1 cargo test --test it check::\n",
        faults.join("\n")
    );
}

#[test]
fn a_case_that_fires_has_its_code_and_a_clean_one_has_no_error() {
    let mut faults = Vec::new();
    for case in cases() {
        let report = case.report();
        let has = report.diagnostics.iter().any(|fault| fault.code == case.code);
        if case.fires() && !has {
            faults.push(format!("{}: {} is not reported", case.name(), case.code));
        }
        if !case.fires() && (has || report.diagnostics.iter().any(case::is_fault)) {
            faults.push(format!("{}: is not clean:\n{}", case.name(), report.human()));
        }
    }
    must_be_empty(&faults);
}

#[test]
fn a_whole_working_folder_in_the_folder_of_the_project_is_sound_and_another_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let case = Path::new("tests/check/L126/fires-whole");
    fs::copy(case.join("loopctl.json"), folder.path().join("loopctl.json")).unwrap();
    let document = fs::read_to_string(case.join("loop.json")).unwrap();
    let inside = folder.path().join("texts").display().to_string();
    let beside = format!("{}-other", folder.path().display());
    for (cwd, codes) in [(&inside, vec![]), (&beside, vec!["L126"])] {
        let file = folder.path().join("loop.json");
        fs::write(&file, document.replace("/srv/texts", cwd)).unwrap();
        let report = CaseReport::of("L126", &project::gather(&file, &[]).unwrap().texts, None);
        assert_eq!(report.diagnostics.iter().map(|fault| fault.code).collect::<Vec<_>>(), codes, "{cwd}");
    }
}

#[test]
fn every_code_has_a_page_and_cases_for_and_against_it() {
    let cases = cases();
    let mut faults = Vec::new();
    for Code { code, title, name, page, .. } in TABLE {
        if !page.starts_with(&format!("# {code}: {title}\n")) {
            faults.push(format!("{code}: its page does not begin with `# {code}: {title}`"));
        }
        let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.chars().all(named) {
            faults.push(format!("{code}: the name `{name}` is not in lower case with `-`"));
        }
        for fires in [true, false] {
            let shown = cases.iter().any(|case| case.code == *code && case.fires() == fires);
            if shown == listed(UNSEEN, code) {
                let which = if fires { "fires" } else { "clean" };
                faults.push(format!(
                    "{code}: {} in tests/check/{code}/{which}",
                    if shown { "a case" } else { "no case" }
                ));
            }
        }
    }
    must_be_empty(&faults);
}

#[test]
fn rules_are_in_the_order_of_their_codes_and_each_code_has_a_row_and_a_name_of_its_own() {
    assert!(RULES.iter().map(|rule| rule.code).is_sorted_by(|one, next| one < next));
    let strange: Vec<&str> = RULES.iter().map(|rule| rule.code).filter(|code| codes::find(code).is_none()).collect();
    assert_eq!(strange, [""; 0]);
    let mut names: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair.first() != pair.last()), "{names:?}");
}

#[test]
fn every_case_is_of_a_code_that_there_is() {
    let known = |code: &str| codes::find(code).is_some();
    let strange: Vec<String> = cases().iter().filter(|case| !known(&case.code)).map(Case::name).collect();
    must_be_empty(&strange);
}

#[test]
fn no_fault_is_reported_twice() {
    let mut faults = Vec::new();
    for case in cases() {
        let mut places: BTreeMap<_, Vec<(&str, bool)>> = BTreeMap::new();
        for fault in &case.report().diagnostics {
            let place = (fault.place.file.to_string(), fault.place.start, fault.place.end);
            places.entry(place).or_default().push((fault.code, fault.is_error()));
        }
        for (place, mut here) in places {
            let errors = here.iter().filter(|(_, error)| *error).count();
            let all = here.len();
            here.sort_unstable();
            here.dedup_by_key(|(code, _)| *code);
            if here.len() < all || (errors > 1 && !listed(SHARED, &case.name())) {
                faults.push(format!("{}: {here:?} at {place:?}", case.name()));
            }
        }
    }
    must_be_empty(&faults);
}

#[test]
fn a_suggestion_fixes_its_fault_and_brings_no_other_error() {
    let faults: Vec<String> = cases().iter().filter(|case| case.fires()).flat_map(Case::useless_suggestions).collect();
    must_be_empty(&faults);
}

#[test]
fn every_page_says_what_why_and_what_instead_and_its_examples_do_what_they_say() {
    let mut faults = Vec::new();
    for row in TABLE {
        faults.extend(page::faults(row, listed(UNWRITTEN, row.code)));
    }
    must_be_empty(&faults);
}

#[test]
fn the_lists_of_exceptions_are_not_stale() {
    for (name, _) in SHARED {
        assert!(cases().iter().any(|case| case.name() == *name), "there is no case {name}");
    }
    for (code, _) in UNSEEN.iter().chain(UNWRITTEN) {
        assert!(codes::find(code).is_some(), "there is no code {code}");
    }
}
