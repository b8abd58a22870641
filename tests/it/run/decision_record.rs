//! Decisions are recorded with who, when and what they changed, and a model learns what a human changed.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, answering, complete, think};

/// A variable names nobody: the record has the user of the system.
const USER: (&str, &str) = ("USER", "somebody-else");

/// The user who runs the tests.
pub fn user() -> String {
    let output = std::process::Command::new("id").arg("-un").output().expect("it starts");
    String::from_utf8(output.stdout).expect("a name").trim().to_owned()
}

/// A model that calls `act` once and completes then.
fn model() -> Server {
    Server::with(|turn, _| {
        let says = if turn == 0 { think("act", json!({ "what": "high" })) } else { complete(json!("done")) };
        Answer::openai(&says.to_string())
    })
}

struct Decided {
    place: Place,
    model: Server,
}

impl Decided {
    /// A run `r` that has stopped: at its approval, or killed during its call.
    fn stopped(approval: bool) -> Self {
        let tools = json!({ "tools": [{ "type": "action", "name": "act", "requires_approval": approval }] });
        let stopped = Self { place: answering(&tools, "{\"changes\": 1}"), model: model() };
        let fail = if approval { None } else { Some(("LOOPCTL_FAIL", "journal:1:after-sync")) };
        let ran = stopped.call(&["run", "loop.json", "--model", "m", "--run-id", "r"], fail);
        assert_ne!(ran.code, 0, "{ran:#?}");
        stopped
    }

    fn call(&self, args: &[&str], more: Option<(&str, &str)>) -> Ran {
        let url = self.model.url();
        let env = [Some(("OPENAI_BASE_URL", url.as_str())), Some(USER), more];
        self.place.call_with(args, &env.into_iter().flatten().collect::<Vec<_>>())
    }

    /// The result after a decision.
    fn resume(&self, how: &[&str]) -> Value {
        let ran = self.call(&[&["resume", "r", "--output", "json"], how].concat(), None);
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.json()
    }

    /// What the model read of the call.
    fn read(&self) -> String {
        let requests = self.model.requests();
        let body = requests.last().expect("a request").json();
        let last = body["messages"].as_array().and_then(|messages| messages.last()).expect("a message").clone();
        last["content"].as_str().expect("a text").to_owned()
    }
}

#[test]
fn a_model_reads_that_a_human_changed_its_call_and_to_what() {
    let run = Decided::stopped(true);
    let result = run.resume(&["--edit", r#"{"what":"low"}"#, "--comment", "not that urgent"]);
    let read = run.read();
    assert!(
        read.contains(
            r#"A human changed the input of this call before it was made. It was called with {"what":"low"}"#
        ),
        "{read}"
    );
    assert!(read.contains(r#""changes""#) && !read.contains("not that urgent"), "{read}");
    let decision = &result["decisions"][0];
    assert_eq!(result["trace"][0]["action_input"], json!({ "what": "low" }));
    assert_eq!(
        (&decision["decision"], &decision["by"], &decision["call"], &decision["comment"], &decision["input_before"]),
        (
            &json!("edit"),
            &json!(user()),
            &json!({ "iteration": 1, "index": 0 }),
            &json!("not that urgent"),
            &json!({ "what": "high" })
        ),
        "{decision:#}"
    );
    let times = [&result["trace"][0]["timestamp"], &decision["at"], &decision["called_at"]];
    let times: Vec<&str> = times.iter().map(|time| time.as_str().expect("a time")).collect();
    assert!(times.is_sorted(), "asked, decided, called: {times:?}");
    assert_eq!(decision["hash"].as_str().map(str::len), Some(16));
}

#[test]
fn a_model_reads_no_note_when_its_call_was_approved_or_denied() {
    for (how, kind) in [("--approve", "approve"), ("--deny", "deny")] {
        let run = Decided::stopped(true);
        let result = run.resume(&[how]);
        assert!(!run.read().contains("A human changed"), "{}", run.read());
        assert_eq!(
            (&result["decisions"][0]["decision"], &result["decisions"][0]["by"]),
            (&json!(kind), &json!(user()))
        );
        assert_eq!(result["decisions"][0].get("called_at").is_some(), kind == "approve", "{result:#}");
    }
}

#[test]
fn a_model_reads_what_a_human_said_about_a_call_of_unknown_outcome() {
    for (how, words) in [
        (vec!["--happened", r#"{"changes":7}"#], "A human says that it happened"),
        (vec!["--retry"], "A human decided to make it again"),
    ] {
        let run = Decided::stopped(false);
        assert_eq!(run.call(&["resume", "r"], None).code, 3);
        let result = run.resume(&how);
        assert!(run.read().contains(words), "{words}: {}", run.read());
        assert_eq!(result["decisions"][0]["decision"], how[0].trim_start_matches("--"));
    }
}

#[test]
fn a_decision_is_in_each_form_of_the_trace_and_among_the_events() {
    let run = Decided::stopped(true);
    let ran =
        run.call(&["resume", "r", "--edit", r#"{"what":"low"}"#, "--comment", "as agreed", "--output", "ndjson"], None);
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let decided: Vec<&Value> = events.iter().filter(|event| event["event"] == "decided").collect();
    assert_eq!((decided.len(), &decided[0]["by"]), (1, &json!(user())), "{ran:#?}");
    for format in ["text", "html", "json"] {
        let shown = run.call(&["trace", "r", "--format", format], None).stdout;
        for words in [user().as_str(), "as agreed", "high"] {
            assert!(shown.contains(words), "{format}: {words}: {shown}");
        }
    }
    let text = run.call(&["trace", "r"], None).stdout;
    assert!(text.contains(&format!("approved with another input by {} at ", user())), "{text}");
}

#[test]
fn a_comment_goes_with_a_decision_and_is_bounded() {
    let run = Decided::stopped(true);
    let alone = run.call(&["resume", "r", "--comment", "hm"], None);
    assert!(alone.code == 2 && alone.stderr.contains("`--comment` goes with a decision"), "{alone:#?}");
    let long = "x".repeat(2_001);
    let refused = run.call(&["resume", "r", "--approve", "--comment", &long], None);
    assert!(refused.code == 2 && refused.stderr.contains("at most 2000 characters"), "{refused:#?}");
}
