//! What the rules read by themselves: queries, shells.

use crate::check::shell;
use crate::language::action::CommandAction;
use crate::policy::statement::{StatementEffect, verb};

#[test]
fn the_first_word_of_a_query_says_what_it_does() {
    let does = |query: &str| verb(query).map(|(does, range)| (does, query[range].to_owned()));
    let writes = |word: &str| Some((StatementEffect::Writes, word.to_owned()));
    assert_eq!(does("-- INSERT\n /* x */ delete from t"), writes("delete"));
    assert_eq!(does("WITH old AS (SELECT 1), \"x\" AS (SELECT 2) UPDATE t SET a = 1"), writes("UPDATE"));
    assert_eq!(does("WITH a AS (DELETE FROM t) SELECT 1").map(|(does, _)| does), Some(StatementEffect::Reads));
    assert_eq!(does("(SELECT 1)").map(|(does, _)| does), None);
    assert_eq!(does("SELECT replace(a, 'INSERT', '') FROM t").map(|(does, _)| does), Some(StatementEffect::Reads));
    for unsure in ["", "'", "/*", "--", "PRAGMA x", "CREATE TEMP TABLE t (a)", "EXPLAIN DELETE FROM t", "\u{e9}"] {
        assert_eq!(does(unsure), None, "{unsure}");
    }
}

#[test]
fn shells_are_known_by_what_they_are_given() {
    let found = |program: &str, args: &[&str]| {
        let command = serde_json::json!({ "action_name": "a", "program": program, "args": args });
        let command: CommandAction = serde_json::from_value(command).unwrap();
        shell::of(&command).map(|shell| (shell.name, shell.script, shell.all))
    };
    let some = |name: &str, script, all| Some((name.to_owned(), script, all));
    assert_eq!(found("/bin/sh", &["-c", "x"]), some("sh", 1, false));
    assert_eq!(found("bash", &["-e", "-lc", "x"]), some("bash", 2, false));
    assert_eq!(found("/usr/bin/env", &["-i", "A=1", "zsh", "-c", "x"]), some("zsh", 4, false));
    assert_eq!(found("C:\\Windows\\cmd.EXE", &["/C", "x"]), some("cmd", 1, true));
    assert_eq!(found("pwsh", &["-NoProfile", "-Command", "x"]), some("pwsh", 2, true));
    assert_eq!(found("sh", &["script.sh"]), None);
    assert_eq!(found("bash", &["--rcfile", "x"]), None);
    assert_eq!(found("python3", &["-c", "x"]), None);
    assert_eq!(found("env", &[]), None);
}
