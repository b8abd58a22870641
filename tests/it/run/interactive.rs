//! `--interactive`, in a pseudo terminal: what is shown, what is typed, and what comes of it.

use serde_json::{Value, json};

use crate::common::terminal::Terminal;
use crate::common::{Place, complete, think};

const RUN: &[&str] =
    &["run", "loop.json", "--script", "script.json", "--run-id", "r", "--output", "json", "--interactive"];

fn approvals(replies: &[Value]) -> Place {
    let place = Place::new();
    place.looped(&json!({ "tools": [{ "type": "action", "name": "act", "requires_approval": true }] })).script(replies);
    place
}

fn act(what: &str) -> Value {
    think("act", json!({ "what": what }))
}

fn ends(terminal: Terminal, place: &Place) -> (i32, Value) {
    let (code, shown, stdout) = terminal.ends(place);
    (code, serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {shown}\n{stdout}")))
}

#[test]
fn calls_are_approved_denied_and_edited_on_the_spot() {
    let place = approvals(&[act("one"), act("two"), act("three"), complete(json!("done"))]);
    let mut terminal = Terminal::start(&place, RUN);
    assert!(terminal.sees("s: leave it paused >").contains("\"what\": \"one\""));
    terminal.types("yes");
    terminal.sees("enter one of these letters");
    terminal.sees("s: leave it paused >");
    terminal.types("a");
    assert!(terminal.sees("s: leave it paused >").contains("\"what\": \"two\""));
    terminal.types("d");
    terminal.sees("reason (the model reads it; may be empty) >");
    terminal.types("too dear");
    assert!(terminal.sees("s: leave it paused >").contains("\"what\": \"three\""));
    terminal.types("e");
    terminal.sees("on one line (empty: as it was) >");
    terminal.types(r#"{"what": 7}"#);
    terminal.sees("y: yes, anything else: no >");
    terminal.types("y");
    // The tool's schema refuses this input: the prompt says so, and asks again.
    terminal.sees("the edited input is not accepted");
    terminal.sees("s: leave it paused >");
    terminal.types("e");
    terminal.sees("on one line (empty: as it was) >");
    terminal.types(r#"{"what": "3 \u202e", "n": 1e2}"#);
    let shown = terminal.sees("y: yes, anything else: no >");
    assert!(shown.contains("\\u{202E}") && shown.contains("\"n\": 1e+2") && shown.contains("nobody sees"), "{shown}");
    terminal.types("y");
    let (code, result) = ends(terminal, &place);
    assert_eq!((code, &result["status"]), (0, &json!("completed")), "{result:#}");
    let trace = result["trace"].as_array().expect("a trace");
    assert_eq!((&trace[0]["action_input"], &trace[0]["success"]), (&json!({ "what": "one" }), &json!(true)));
    assert!(trace[1]["observation"].as_str().is_some_and(|text| text.contains("too dear")));
    let typed: Value = serde_json::from_str(r#"{"what": "3 \u202e", "n": 1e2}"#).expect("JSON");
    assert_eq!(trace[2]["action_input"], typed);
}

#[test]
fn a_question_is_answered_by_the_number_of_an_option_or_in_words() {
    let ask = |options: Value| {
        think("__pause_for_human__", json!({ "question": "Which\u{1b}[2J?", "context": "Two.", "options": options }))
    };
    let place = Place::new();
    place.looped(&json!({})).script(&[ask(json!(["first", "second"])), ask(json!([])), complete(json!("done"))]);
    let mut terminal = Terminal::start(&place, RUN);
    let shown = terminal.sees("(empty: leave it paused) >");
    assert!(shown.contains("these are the model's words") && shown.contains("┃ Which\\u{1B}[2J?"), "{shown}");
    assert!(shown.contains("┃ 2. second"), "{shown}");
    terminal.types("2");
    terminal.sees("answer (empty: leave it paused) >");
    terminal.types("neither of them");
    let (code, result) = ends(terminal, &place);
    assert_eq!((code, &result["trace"][0]["observation"]), (0, &json!("second")));
    assert_eq!(result["trace"][1]["observation"], "neither of them");
}

#[test]
fn a_run_that_is_left_paused_is_resumed_later() {
    let place = approvals(&[act("one"), complete(json!("done"))]);
    for leave in ["s", "the end", "a signal"] {
        let args: &[&str] = match leave {
            "s" => RUN,
            _ => &["resume", "r", "--script", "script.json", "--output", "json", "--interactive"],
        };
        let mut terminal = Terminal::start(&place, args);
        terminal.sees("s: leave it paused >");
        match leave {
            "s" => terminal.types("s"),
            "the end" => terminal.types_the_end(),
            _ => {
                let pid = nix::unistd::Pid::from_raw(i32::try_from(terminal.pid()).expect("a number"));
                nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it is sent");
            }
        }
        let (code, result) = ends(terminal, &place);
        assert_eq!((code, &result["status"]), (3, &json!("paused")), "{leave}");
    }
    let args = ["resume", "r", "--script", "script.json", "--output", "json", "--interactive"];
    let mut terminal = Terminal::start(&place, &args);
    terminal.sees("s: leave it paused >");
    terminal.types("a");
    assert_eq!(ends(terminal, &place).0, 0);
}

#[test]
fn what_is_typed_before_the_question_is_seen_is_no_answer() {
    let place = approvals(&[json!({ "delay_ms": 300, "text": act("one") }), complete(json!("done"))]);
    let mut terminal = Terminal::start(&place, RUN);
    terminal.types("a");
    terminal.sees("s: leave it paused >");
    // It still waits: this is the first answer that it takes. The twin: `a` typed now is an approval.
    terminal.types("s");
    assert_eq!(ends(terminal, &place).0, 3);
}

#[test]
fn a_call_padded_with_ten_thousand_lines_is_still_readable() {
    let padded = format!("echo{}; rm -rf /", "\n".repeat(10_000));
    let place = approvals(&[act(&padded), complete(json!("done"))]);
    let mut terminal = Terminal::start(&place, RUN);
    let shown = terminal.sees("v: view it whole, s: leave it paused >");
    assert!(shown.contains("; rm -rf /") && shown.contains("lines of this input not shown here"), "{shown}");
    assert!(shown.lines().count() < 60, "{}", shown.lines().count());
    terminal.types("v");
    let shown = terminal.sees("s: leave it paused >");
    assert!(shown.lines().count() > 200 && !shown.contains("not shown here"), "{}", shown.lines().count());
    terminal.types("a");
    let (code, result) = ends(terminal, &place);
    assert_eq!((code, &result["trace"][0]["action_input"]["what"]), (0, &json!(padded)));
}

#[test]
fn a_call_of_unknown_outcome_is_asked_about() {
    let place = Place::new();
    place.looped(&json!({})).json(
        "script.json",
        &json!({ "replies": [act("one"), act("two"), complete(json!("done"))], "tools": { "act": [{ "done": true }] } }),
    );
    for letter in ["h", "f", "r"] {
        let store = format!("sqlite:{letter}.db");
        let args = ["run", "loop.json", "--script", "script.json", "--run-id", "r", "--store", &store];
        let killed = place.call_with(&args, &[("LOOPCTL_FAIL", "journal:1:before-effect")]);
        assert_eq!(killed.code, -1, "{killed:#?}");
        let resume = ["resume", "r", "--script", "script.json", "--store", &store, "--output", "json", "--interactive"];
        let mut terminal = Terminal::start(&place, &resume);
        terminal.sees("h: it happened, f: it failed, r: retry it, s: leave it paused >");
        terminal.types(letter);
        if letter == "h" {
            terminal.sees("what it returned, as JSON on one line >");
            terminal.types(r#"{"by": "hand"}"#);
        }
        if letter == "f" {
            terminal.sees("why it failed >");
            terminal.types("the bank refused it");
        }
        let (code, result) = ends(terminal, &place);
        let call = &result["trace"][0];
        assert_eq!((code, &call["success"]), (0, &json!(letter != "f")), "{result:#}");
        let observation = call["observation"].to_string();
        let expected = match letter {
            "h" => r#"{"by":"hand"}"#,
            "f" => "the bank refused it",
            _ => r#"{"done":true}"#,
        };
        assert!(observation.contains(expected), "{observation}");
    }
}

#[test]
fn without_a_terminal_it_is_refused_and_nothing_runs() {
    let place = approvals(&[act("one"), complete(json!("done"))]);
    for args in [RUN, &["resume", "r", "--interactive"]] {
        let ran = place.call(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
        assert!(ran.stderr.contains("--interactive needs a terminal"), "{}", ran.stderr);
    }
    assert!(!place.path().join(".loopctl").exists());
}

#[test]
fn the_question_of_an_approval_that_is_a_step_stands_above_the_keys() {
    let place = Place::new();
    place.json("script.json", &json!({ "replies": [] }));
    place.json(
        "loop.json",
        &json!({ "name": "w", "definition": { "actions": [
            { "id": "ok", "type": "PbotApproval", "properties": { "comment": "Send 40 letters?" } }] } }),
    );
    let mut terminal = Terminal::start(&place, RUN);
    let shown = terminal.sees("s: leave it paused >");
    assert!(shown.contains("Send 40 letters?") && shown.contains("a no stops the run"), "{shown}");
    terminal.types("d");
    let asked = terminal.sees("may be empty) >");
    assert!(asked.contains("reason (") && !asked.contains("model"), "{asked}");
    terminal.types("too many");
    let (code, result) = ends(terminal, &place);
    assert_eq!((code, &result["termination"]), (1, &json!("rejected")), "{result:#}");
}

#[test]
fn a_form_of_keys_says_which_object_it_wants() {
    let place = Place::new();
    let form = json!({ "id": "form", "type": "PbotForm", "outputKey": "said",
        "properties": { "expected_keys": ["go", "note"] } });
    place.json("loopctl.json", &json!({}));
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [form], "output": "@said.go" } }));
    let mut terminal =
        Terminal::start(&place, &["run", "loop.json", "--interactive", "--run-id", "r", "--output", "json"]);
    terminal.sees("answer, a JSON object: {\"go\": ..., \"note\": ...} (empty: leave it paused) >");
    terminal.types("{\"go\": \"yes\", \"note\": \"\"}");
    let (code, result) = ends(terminal, &place);
    assert_eq!((code, &result["status"]), (0, &json!("completed")), "{result:#}");
}
