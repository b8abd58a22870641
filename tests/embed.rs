//! What an embedder writes: typed tools, errors by `?`, answers as types, and what a loop that can't be loaded says.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails says why")]

use loopctl::{AnswerError, EmbeddedTool, Engine, Finished, LoadError, Loop, Status, ToolCall, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, schemars::JsonSchema)]
struct Parcel {
    /// Its weight in grams
    grams: u8,
}

/// Divides 100 by the weight; a weight of 0 is a parse error, and 1 an error with a class.
struct Shares;

impl EmbeddedTool for Shares {
    type Input = Parcel;
    type Output = u8;
    const NAME: &'static str = "shares";
    const DESCRIPTION: &'static str = "Divides.";

    async fn call(&self, parcel: Parcel, _: &ToolCall<'_>) -> Result<u8, ToolError> {
        match parcel.grams {
            0 => Ok("not a number".parse()?),
            1 => Err(ToolError::new("too light").detail("the scale says 1 g")),
            grams => Ok(100 / grams),
        }
    }
}

const DOCUMENT: &str = r#"{"type": "loop", "properties": {"mode": "react", "objective": "Share.",
    "tools": [{"type": "action", "name": "shares"}]}}"#;

fn shares(grams: &[u32], end: &Value) -> Loop {
    let call = |grams: &u32| json!({"thought": "t", "action": "shares", "action_input": {"grams": grams}});
    let replies: Vec<Value> = grams.iter().map(call).chain([end.clone()]).collect();
    let script = serde_json::from_value(json!({ "replies": replies })).unwrap();
    Engine::load_text("shares.json", DOCUMENT).tool(Shares).script(script).build().unwrap()
}

fn answer(value: &Value) -> Value {
    json!({"thought": "t", "action": "__complete__", "action_input": {"answer": value}})
}

fn prompt(finished: &Finished) -> String {
    format!("{:?}", finished.state.conversation)
}

#[tokio::test]
async fn a_typed_tool_takes_its_type_and_gives_its_value() {
    let run = shares(&[50], &answer(&json!({"grams": 2}))).run(Value::Null).await.unwrap();
    assert!(prompt(&run).contains("Its weight in grams"), "the model reads the doc comment of a field");
    assert_eq!(run.answer_as::<Parcel>().unwrap().grams, 2);
    let wrong = run.answer_as::<u8>().unwrap_err();
    assert!(matches!(&wrong, AnswerError::Type(_)), "{wrong}");
}

#[tokio::test]
async fn an_error_by_the_question_mark_is_an_observation_without_its_text() {
    let run = shares(&[0, 1, 300], &answer(&json!("done"))).run(Value::Null).await.unwrap();
    let prompt = prompt(&run);
    assert!(prompt.contains("failed") && prompt.contains("too light"), "{prompt}");
    assert!(!prompt.contains("invalid digit") && !prompt.contains("scale"), "details are for the trace: {prompt}");
    // 300 is no u8: the schema has its maximum, so the call was refused before it was made.
    assert!(prompt.contains("255"), "{prompt}");
    assert_eq!(run.status(), Status::Completed);
}

#[tokio::test]
async fn a_run_without_an_answer_says_where_it_is() {
    let ask = json!({"thought": "t", "action": "__pause_for_human__", "action_input": {"question": "Which one?"}});
    let run = shares(&[], &ask).run(Value::Null).await.unwrap();
    assert_eq!(run.answer_as::<String>().unwrap_err().to_string(), "the run has no answer: it is paused: Which one?");
}

#[test]
fn a_document_with_errors_is_refused_with_a_line_for_each() {
    let text = DOCUMENT.replace("\"shares\"", "\"share\"").replace("objective", "objectiv");
    let error = Engine::load_text("shares.json", text).tool(Shares).build().unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines[0], "the document has errors");
    assert!(lines.len() > 2 && lines[1..].iter().all(|line| line.starts_with("shares.json:")), "{error}");
    let missing = Engine::load("no/such/loop.json").build().unwrap_err().to_string();
    assert!(missing.contains("no/such/loop.json"), "{missing}");
}

#[tokio::test]
async fn a_loop_keeps_its_runs_in_the_store_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("runs.db").display());
    let script = || serde_json::from_value(json!({"replies": [answer(&json!("done"))]})).unwrap();
    let load = || Engine::load_text("shares.json", DOCUMENT).tool(Shares).store(&store).script(script()).build();
    let first = load().unwrap().run(Value::Null).await.unwrap();
    let again = load().unwrap();
    assert_eq!(again.engine().find(first.run_id()).await.unwrap().unwrap().status, Status::Completed);
    let wrong = Engine::load_text("shares.json", DOCUMENT).tool(Shares).store("nowhere:x").build().unwrap_err();
    assert!(matches!(wrong, LoadError::Store(_)), "{wrong}");
}
