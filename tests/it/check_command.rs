//! `loopctl check` and `loopctl explain` as a user or a pipeline meets them: which files are checked, where
//! what is reported, and the exit code.

use crate::common::{ACTION, Place, Ran, SOUND, sound};
use rusqlite::Connection;
use serde_json::{Value, json};

fn check(place: &Place, args: &[&str], code: i32) -> Ran {
    let args: Vec<&str> = ["check"].iter().chain(args).copied().collect();
    let ran = place.call(&args);
    assert_eq!(ran.code, code, "{args:?}: {ran:#?}");
    assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("internal error"), "{ran:#?}");
    ran
}

fn report(place: &Place, args: &[&str], code: i32) -> Vec<Value> {
    let args: Vec<&str> = ["--format", "json"].iter().chain(args).copied().collect();
    let ran = check(place, &args, code);
    assert_eq!(ran.stdout.lines().count(), 1, "one line: {ran:#?}");
    ran.json().as_array().expect("an array").clone()
}

fn codes(faults: &[Value]) -> Vec<(&str, &str)> {
    faults.iter().map(|fault| (fault["code"].as_str().unwrap(), fault["file"].as_str().unwrap())).collect()
}

#[test]
fn a_sound_folder_is_sound_in_every_format() {
    let place = sound();
    let human = check(&place, &[], 0);
    assert_eq!((human.stdout.as_str(), human.stderr.as_str()), ("", "no errors or warnings in 2 files\n"));
    assert_eq!(check(&place, &["loops/a.json"], 0).stderr, "no errors or warnings in 1 file\n");
    assert_eq!(check(&place, &["--format", "json"], 0).stdout, "[]\n");
    assert_eq!(check(&place, &["--format", "github"], 0).stdout, "");
    let log: Value = check(&place, &["--format", "sarif"], 0).json();
    assert_eq!((&log["version"], &log["runs"][0]["results"]), (&json!("2.1.0"), &json!([])));
}

#[test]
fn a_scripted_call_of_a_workflow_that_no_document_of_the_folder_is_has_the_nearest_id() {
    let place = sound();
    let call = |id: &str| json!({ "action": "__run_workflow__", "action_input": { "workflow_id": id } });
    place.json("script.json", &json!({ "replies": [call("wf_refnd"), call("wf_refund"), { "answer": "done" }] }));
    check(&place, &[], 0);
    place.file("workflows/refund.json", r#"{"name": "refund", "id": "wf_refund", "definition": {"actions": []}}"#);
    let faults = report(&place, &[], 1);
    let errors: Vec<&Value> = faults.iter().filter(|fault| fault["severity"] == "error").collect();
    assert_eq!(errors.len(), 1, "{faults:#?}");
    assert_eq!(
        (&errors[0]["code"], &errors[0]["path"]),
        (&json!("L056"), &json!("/replies/0/action_input/workflow_id"))
    );
    assert_eq!(errors[0]["help"], "the nearest one is `wf_refund`");
}

#[test]
fn a_script_that_the_project_names_is_checked_in_a_folder_whatever_is_in_it() {
    let place = sound();
    let model = json!({ "provider": "script", "script": "replies.json" });
    place.json("loopctl.json", &json!({ "model": "m", "models": { "m": model } }));
    place.json("replies.json", &json!({ "replies": [{ "tool": "search", "input": {} }] }));
    place.json("other.json", &json!({ "replies": [{ "tool": "search", "input": {} }] }));
    assert_eq!(codes(&report(&place, &[], 0)), [("L021", "replies.json")]);
}

#[test]
fn what_init_makes_now_and_an_older_file_lacks_is_said_to_be_of_a_new_file_only() {
    let place = Place::new();
    place.json("loopctl.json", &json!({ "datasources": { "shop": { "url": "sqlite:shop.db", "init": "shop.sql" } } }));
    place.file("shop.sql", "CREATE TABLE orders (id INTEGER);");
    Connection::open(place.path().join("shop.db")).unwrap().execute_batch("CREATE TABLE orders (id INTEGER)").unwrap();
    let query = |name: &str, query: &str| json!({ "action_name": name, "kind": "db", "description": "Reads.", "datasource": "shop", "query": query });
    let actions = json!([query("new", "SELECT paid FROM orders"), query("lost", "SELECT gone FROM orders")]);
    place.json("actions/shop.json", &actions);
    let definition = json!({ "actions": [{ "type": "new" }, { "type": "lost" }] });
    place.json("flow.json", &json!({ "name": "flow", "definition": definition }));
    let helps = || -> Vec<String> {
        let faults = report(&place, &["flow.json"], 0);
        faults.iter().map(|fault| fault["help"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(helps(), ["there are id", "there are id"]);
    place.file("shop.sql", "CREATE TABLE orders (id INTEGER, paid REAL);");
    let [new, lost] = helps().try_into().unwrap();
    assert!(new.starts_with("`init` runs only when the file is not there yet: shop.sql makes it now"), "{new}");
    assert_eq!(lost, "there are id");
}

#[test]
fn a_fault_has_every_field_that_is_promised_and_no_other() {
    let place = sound();
    place.file("loops/a.json", SOUND.replace("\"mode\"", "\"mod\\u0065\": \"react\", \"mode\""));
    let faults = report(&place, &["loops/a.json"], 1);
    let fields: Vec<&str> = faults[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "code",
            "severity",
            "message",
            "path",
            "file",
            "line",
            "column",
            "end_line",
            "end_column",
            "help",
            "suggestion",
            "related"
        ]
    );
    assert_eq!((&faults[0]["code"], &faults[0]["severity"]), (&json!("L008"), &json!("error")));
    assert_eq!(faults[0]["related"][0]["line"], 1);
}

#[test]
fn files_of_other_tools_are_passed_by_in_a_folder_and_judged_when_they_are_named() {
    let place = sound();
    place.file("package.json", r#"{"name": "x", "scripts": {"loop": "objective"}}"#);
    place.file("tsconfig.json", "{ // replies\n \"compilerOptions\": {},}");
    place.file("data/rows.json", "[1, 2, 3]");
    place.file("data/broken.json", "{\"a\": ");
    place.file("wide.json", b"\xff\xfe{\0}\0");
    place.file("schemas/loop.json", place.call(&["schema", "loop"]).stdout);
    place.file("node_modules/x/loop.json", "{\"type\": \"loop\"}");
    place.file(".hidden/loop.json", "{\"type\": \"loop\"}");
    let ran = check(&place, &["."], 0);
    assert_eq!(ran.stderr, "no errors or warnings in 2 files (6 other JSON files skipped)\n");
    assert_eq!(codes(&report(&place, &["package.json"], 1)), [("L016", "package.json")]);
    assert_eq!(codes(&report(&place, &["wide.json"], 1)), [("L002", "wide.json")]);
    assert_eq!(codes(&report(&place, &[".hidden"], 1))[0].1, ".hidden/loop.json");
}

#[test]
fn a_document_of_ours_is_not_passed_by_for_a_fault_in_it() {
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain(SOUND.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for (text, code) in [
        (SOUND.replacen('{', "", 1).into_bytes(), "L001"),
        (SOUND.replace("\"loop\"", "\"lop\"").into_bytes(), "L012"),
        (SOUND.replace("}]}}", "").into_bytes(), "L001"),
        (SOUND.replace("\"properties\"", "\"propertys\"").into_bytes(), "L010"),
        (wide, "L002"),
    ] {
        let place = sound();
        place.file("loops/a.json", text);
        let faults = report(&place, &[], 1);
        assert!(faults.iter().any(|fault| fault["code"] == code), "{code}: {faults:?}");
    }
}

#[test]
fn a_fault_of_a_file_that_ten_loops_use_is_reported_once_and_names_are_found_across_folders() {
    let place = Place::new();
    place.file("loopctl.json", "{}");
    place.file("actions/look.json", ACTION.replace("example.com/x", "example.com/{{x.}}"));
    for number in 0..10 {
        place.file(&format!("teams/{number}/loop.json"), SOUND);
    }
    assert_eq!(codes(&report(&place, &[], 1)), [("L050", "actions/look.json")]);
    // The same, by whatever name it is reached.
    let one = report(&place, &["teams/1/loop.json"], 1);
    let two = report(&place, &["teams/1/loop.json", "teams/2/loop.json"], 1);
    assert_eq!(one, two);
    assert!(check(&place, &[], 1).stderr.ends_with("\n1 error in 12 files\n"));
}

#[test]
fn an_action_is_judged_by_the_project_that_it_belongs_to_and_by_none_where_there_is_none() {
    let place = Place::new();
    let action = ACTION.replace("\"url\"", "\"headers\": {\"X-Key\": \"orgconfig:desk\"}, \"url\"");
    place.file("actions/look.json", action);
    check(&place, &[], 0);
    place.file("loopctl.json", r#"{"orgconfig": {"dusk": "env:DESK"}}"#);
    assert_eq!(codes(&report(&place, &[], 1)), [("L041", "actions/look.json")]);
    // A loop that uses it meets the same fault, and it is still reported once.
    place.file("a.json", SOUND);
    assert_eq!(codes(&report(&place, &[], 1)), [("L041", "actions/look.json")]);
    place.file("loopctl.json", r#"{"orgconfig": {"desk": "env:DESK"}}"#);
    check(&place, &[], 0);
}

#[test]
fn every_kind_of_document_is_judged_as_what_it_is() {
    let place = sound();
    place.file("loopctl.json", r#"{"modls": {}}"#);
    place.file("script.json", r#"{"replies": [{"thought": "x", "action": "y"}], "tool": {}}"#);
    place.file(
        "loops/actions/unused.json",
        r#"[{"action_name": "unused", "kind": "http", "url": "https://example.com/{{", "http_method": "GET"}]"#,
    );
    place.file("request.json", r#"{"objective": "x", "tools": [{"type": "action", "name": "nothing"}]}"#);
    let faults = report(&place, &[], 1);
    let mut all = codes(&faults);
    all.sort_unstable();
    assert_eq!(
        all,
        [
            ("L010", "loopctl.json"),
            ("L010", "script.json"),
            ("L030", "request.json"),
            ("L050", "loops/actions/unused.json"),
            ("L072", "loops/actions/unused.json")
        ]
    );
}

#[test]
fn the_report_is_the_same_every_time_and_in_the_order_of_the_files() {
    let place = Place::new();
    for name in ["b/z.json", "b/a.json", "a.json", "c/d/e.json", "c/d.json"] {
        place.file(name, SOUND.replace("objective", "objectiv"));
    }
    let first = check(&place, &["--format", "json"], 1).stdout;
    for _ in 0..5 {
        assert_eq!(check(&place, &["--format", "json"], 1).stdout, first);
    }
    let faults = report(&place, &[], 1);
    let mut files: Vec<&str> = codes(&faults).into_iter().map(|(_, file)| file).collect();
    files.dedup();
    assert_eq!(files, ["a.json", "b/a.json", "b/z.json", "c/d/e.json", "c/d.json"]);
}

#[test]
fn warnings_are_no_fault_unless_they_are_denied() {
    let place = sound();
    place.file("loops/actions/look.json", ACTION.replace(r#""description": "Looks.", "#, ""));
    assert!(check(&place, &[], 0).stderr.ends_with("\n1 warning in 2 files\n"));
    check(&place, &["--deny-warnings"], 1);
    check(&place, &["--deny-warnings", "--format", "sarif"], 1);
    // A run reports each of them in one line.
    let ran = place.call(&["run", "loops/a.json", "--script", "no.json"]);
    let line = "warning[L072] loops/actions/look.json:1:17: the action `look` has no description; `loopctl check loops/a.json` shows the details";
    assert_eq!(ran.stderr.lines().next(), Some(line));
}

#[test]
fn stdin_is_a_document() {
    let place = Place::new();
    place.file("actions/look.json", ACTION);
    let ran = place.call_reading(&["check", "-"], SOUND.as_bytes());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "no errors or warnings in 1 file\n"));
    let ran = place.call_reading(&["check", "-", "--format", "github"], b"{\"type\": \"loop\"");
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.starts_with("::error file=-,line=1,"), "{ran:#?}");
    assert_eq!(place.call_reading(&["check", "-", "--fix"], SOUND.as_bytes()).code, 2);
    assert_eq!(place.call_reading(&["check", "-"], b"\xff").code, 1);
}

#[test]
fn named_actions_are_found_and_their_faults_reported() {
    let place = Place::new();
    place.file("a.json", SOUND);
    place.file("more.json", ACTION);
    check(&place, &["a.json"], 1);
    check(&place, &["a.json", "--actions", "more.json"], 0);
    place.file("more.json", ACTION.replace("\"GET\"", "\"GETT\""));
    assert_eq!(codes(&report(&place, &["a.json", "--actions", "more.json"], 1))[0], ("L012", "more.json"));
    assert!(check(&place, &["a.json", "--actions", "gone.json"], 2).stderr.contains("gone.json"));
}

#[test]
fn wrong_arguments_and_paths_that_can_t_be_read_end_with_2() {
    let place = sound();
    check(&place, &["--format", "xml"], 2);
    check(&place, &["--no-such"], 2);
    assert!(check(&place, &["gone.json"], 2).stderr.contains("there is no such file"));
    // What can be read is judged all the same.
    place.file("bad.json", "{\"type\": \"loop\"}");
    let faults = report(&place, &["gone", "bad.json"], 2);
    assert_eq!(codes(&faults)[0], ("L000", "gone"));
    assert!(faults.len() > 1, "{faults:?}");
    let empty = Place::new();
    assert!(check(&empty, &[], 2).stderr.contains("nothing to check in .: it contains no JSON file"));
    empty.file("package.json", "{}");
    assert!(check(&empty, &["--format", "json"], 2).stderr.contains("its only JSON file is not a document of loopctl"));
}

#[cfg(unix)]
#[test]
fn pipes_and_links_are_not_followed_out_of_the_folder() {
    let place = sound();
    place.file("outside/bad.json", "{\"type\": \"loop\"}");
    std::os::unix::fs::symlink(place.path().join("outside"), place.path().join("loops/out")).unwrap();
    std::os::unix::fs::symlink(place.path().join("outside/bad.json"), place.path().join("loops/bad.json")).unwrap();
    let pipe = place.path().join("loops/pipe.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(check(&place, &["loops"], 0).stderr, "no errors or warnings in 2 files\n");
    assert!(check(&place, &["loops/pipe.json"], 2).stderr.contains("no regular file"));
}

const WRONG: &str = r#"{
  "type": "loop",
  "properties": {
    "mode": "react",
    "objective": "Do it.",
    "max_iteration": "10", // ten
    "tools": ["__complete__", {"type": "action", "name": "loook_at"},],
    "on_stuck": {"action": "escalte"},
    "timeout": 30000
  }
}
"#;

#[test]
fn fix_applies_what_has_one_reading_says_so_and_finds_nothing_the_second_time() {
    let place = Place::new();
    let file = place.file("a.json", WRONG);
    place.file("actions/look.json", ACTION.replace("\"look\"", "\"look_at\""));
    let first = check(&place, &["--fix"], 1);
    assert!(
        first.stderr.starts_with("fixed[L010] a.json:6:5: \"max_iteration\" is \"max_iterations\" now\n"),
        "{first:#?}"
    );
    assert!(first.stderr.contains("fixed[L007] a.json:6:28: took out // ten\n"), "{first:#?}");
    assert!(first.stderr.ends_with("1 error in 2 files; 7 faults fixed in 1 file\n"), "{first:#?}");
    let fixed = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        fixed,
        r#"{
  "type": "loop",
  "properties": {
    "mode": "react",
    "objective": "Do it.",
    "max_iterations": 10,
    "tools": [{"type": "action", "name": "look_at"}],
    "on_stuck": {"action": "escalate"},
    "timeout": 30000
  }
}
"#
    );
    let second = check(&place, &["--fix"], 1);
    assert!(!second.stderr.contains("fixed"), "{second:#?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), fixed);
    assert_eq!(codes(&report(&place, &["--fix"], 1)), [("L010", "a.json")]);
}

#[test]
fn fix_touches_no_file_that_is_not_named() {
    let place = Place::new();
    let named = place.file("a.json", WRONG);
    let other = place.file("b.json", WRONG);
    let wrong = ACTION.replace("\"look\"", "\"look_at\"").replace("GET", "GETT");
    let shared = place.file("actions/look.json", &wrong);
    check(&place, &["--fix", "a.json"], 1);
    assert_ne!(std::fs::read_to_string(named).unwrap(), WRONG);
    assert_eq!(std::fs::read_to_string(other).unwrap(), WRONG);
    assert_eq!(std::fs::read_to_string(shared).unwrap(), wrong);
}

#[cfg(unix)]
#[test]
fn fix_keeps_permissions_and_leaves_links_and_protected_files_as_they_are() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let file = place.file("real/a.json", WRONG);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o444)).unwrap();
    assert!(check(&place, &["--fix", "real"], 2).stderr.contains("permissions"));
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("real/a.json", place.path().join("link.json")).unwrap();
    assert!(check(&place, &["--fix", "link.json"], 2).stderr.contains("link"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), WRONG);
    check(&place, &["--fix", "real/a.json"], 1);
    assert_ne!(std::fs::read_to_string(&file).unwrap(), WRONG);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(place.path().join("real")).unwrap().count(), 1);
}

#[test]
fn hostile_names_and_texts_forge_nothing() {
    let place = Place::new();
    let name = "a\n::error::forged\u{1b}[2J.json";
    place.file(name, SOUND.replace("mode", "m\\u000a::error::forged\\u001b[2J"));
    for format in ["github", "json", "sarif", "human"] {
        let ran = check(&place, &["--format", format], 1);
        let all = ran.stdout + &ran.stderr;
        assert!(!all.contains('\u{1b}') && !all.lines().any(|line| line.starts_with("::error::")), "{format}: {all}");
    }
}

#[test]
fn any_bytes_give_a_report_and_no_panic() {
    let place = sound();
    for bytes in [
        &b""[..],
        b"\0",
        b"{",
        b"[",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"{\"type\":\"loop\",\"properties\":",
        b"[[[[{\"a\":1}",
        b"\"",
        b"nul",
    ] {
        place.file("case.json", bytes);
        for format in ["human", "json", "sarif", "github"] {
            check(&place, &["case.json", "--format", format], 1);
        }
        check(&place, &["case.json", "--fix"], 1);
    }
}

#[test]
fn explain_prints_pages_and_the_list_and_knows_what_is_near() {
    let place = Place::new();
    let page = place.call(&["explain", "l012"]);
    assert_eq!(page.code, 0);
    assert!(page.stdout.starts_with("# L012: "), "{page:#?}");
    let list = place.call(&["explain"]);
    assert_eq!(list.code, 0);
    assert!(list.stdout.lines().any(|line| line == "L012  Value not in the list of allowed values"), "{list:#?}");
    let unknown = place.call(&["explain", "L0I2"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (2, ""));
    assert!(unknown.stderr.contains("L012"), "{unknown:#?}");
    for row in loopctl::diagnostic::codes::TABLE {
        assert_eq!(place.call(&["explain", row.code]).code, 0, "{}", row.code);
    }
}

/// A workflow with one step, which has `more` beside its type and its properties.
fn with_step(more: &str) -> Place {
    let place = sound();
    let action = json!({"action_name": "note", "kind": "http", "description": "Notes.", "url": "https://x.example/{{t}}",
                        "http_method": "POST"});
    place.json("actions/note.json", &action);
    place.file(
        "w.json",
        format!(
            r#"{{"name": "w", "input": {{"type": "object", "properties": {{"n": {{"type": "number"}}, "l": {{"type": "array"}}}},
            "required": ["n", "l"]}}, "definition": {{"actions": [
            {{"type": "loop", "properties": {{"mode": "foreach", "items_path": "@input.l", "item_variable_name": "x",
              "actions_to_execute": [{{"type": "note", "properties": {{"t": "big"}}, {more}}}]}}}},
            {{"type": "note", "properties": {{"t": "big"}}, {more}}}]}}}}"#
        ),
    );
    place
}

fn text(place: &Place) -> String {
    std::fs::read_to_string(place.path().join("w.json")).unwrap()
}

#[test]
fn the_condition_of_a_step_is_shown_in_its_filter_wherever_it_is_written() {
    let filter = r#""filter": {"condition": {"greaterThan": ["@input.n", 100]}}"#;
    for more in [
        r#""filter": "@input.n > 100""#,
        r#""filter": {"greaterThan": ["@input.n", 100]}"#,
        r#""condition": {"greaterThan": ["@input.n", 100]}"#,
        r#""if": {"greaterThan": ["@input.n", 100]}"#,
        r#""when": {"greaterThan": ["@input.n", 100]}"#,
        r#""if": "@input.n > 100""#,
        r#""when": {"condition": {"greaterThan": ["@input.n", 100]}}"#,
    ] {
        let place = with_step(more);
        let faults = report(&place, &["w.json"], 1);
        assert_eq!(faults.len(), 2, "{more}: {faults:#?}");
        for fault in &faults {
            assert!(!fault["help"].as_str().unwrap().contains("belongs"), "{more}: {fault:#}");
            let suggestion = &fault["suggestion"];
            let at = |name: &str| usize::try_from(suggestion[name].as_u64().unwrap()).unwrap();
            let mut fixed = text(&place);
            fixed.replace_range(at("start")..at("end"), suggestion["replacement"].as_str().unwrap());
            assert!(fixed.contains(filter), "{more}: {fixed}");
        }
    }
    assert_eq!(report(&with_step(filter), &["w.json"], 0), Vec::<Value>::new());
}

#[test]
fn a_question_mark_that_makes_a_path_a_text_is_named_with_what_is_meant() {
    let place = sound();
    place.json(
        "actions/note.json",
        &json!({"action_name": "note", "kind": "http", "description": "Notes.", "url": "https://x.example/",
            "http_method": "POST"}),
    );
    let suggested = |steps: Value| -> Vec<(String, Value)> {
        let input = json!({"type": "object", "properties": {"o": {"type": "string"}, "n": {"type": "number"},
            "l": {"type": "array"}, "m": {"type": "array"}}, "required": ["n", "l", "m"]});
        place.json("w.json", &json!({"name": "w", "input": input, "definition": {"actions": steps}}));
        let checked = place.call(&["check", "--format", "json", "w.json"]).json();
        let of =
            |fault: &Value| (fault["code"].as_str().unwrap().to_owned(), fault["suggestion"]["replacement"].clone());
        checked.as_array().unwrap().iter().map(of).collect()
    };
    let note = |value: &str| json!({"type": "note", "properties": {"t": value}});
    let asks = |comment: &str| json!({"type": "PbotApproval", "properties": {"comment": comment}});
    let l057 = |meant: &str| vec![("L057".to_owned(), json!(format!("\"{meant}\"")))];
    assert_eq!(suggested(json!([asks("Go?"), note("@__approved?")])), l057("@__approved"));
    assert_eq!(suggested(json!([note("@n?")])), l057("@input.n?"));
    assert_eq!(suggested(json!([note("@input.o?")])), vec![]);
    assert_eq!(suggested(json!([note("@anna?")])), vec![]);
    let shown = json!("\"{{#if input.o}}{{input.o}}{{/if}}\"");
    assert_eq!(suggested(json!([asks("@input.o?")])), [("L143".to_owned(), shown.clone())]);
    let agent = json!({"type": "loop", "properties": {"mode": "react", "objective": "@input.o?",
        "tools": [{"type": "action", "name": "note"}]}});
    assert_eq!(suggested(json!([agent])), [("L057".to_owned(), shown)]);
    // A name of one letter is near to none.
    assert_eq!(suggested(json!([note("@x")])), [("L054".to_owned(), Value::Null)]);
    // The name of a field is no path, so that none is shown in its place.
    let matched =
        json!({"type": "matcher", "properties": {"left": "@input.l", "right": "@input.m", "matchOn": ["@ll"]}});
    assert_eq!(suggested(json!([matched])), [("L054".to_owned(), Value::Null)]);
    let table = |properties: Value| json!({"type": "custom-table", "properties": properties});
    for properties in [
        json!({"table": "@input.o?", "operation": "read"}),
        json!({"table": "t", "operation": "read", "keys": ["@input.o?"], "values": [1]}),
        json!({"table": "t", "operation": "read", "keys": ["a"], "values": ["@input.o?"]}),
        json!({"table": "t", "operation": "update", "keys": ["a"], "values": [1], "fields": {"o": "@input.o?"}}),
    ] {
        let found = suggested(json!([table(properties.clone())]));
        assert!(found.iter().any(|(code, _)| code == "L143"), "{properties}: {found:?}");
    }
}

#[test]
fn what_fix_writes_is_never_an_error() {
    let place = with_step(r#""filter": "@input.n > 100""#);
    check(&place, &["--fix", "w.json"], 0);
    assert!(text(&place).contains(r#""filter": {"condition": {"greaterThan": ["@input.n", 100]}}"#));
    // A list of objects is none of texts: nothing is suggested, and nothing is written.
    let form = |keys: &str| {
        let place = sound();
        let step = format!(r#"{{"type": "PbotForm", "properties": {{"expected_keys": {keys}}}}}"#);
        place.file("w.json", format!(r#"{{"name": "w", "definition": {{"actions": [{step}]}}}}"#));
        place
    };
    let object = form(r#"{"go": "boolean"}"#);
    let before = text(&object);
    let faults = report(&object, &["w.json"], 1);
    assert_eq!((&faults[0]["code"], &faults[0]["suggestion"]), (&json!("L013"), &Value::Null), "{faults:#?}");
    check(&object, &["--fix", "w.json"], 1);
    assert_eq!(text(&object), before);
    let one = form(r#""go""#);
    check(&one, &["--fix", "w.json"], 0);
    assert!(text(&one).contains(r#"["go"]"#), "{}", text(&one));
}

#[test]
fn an_error_of_a_document_is_not_repeated_for_each_of_its_scenario_files() {
    let place = sound();
    place.file("w.json", r#"{"name": "w", "definition": {"actions": [{"type": "no_such_action"}]}}"#);
    for name in ["one.test.json", "two.test.json"] {
        place.file(name, r#"{"document": "w.json", "scenarios": [{"name": "s", "expect": {"status": "completed"}}]}"#);
    }
    let files = |faults: Vec<Value>| faults.iter().map(|fault| fault["file"].clone()).collect::<Vec<_>>();
    assert_eq!(files(report(&place, &[], 1)), [json!("w.json")]);
    assert_eq!(files(report(&place, &["one.test.json"], 1)), [json!("one.test.json")]);
}

#[test]
fn a_file_that_is_ours_by_its_place_or_name_is_checked_whatever_is_in_it() {
    let sound = || {
        let place = Place::new();
        place.file("loopctl.json", "{}");
        place.file("loop.json", SOUND);
        place.file("actions/look.json", ACTION);
        place
    };
    for (name, text, code) in [
        ("refund.test.json", r#"{"document": "loop.json", "scenario": [{"name": "n", "expect": {}}]}"#, "L016"),
        ("refund.test.json", "", "L003"),
        ("tests/refund.test.json", "[{}]", "L011"),
        ("actions/x.json", "", "L003"),
        ("loops/a.json", "\n", "L003"),
        ("workflows/b.json", r#"{"name": "b", "steps": {}}"#, "L016"),
        ("other.json", "", "L003"),
        ("other.json", r#"{"name": "b", "definiton": {"actions": []}}"#, "L016"),
        ("other.json", r#"{"type": "agent", "properties": {"objective": "x", "tools": []}}"#, "L016"),
    ] {
        let place = sound();
        place.file(name, text);
        let faults = report(&place, &[], 1);
        assert!(faults.iter().any(|fault| fault["code"] == code && fault["file"] == name), "{name} {text}: {faults:?}");
    }
    let place = sound();
    for name in ["package.json", "data/rows.json", "tests/empty.json"] {
        place.file(name, if name.starts_with("tests") { "" } else { "{\"x\": 1}" });
    }
    place.file("mcp.lock.json", "{}");
    let skipped = "(3 other JSON files skipped: data/rows.json, package.json, tests/empty.json)";
    let ran = check(&place, &[], 0);
    assert_eq!(ran.stderr, format!("no errors or warnings in 3 files {skipped}\n"));
    // What a project names as its data is no document of its folder.
    place.file("loopctl.json", r#"{"documents": {"rows": "loops/rows.json"}}"#);
    place.file("loops/rows.json", "[{\"id\": 1}]");
    let ran = check(&place, &[], 0);
    assert_eq!(ran.stderr, "no errors or warnings in 3 files (4 other JSON files skipped)\n");
    // A folder of this name that is a project itself may hold other files.
    let place = Place::new();
    place.file("loops/loopctl.json", "{}");
    place.file("loops/a.json", SOUND);
    place.file("loops/actions/look.json", ACTION);
    place.file("loops/other.json", "{\"x\": 1}");
    check(&place, &[], 0);
    // Deeper in a project, such a folder may be another tool's.
    let place = sound();
    place.file("packages/actions/package.json", r#"{"name": "x"}"#);
    place.file("n8n/workflows/flow.json", r#"{"nodes": [], "connections": {}}"#);
    check(&place, &[], 0);
    // Without a project or a document beside it, such a folder is another tool's.
    let place = Place::new();
    place.file("a/loop.json", SOUND);
    place.file("a/actions/look.json", ACTION);
    place.file("n8n/workflows/flow.json", r#"{"nodes": [], "connections": {}}"#);
    check(&place, &[], 0);
}

#[test]
fn the_key_of_a_model_is_reported_where_the_model_is_named() {
    let place = Place::new();
    place.file("loop.json", SOUND.replacen("\"mode\"", "\n\"model\": \"gpt-4o-mini\",\n\"mode\"", 1));
    place.file("actions/look.json", ACTION);
    let ran = place.call(&["check", "--env", "--format", "json", "loop.json"]);
    let faults: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    let key = faults.iter().find(|fault| fault["code"] == "L133").unwrap_or_else(|| panic!("{ran:#?}"));
    assert_eq!(key["line"], 2, "{key}");
}

#[test]
fn the_types_that_have_a_field_are_each_named_once() {
    let place = sound();
    let step = r#"{"type": "choose", "cases": [{"steps": []}], "timeout_ms": 1000}"#;
    place.file("workflows/w.json", format!(r#"{{"name": "w", "definition": {{"actions": [{step}]}}}}"#));
    let faults = report(&place, &["workflows/w.json"], 1);
    let help =
        faults.iter().find_map(|fault| fault["help"].as_str().filter(|help| help.contains("is a field of type")));
    assert_eq!(help.map(|help| help.matches("`loop`").count()), Some(1), "{faults:#?}");
}

#[test]
fn an_answer_that_may_be_an_older_one_or_none_is_reported_of_each_question() {
    let asks = |mut step: Value, key: Option<&str>, filter: Option<Value>| {
        if let Some(key) = key {
            step["outputKey"] = key.into();
        }
        if let Some(condition) = filter {
            step["filter"] = json!({ "condition": condition });
        }
        step
    };
    let approval =
        || json!({ "type": "PbotApproval", "properties": { "comment": "Go?", "request_payload": { "go": true } } });
    let form = || json!({ "type": "PbotForm", "properties": { "expected_keys": ["ok"] } });
    let event = |name: &str| json!({ "type": "wait_for_event", "properties": { "event": name } });
    let large = || Some(json!({ "greaterThan": ["@input.n", 5] }));
    let small = || Some(json!({ "lessOrEqual": ["@input.n", 5] }));
    let post = |condition: Value| {
        asks(json!({ "type": "PbotForm", "properties": { "expected_keys": ["posted"] } }), None, Some(condition))
    };
    let is = |path: &str| json!({ "equal": [path, true] });
    let not_no = |path: &str| json!({ "notEqual": [path, false] });
    let place = Place::new();
    let reported = |steps: Value| {
        let input = json!({ "type": "object", "properties": { "n": { "type": "number" } }, "required": ["n"] });
        place.json("w.json", &json!({ "name": "w", "input": input, "definition": { "actions": steps } }));
        let faults = place.call(&["check", "--format", "json", "w.json"]).json();
        let faults = faults.as_array().expect("an array").iter().filter(|fault| fault["code"] == "L163");
        faults.map(|fault| fault["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let case = json!({ "type": "choose", "cases": [{ "when": large(), "steps": [approval()] }] });
    let chosen = json!({ "type": "choose", "cases": [{ "when": not_no("@__approved"), "steps": [form()] }] });
    for (steps, words) in [
        (json!([approval(), asks(approval(), None, large()), post(is("@__approval_data.go"))]), "older"),
        (
            json!([asks(approval(), Some("d"), None), asks(approval(), Some("d"), large()), post(is("@d.data.go"))]),
            "older",
        ),
        (json!([form(), asks(form(), None, large()), post(is("@ok"))]), "older"),
        (json!([asks(event("x"), Some("p"), None), asks(event("y"), Some("p"), large()), post(is("@p.ok"))]), "older"),
        (json!([asks(approval(), None, large()), post(not_no("@__approved"))]), "nobody"),
        (json!([asks(approval(), None, large()), post(json!({ "not": is("@__approved") }))]), ""),
        (
            json!([asks(approval(), None, large()), post(json!({ "not": { "equal": ["@__approved", false] } }))]),
            "nobody",
        ),
        (json!([asks(approval(), Some("d"), large()), post(not_no("@d.approved"))]), "nobody"),
        (json!([asks(form(), None, large()), post(not_no("@ok"))]), "nobody"),
        (json!([case, post(not_no("@__approved"))]), "nobody"),
        (json!([asks(approval(), None, large()), chosen]), "nobody"),
        // What is certain, asked for, or asked again by its own answer is no doubt.
        (json!([approval(), post(not_no("@__approved"))]), ""),
        (
            json!([
                asks(approval(), None, large()),
                post(json!({ "and": [{ "hasKey": "@__approved" }, not_no("@__approved")] }))
            ]),
            "",
        ),
        (json!([asks(approval(), None, large()), post(json!({ "and": [large(), not_no("@__approved")] }))]), ""),
        (
            json!([
                asks(approval(), None, large()),
                post(json!({ "or": [{ "lessOrEqual": ["@input.n", 5] }, is("@__approved")] }))
            ]),
            "",
        ),
        (json!([form(), asks(form(), None, Some(json!({ "equal": ["@ok", "unclear"] }))), post(is("@ok"))]), ""),
        (json!([asks(form(), None, large()), asks(form(), None, small()), post(is("@ok"))]), ""),
    ] {
        let found = reported(steps.clone());
        let is_right = match words {
            "" => found.is_empty(),
            words => found.len() == 1 && found[0].contains(words),
        };
        assert!(is_right, "{words}: {found:?}\n{steps:#}");
    }
}

#[test]
fn what_is_asked_when_an_item_has_failed_is_no_decision_after_its_loop() {
    let approval = |id: &str| json!({ "id": id, "type": "PbotApproval", "properties": { "comment": "Go?", "on_rejected": "go_on" } });
    let form = |key: &str| json!({ "type": "PbotForm", "properties": { "expected_keys": [key] } });
    let each = |steps: Value, on_failure: Value| {
        json!({ "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.rows", "item_variable_name": "row",
            "failure_strategy": "continue_on_error", "actions_to_execute": steps, "on_failure": on_failure } })
    };
    let mut post = form("posted");
    post["filter"] = json!({ "condition": { "equal": ["@__approved", true] } });
    let place = Place::new();
    for (inside, count) in
        [(each(json!([form("x")]), json!([approval("b")])), 0), (each(json!([approval("b")]), json!([form("x")])), 1)]
    {
        let input = json!({ "type": "object", "properties": { "rows": { "type": "array" } }, "required": ["rows"] });
        let actions = json!([approval("a"), inside, post]);
        place.json("w.json", &json!({ "name": "w", "input": input, "definition": { "actions": actions } }));
        let faults = place.call(&["check", "--format", "json", "w.json"]).json();
        let found = faults.as_array().expect("an array").iter().filter(|fault| fault["code"] == "L163");
        assert_eq!(found.count(), count, "{faults:#}");
    }
}

#[test]
fn what_other_templates_write_and_too_long_an_interval_are_named_as_they_are() {
    let place = Place::new();
    let said = |document: Value| {
        place.json("w.json", &document);
        place.call(&["check", "w.json"]).stderr
    };
    let asks = |text: &str| {
        let input = json!({ "type": "object", "properties": { "xs": { "type": "array" } }, "required": ["xs"] });
        json!({ "name": "w", "input": input, "definition": { "actions": [{ "type": "PbotApproval", "properties": { "comment": text } }] } })
    };
    for (text, words) in [
        ("{{^input.xs}}none{{/input.xs}}", "{{#unless name}}"),
        ("a {{~! why }}", "a comment takes no `~`"),
        ("{{#each input.xs}}{{.}}{{/each}}", "{{this}}"),
    ] {
        let shown = said(asks(text));
        assert!(shown.contains(words), "{text}: {shown}");
    }
    let mut scheduled = asks("Go?");
    scheduled["definition"]["schedule"] = json!({ "every": "1000000d", "input": { "xs": [] } });
    let shown = said(scheduled);
    assert!(shown.contains("is too long") && shown.contains("36600d"), "{shown}");
}
