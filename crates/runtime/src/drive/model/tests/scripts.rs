//! Scripts: what a scripted model says, and what scripted tools answer.

use super::super::script::ScriptPart;
use super::*;
use loopctl_engine::event::{Finish, ModelFaultCode, Tokens, ToolResult};

fn played(text: &str) -> Arc<ModelClient> {
    Models::new(&Project::default(), Path::new("/"), &vault(), Some(script(text)))
        .in_environment(empty)
        .get(None)
        .unwrap()
}

async fn all(text: &str) -> Vec<Result<Reply, ModelFault>> {
    let (model, mut wire) = (played(text), Wire::default());
    let mut replies = Vec::new();
    loop {
        let reply = greet_all(std::slice::from_ref(&model), &mut wire, 1).await.0;
        if matches!(&reply, Err(fault) if fault.code == ModelFaultCode::ScriptExhausted) {
            return replies;
        }
        replies.push(reply);
    }
}

#[tokio::test]
async fn objects_are_said_with_their_digits_as_they_are_written() {
    let said = r#"{"thought":"t","action":"a","action_input":{"n":12345678901234567890123,"f":1.0,"z":-0,"e":1e+400,"x":0.10,"u":"ü\n"}}"#;
    let replies = all(&format!(
        r#"{{"replies": [{said}, {said}, "raw {{text", [1.50], 7.0, {{}}, {{"text":"x","thought":""}}]}}"#
    ))
    .await;
    let texts: Vec<_> = replies.into_iter().map(|reply| reply.unwrap().text).collect();
    assert_eq!(texts, [said, said, "raw {text", "[1.50]", "7.0", "{}", r#"{"text":"x","thought":""}"#]);
}

#[tokio::test]
async fn a_directive_may_set_usage_and_end() {
    let replies = all(r#"{"replies": [
            {"text": "cut", "finish": "length", "usage": {"input": 4, "output": 2}},
            {"delay_ms": 1, "text": {"thought": "t", "n": 1.0}}
        ]}"#)
    .await;
    let first = replies[0].clone().unwrap();
    assert_eq!((first.text.as_str(), first.finish), ("cut", Finish::Length));
    assert_eq!(first.usage, Some(Tokens { input: 4, output: 2, ..Tokens::default() }));
    let second = replies[1].clone().unwrap();
    assert_eq!((second.text.as_str(), second.usage), (r#"{"thought":"t","n":1.0}"#, None));
}

#[tokio::test]
async fn a_directive_that_makes_no_sense_is_a_fault_that_names_it() {
    for wrong in [
        r#"{"http": "no"}"#,
        r#"{"http": 99}"#,
        r#"{"http": 500, "headers": []}"#,
        r#"{"text": "", "delay_ms": -1}"#,
        r#"{"text": "", "usage": 3}"#,
        r#"{"text": "", "finish": "soon"}"#,
    ] {
        let fault = all(&format!(r#"{{"replies": ["fine", {wrong}]}}"#)).await.remove(1).unwrap_err();
        assert_eq!((fault.code, fault.retryable), (ModelFaultCode::ModelProtocol, false), "{wrong}");
        assert!(fault.message.starts_with("reply 2 of the script"), "{}", fault.message);
    }
}

#[tokio::test]
async fn scripted_failures_go_through_the_same_retries() {
    let model = played(
        r#"{"replies": [{"http": 429, "headers": {"Retry-After": "0"}}, {"http": 503, "headers": {"retry-after": 0}}, "Hi",
                        {"http": 400, "body": {"error": {"message": "prompt is too long"}}}, {"http": 401}]}"#,
    );
    let mut wire = Wire::default();
    let (reply, failed) = greet_all(std::slice::from_ref(&model), &mut wire, 4).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.retries), ("Hi", 2));
    assert_eq!(failed.iter().map(|attempt| attempt.delay_ms).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(failed[0].reason, "http 429 from the script");
    let codes = [ModelFaultCode::ContextExceeded, ModelFaultCode::ModelRefused];
    for code in codes {
        assert_eq!(greet_all(std::slice::from_ref(&model), &mut wire, 4).await.0.unwrap_err().code, code);
    }
}

#[tokio::test]
async fn a_script_that_is_spent_says_at_which_call() {
    for (text, message) in [
        (r#"{"replies": ["a", "b"]}"#, "the script has 2 replies; call 3 was asked for"),
        (r#"{"replies": ["a"]}"#, "the script has 1 reply; call 2 was asked for"),
    ] {
        let (model, mut wire) = (played(text), Wire::default());
        let two = [Arc::clone(&model), model];
        let fault = loop {
            if let Err(fault) = greet_all(&two, &mut wire, 4).await.0 {
                break fault;
            }
        };
        assert_eq!((fault.message.as_str(), fault.retryable), (message, false));
        assert_eq!((fault.code, fault.attempts), (ModelFaultCode::ScriptExhausted, 1));
    }
}

#[tokio::test]
async fn runs_that_share_a_script_each_begin_at_its_beginning_or_where_they_were() {
    let model = played(r#"{"replies": ["a", "b", "c"]}"#);
    for used in [0, 2] {
        let mut wire = Wire::default();
        wire.skip_replies(used);
        let reply = greet_all(std::slice::from_ref(&model), &mut wire, 1).await.0.unwrap();
        assert_eq!(reply.text, ["a", "b", "c"][used]);
    }
}

#[tokio::test]
async fn a_scripted_model_gives_no_pieces() {
    let pieces = Mutex::new(0);
    let partial = |_: PartialReply<'_>| *pieces.lock().unwrap() += 1;
    let conversation = hello();
    let asked = Ask { partial: Some(&partial), ..plain(&conversation) };
    let model = played(r#"{"replies": ["whole"]}"#);
    ask(&[model], &asked, &mut Wire::default(), &retry(1), &|_| ()).await.unwrap();
    assert_eq!(pieces.into_inner().unwrap(), 0);
}

#[test]
fn scripted_tools_answer_in_order_and_the_last_again_and_again() {
    let script = script(
        r#"{"replies": [], "tools": {"look": [{"n": 1.0}, {"error": "not found"}, {"error": "x", "more": 1}], "none": []}}"#,
    );
    let ok = |text: &str| ToolResult::Ok(serde_json::from_str(text).unwrap());
    assert_eq!(script.tool("look", 0), Some(ok(r#"{"n": 1.0}"#)));
    assert!(matches!(script.tool("look", 1), Some(ToolResult::Failed(fault)) if fault.class == "not found"));
    assert_eq!(script.tool("look", 2), Some(ok(r#"{"error": "x", "more": 1}"#)));
    assert_eq!(script.tool("look", 99), script.tool("look", 2));
    assert!(matches!(script.tool("none", 0), Some(ToolResult::Failed(_))));
    assert!(script.names_tool("none") && !script.names_tool("other"));
    assert_eq!(script.tool("other", 0), None);
}

#[tokio::test]
async fn a_lone_question_is_given_an_object_as_it_is_written() {
    let texts = [
        r#"{"thought":"t","action":"a","action_input":{"n":1.50}}"#,
        r#"{"calls":[{"action":"a"},{"action":"b"}]}"#,
        r#"{"answer":"x"}"#,
    ];
    let played = script(&format!(r#"{{"replies":[{}]}}"#, texts.join(",")));
    let (conversation, mut position) = (hello(), 0);
    for text in texts {
        let part = ScriptPart { loop_name: None, alone: true, run_id: "r" };
        assert_eq!(played.say(part, &mut position, &plain(&conversation)).await.unwrap().text, text);
    }
}
