//! `loopctl demo`: the example out of the program, in a folder of its own.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::{Place, Ran};

/// A place with an own folder for temporary files, and an empty one to call the program in.
struct DemoPlace {
    place: Place,
    temporary: PathBuf,
}

impl DemoPlace {
    fn new() -> Self {
        let place = Place::new();
        let temporary = place.path().join("tmp");
        for name in ["tmp", "here"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        Self { place, temporary }
    }

    fn call(&self, args: &[&str]) -> Ran {
        let mut command = self.place.command(args);
        command.env("TMPDIR", &self.temporary).current_dir(self.place.path().join("here"));
        crate::common::ran(&command.output().unwrap())
    }

    /// The folders that demos left.
    fn left(&self) -> usize {
        fs::read_dir(&self.temporary).unwrap().count()
    }
}

/// The arguments of the command that a run printed behind a label.
fn printed(text: &str, label: &str) -> Vec<String> {
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with(&format!("{label} ")))
        .unwrap_or_else(|| panic!("{text}"));
    let words = line.split_whitespace().skip(2);
    words.map(|word| word.trim_matches('\'').to_owned()).collect()
}

#[test]
fn a_ticket_is_answered_anywhere_and_its_run_can_be_shown() {
    let demo = DemoPlace::new();
    let ran = demo.call(&["demo"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("ch_5502"), "{}", ran.stdout);
    let trace = printed(&ran.stderr, "trace");
    let shown = demo.call(&trace.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("lookup_ticket"), "{}", shown.stdout);
    assert_eq!(fs::read_dir(demo.place.path().join("here")).unwrap().count(), 0, "nothing is written here");
}

#[cfg(unix)]
#[test]
fn the_folder_of_a_demo_is_private_and_found_from_everywhere() {
    use std::os::unix::fs::PermissionsExt as _;
    let demo = DemoPlace::new();
    assert_eq!(demo.call(&["demo"]).code, 0);
    let made = fs::read_dir(&demo.temporary).unwrap().next().unwrap().unwrap();
    assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    // From a folder around the one of the demo, too, its commands name it in full.
    let mut command = demo.place.command(&["demo"]);
    let ran = crate::common::ran(&command.env("TMPDIR", "tmp").output().unwrap());
    let trace = printed(&ran.stderr, "trace");
    let shown = demo.call(&trace.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(shown.code, 0, "{trace:?}: {}", shown.stderr);
    let left = demo.call(&["demo", "--write=-mine"]);
    assert!(left.code == 0 && left.stderr.contains("cd ./-mine\n"), "{}", left.stderr);
}

#[test]
fn a_refund_waits_for_an_approval_and_the_printed_command_gives_it() {
    let demo = DemoPlace::new();
    let ran = demo.call(&["demo", "TK-1044"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("refund_charge"), "{}", ran.stderr);
    let approve = printed(&ran.stderr, "approve");
    let mut words: Vec<&str> = approve.iter().map(String::as_str).collect();
    words.extend(["--output", "json"]);
    let resumed = demo.call(&words);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.json()["trace"].to_string().contains("refund_charge"), "{}", resumed.stdout);
    let store = words.iter().find_map(|word| word.strip_prefix("sqlite:")).unwrap();
    let support = rusqlite::Connection::open(PathBuf::from(store).with_file_name("support.db")).unwrap();
    let status: String =
        support.query_row("SELECT status FROM charges WHERE charge_id = 'ch_5447'", (), |row| row.get(0)).unwrap();
    assert_eq!(status, "refunded");
}

#[test]
fn a_question_is_answered_by_the_printed_command() {
    let demo = DemoPlace::new();
    let ran = demo.call(&["demo", "TK-1039"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let answer = printed(&ran.stderr, "answer");
    let words: Vec<&str> =
        answer.iter().map(|word| if word == "\"...\"" { "billing" } else { word.as_str() }).collect();
    let resumed = demo.call(&words);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stdout.contains("forwarded"), "{}", resumed.stdout);
}

#[test]
fn another_ticket_has_no_answer_and_a_text_that_is_none_no_run() {
    let demo = DemoPlace::new();
    let ran = demo.call(&["demo", "TK-1040", "--output", "json"]);
    let result = ran.json();
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(
        result["error"]["message"],
        "the script has no replies for this input; it has replies for ticket_id=TK-1042, ticket_id=TK-1044 and \
         ticket_id=TK-1039",
    );
    assert_eq!(result.get("result"), None, "{result}");
    let before = demo.left();
    for ticket in ["1042", "TK-1042 ", "{\"ticket_id\": \"TK-1042\"}", "\u{1b}[2J"] {
        let ran = demo.call(&["demo", ticket]);
        assert_eq!(ran.code, 2, "{ticket}: {}", ran.stderr);
        assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
    }
    assert_eq!(demo.left(), before, "without a run nothing is left");
}

#[test]
fn for_programs_there_is_only_the_result() {
    let demo = DemoPlace::new();
    let ran = demo.call(&["demo", "--output", "json"]);
    let result: Value = ran.json();
    assert_eq!((ran.code, &result["status"]), (0, &Value::from("completed")));
    assert!(!ran.stderr.contains("More:"), "{}", ran.stderr);
}

#[test]
fn the_files_are_left_where_they_are_wanted_and_nothing_is_written_over() {
    let demo = DemoPlace::new();
    let ran = demo.call(&["demo", "--write", "a/triage"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let folder = demo.place.path().join("here/a/triage");
    let call = |args: &[&str]| crate::common::ran(&demo.place.command(args).current_dir(&folder).output().unwrap());
    for args in [
        &["check", "--deny-warnings"][..],
        &["test"],
        &["run", "loop.json", "--input", "ticket_id=TK-1042"],
        &["run", "loop", "--input", "ticket_id=TK-1042"],
    ] {
        let ran = call(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    }
    fs::write(folder.join("loop.json"), "mine").unwrap();
    let again = demo.call(&["demo", "--write", "a/triage"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("nothing was written: loop.json, "), "{}", again.stderr);
    assert_eq!(fs::read_to_string(folder.join("loop.json")).unwrap(), "mine");
    let odd = demo.call(&["demo", "--write", "x\u{1b}[2Jy"]);
    assert!(odd.code == 0 && odd.stderr.contains("files into x\\u{1B}[2Jy"), "{}", odd.stderr);
    assert_eq!(demo.left(), 0);
}

#[test]
fn a_folder_that_can_not_be_written_is_named() {
    let demo = DemoPlace::new();
    demo.place.file("here/file", "");
    let ran = demo.call(&["demo", "--write", "file"]);
    assert!(ran.code == 2 && ran.stderr.contains("file is a file, and no folder"), "{}", ran.stderr);
    let mut command = demo.place.command(&["demo"]);
    let ran = crate::common::ran(&command.env("TMPDIR", "/no/such/folder").output().unwrap());
    assert!(
        ran.code == 2 && ran.stderr.contains("/no/such/folder") && ran.stderr.contains("--write"),
        "{}",
        ran.stderr
    );
}
