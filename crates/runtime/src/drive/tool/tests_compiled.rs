//! Actions as written, through the compiler and the toolbox.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};

use super::test_server::TestServer;
use super::*;
use loopctl_engine::event::{Allowance, CallId};
use loopctl_lang::compile::tool::declared;
use loopctl_lang::language::{Action, ReactProperties};
use loopctl_lang::program::json_texts::JsonRule;
use loopctl_lang::syntax::shape::Unknown;

fn compiled(action: &Value) -> Tool {
    let action: Action = serde_json::from_value(action.clone()).unwrap();
    let properties: ReactProperties = serde_json::from_value(json!({"objective": "x", "tools": []})).unwrap();
    let declaration = serde_json::from_value(json!({"name": "t"})).unwrap();
    declared(&declaration, &action, &properties, &Unknown::default()).unwrap_or_else(|faults| panic!("{faults:?}")).0
}

struct World {
    _root: tempfile::TempDir,
    toolbox: Toolbox,
}

fn world(script: Option<&Value>) -> World {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("key"), "hunter22-and-more\n").unwrap();
    fs::write(root.path().join("init.sql"), "CREATE TABLE t (a); INSERT INTO t VALUES (1);").unwrap();
    let project: Project = serde_json::from_value(json!({
        "orgconfig": {"k": "file:key"},
        "datasources": {"d": {"url": "sqlite:d.db", "init": "init.sql"}},
        "allow": {"private_addresses": true, "commands": ["printf", "sh"]},
        "models": {"m": {"provider": "script"}}
    }))
    .unwrap();
    let vault = Arc::new(Vault::new(project.orgconfig.clone(), root.path()));
    let script = script.map(|script| Arc::new(ScriptPlayer::new(serde_json::from_value(script.clone()).unwrap())));
    let models = Arc::new(Models::new(&project, root.path(), &vault, script.clone()));
    let mut toolbox = Toolbox::new(&Arc::new(project), root.path(), &vault, &models, BTreeMap::new());
    if let Some(script) = script {
        toolbox = toolbox.with_script(script);
    }
    World { _root: root, toolbox }
}

async fn run(world: &World, action: &Value, input: Value) -> ToolResult {
    let tool = compiled(action);
    let run_input = json!({"tenant": "acme"});
    let call = ToolCall {
        id: CallId { iteration: 1, index: 0 },
        at: None,
        request: 0,
        input: &Arc::new(input),
        run_input: &run_input,
        lists: None,
        run_id: "run",
        loop_name: "test",
        json: JsonRule::PRESENT,
        now: "2026-01-01T00:00:00Z",
        model: "m",
        deadline: Duration::from_secs(20),
        left: Allowance::default(),
        trace: None,
        answered: &[],
        listener: None,
        wait: None,
    };
    world.toolbox.call(&tool, &call).await.result
}

fn class(result: ToolResult) -> String {
    match result {
        ToolResult::Failed(fault) => fault.class,
        ToolResult::Ok(v) => panic!("{v}"),
    }
}

#[tokio::test]
async fn an_http_action_as_written() {
    let server = TestServer::json("{\"echo\":\"hunter22-and-more\"}");
    let world = world(None);
    let action = json!({"kind": "http", "action_name": "t", "description": "d", "url": server.url("/t/{{id}}/x?k={{q}}"), "http_method": "POST",
        "headers": {"Authorization": "Bearer orgconfig:k", "X-Who": "{{who}}"}, "query": {"n": "@n"}});
    let input: Value = serde_json::from_str(
        r#"{"id": "a/b?c#d", "q": "e&f=g", "who": "me", "n": 1.10, "rest": {"x": 12345678901234567890123}}"#,
    )
    .unwrap();
    let result = run(&world, &action, input).await;
    assert_eq!(result, ToolResult::Ok(json!({"echo": "[secret k]"})));
    let sent = server.requests().remove(0);
    assert!(sent.starts_with("POST /t/a%2Fb%3Fc%23d/x?k=e%26f%3Dg&n=1.10 HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains("authorization: Bearer hunter22-and-more\r\n") && sent.contains("x-who: me\r\n"));
    assert!(sent.ends_with("\r\n\r\n{\"rest\":{\"x\":12345678901234567890123}}"), "{sent}");
    for who in ["a\r\nx: y", "a\tb", "\0"] {
        assert_eq!(
            class(run(&world, &action, json!({"id": "1", "q": "1", "who": who, "n": 1})).await),
            "header not allowed"
        );
    }
    for id in ["..", "."] {
        let result = run(&world, &action, json!({"id": id, "q": "1", "who": "x", "n": 1})).await;
        assert_eq!(class(result), "a value is missing or can't be used");
    }
    assert_eq!(server.requests().len(), 1);
    // A value is data, whatever it says.
    run(
        &world,
        &action,
        json!({"id": "{{who}}", "q": "orgconfig:k", "who": "@input.tenant orgconfig:k", "n": "@input.tenant"}),
    )
    .await;
    let sent = server.requests().remove(1);
    assert!(sent.contains("x-who: @input.tenant orgconfig:k\r\n") && sent.matches("hunter22").count() == 1, "{sent}");
}

#[tokio::test]
async fn a_command_as_written() {
    let world = world(None);
    let action = json!({"kind": "command", "action_name": "t", "description": "d", "program": "printf", "args": ["%s|%s|", "{{a}}", "--x={{a}}"], "stdin": "{{a}}"});
    assert_eq!(
        run(&world, &action, json!({"a": "$(id) ; 'x'"})).await,
        ToolResult::Ok(json!("$(id) ; 'x'|--x=$(id) ; 'x'|"))
    );
    assert_eq!(class(run(&world, &action, json!({"a": "-rf"})).await), "argument begins with `-`");
    let action = json!({"kind": "command", "action_name": "t", "description": "d", "program": "sh", "args": ["-c", "echo $T"], "env": {"T": "orgconfig:k"}});
    assert_eq!(run(&world, &action, json!({})).await, ToolResult::Ok(json!("[secret k]")));
    let action = json!({"kind": "command", "action_name": "t", "description": "d", "program": "printf", "args": ["orgconfig:k"]});
    assert_eq!(class(run(&world, &action, json!({})).await), "a value is missing or can't be used");
}

#[tokio::test]
async fn a_secret_where_a_failure_s_text_is_cut_is_taken_out_whole() {
    let world = world(None);
    let says = "head -c 1990 /dev/zero | tr '\\0' x >&2; printf '%s and more' \"$T\" >&2; exit 1";
    let action = json!({"kind": "command", "action_name": "t", "description": "d", "program": "sh", "args": ["-c", says], "env": {"T": "orgconfig:k"}});
    let ToolResult::Failed(fault) = run(&world, &action, json!({})).await else { panic!("it fails") };
    assert_eq!(fault.detail, format!("{}[secret k] [9 more bytes]", "x".repeat(1990)));
}

#[tokio::test]
async fn a_secret_in_a_long_header_of_an_answer_is_taken_out_whole() {
    let world = world(None);
    let etag = format!("{}hunter22-and-more", "x".repeat(190));
    let server = TestServer::saying(format!("HTTP/1.1 200 OK\r\netag: {etag}\r\ncontent-length: 0\r\n\r\n"));
    let action = json!({"kind": "http", "action_name": "t", "description": "d", "http_method": "HEAD", "url": server.url("/"), "headers": {"x-key": "orgconfig:k"}});
    let ToolResult::Ok(value) = run(&world, &action, json!({})).await else { panic!("it is a success") };
    assert_eq!(value["headers"]["etag"], format!("{}[secret k]", "x".repeat(190)));
}

#[tokio::test]
async fn a_query_and_a_question_as_written() {
    let world = world(Some(&json!({"replies": ["four"], "tools": {"other": [1]}})));
    let action = json!({"kind": "db", "action_name": "t", "description": "d", "datasource": "d", "query": "SELECT a, :x AS x FROM t"});
    assert_eq!(
        run(&world, &action, json!({"x": "v"})).await,
        ToolResult::Ok(json!({"rows": [{"a": 1, "x": "v"}], "row_count": 1}))
    );
    let action = json!({"kind": "llm", "action_name": "t", "description": "d", "template": "2 + {{n}}?", "model": "m"});
    // The script's replies belong to the run itself: a tool that the script does not name takes none of them.
    let class = class(run(&world, &action, json!({"n": 2})).await);
    assert_eq!(class, "the script does not answer for this tool");
}

#[tokio::test]
async fn a_script_answers_first() {
    let world = world(Some(&json!({"replies": [], "tools": {"t": [1, {"error": "gone"}]}})));
    let action = json!({"kind": "command", "action_name": "t", "description": "d", "program": "never-run"});
    assert_eq!(run(&world, &action, json!({})).await, ToolResult::Ok(json!(1)));
    assert_eq!(class(run(&world, &action, json!({})).await), "gone");
    assert_eq!(class(run(&world, &action, json!({})).await), "gone");
    let _tools = world.toolbox.open(OpenedRun { run_id: "run".to_owned(), ..OpenedRun::default() });
    assert_eq!(run(&world, &action, json!({})).await, ToolResult::Ok(json!(1)));
}
