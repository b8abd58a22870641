//! Parallel work keeps the order of its items, and the exit code says what was found.

use super::*;
use crate::cli::parallel::{each, each_of};
use crate::diagnostic::{Diagnostic, Source};

#[test]
fn what_is_done_on_all_cores_comes_back_in_order() {
    for count in [0, 1, 7, 8, 100, 1_000] {
        let done = each((0..count).collect(), |number| number * 2);
        assert_eq!(done, (0..count).map(|number| number * 2).collect::<Vec<_>>());
        let by_three = each_of(3, (0..count).collect(), |number| number * 2);
        assert_eq!(by_three, done);
    }
}

#[test]
fn the_exit_code_says_what_was_found() {
    let check = |deny_warnings| CheckCommand {
        connect: false,
        env: false,
        paths: vec![],
        format: ReportFormat::Json,
        deny_warnings,
        actions: vec![],
        fix: false,
    };
    let place = Source::new("x", "").whole();
    let found = |diagnostics: Vec<Diagnostic>, unreadable| Findings { diagnostics, unreadable, ..Findings::default() };
    let warning = Diagnostic::warning("L072", "x", "", place.clone());
    let error = Diagnostic::error("L010", "x", "", place);
    let fine = AppliedFixes::default();
    assert_eq!(check(false).exit(&found(vec![], false), &fine), Exit::Completed);
    assert_eq!(check(false).exit(&found(vec![warning.clone()], false), &fine), Exit::Completed);
    assert_eq!(check(true).exit(&found(vec![warning], false), &fine), Exit::Failed);
    assert_eq!(check(true).exit(&found(vec![], false), &fine), Exit::Completed);
    assert_eq!(check(false).exit(&found(vec![error.clone()], false), &fine), Exit::Failed);
    assert_eq!(check(false).exit(&found(vec![error], true), &fine), Exit::NoRun);
    assert_eq!(
        check(false).exit(&found(vec![], false), &AppliedFixes { failed: true, ..AppliedFixes::default() }),
        Exit::NoRun
    );
}
