//! Tools: their inputs, their defaults, and the faults of their actions.
#![expect(clippy::needless_pass_by_value, reason = "actions are written at the call")]

mod approval_floor;
mod http;

use serde_json::{Value, json};

use super::*;
use crate::diagnostic::Severity;

fn compile(action: Value) -> Result<(Tool, Vec<LocalFault>), Vec<LocalFault>> {
    compile_as(json!({"name": "t"}), action)
}

fn compile_as(declaration: Value, action: Value) -> Result<(Tool, Vec<LocalFault>), Vec<LocalFault>> {
    let declaration: ActionTool = serde_json::from_value(declaration).unwrap();
    let action: Action = serde_json::from_value(action).unwrap();
    let properties = serde_json::from_value(json!({"objective": "o", "tools": []})).unwrap();
    let (mut tool, warnings) = declared(&declaration, &action, &properties, &Unknown::default())?;
    approval::require(&mut tool.approval, &declaration.requires_approval, declaration.approval.as_ref())?;
    Ok((tool, warnings))
}

/// An action of a kind, with a name and a description.
fn action(kind: &str, fields: Value) -> Value {
    let mut action = json!({"kind": kind, "action_name": "t", "description": "Does it."});
    for (name, value) in fields.as_object().unwrap() {
        action[name] = value.clone();
    }
    action
}

fn http(fields: Value) -> Value {
    let mut action = action("http", json!({"url": "https://h.example/a", "http_method": "GET"}));
    for (name, value) in fields.as_object().unwrap() {
        action[name] = value.clone();
    }
    action
}

fn tool(action: Value) -> Tool {
    let (tool, warnings) = compile(action.clone()).unwrap_or_else(|faults| panic!("{action}: {faults:?}"));
    assert!(warnings.is_empty(), "{action}: {warnings:?}");
    tool
}

fn http_tool(fields: Value) -> HttpToolOf {
    let tool = tool(http(fields));
    match tool.kind {
        ToolKind::Http(kind) => HttpToolOf { kind, parameters: tool.parameters },
        other => panic!("{other:?}"),
    }
}

struct HttpToolOf {
    kind: crate::program::HttpTool,
    parameters: Schema,
}

/// The faults as `code pointer: the text there: message`.
fn reported(action: Value) -> Vec<String> {
    let faults = match compile(action.clone()) {
        Ok((_, warnings)) => warnings,
        Err(faults) => faults,
    };
    let show = |fault: &LocalFault| {
        let text = action.pointer(&fault.pointer).and_then(Value::as_str).unwrap_or_default();
        let inside = fault.inside.clone().map(|range| &text[range]).unwrap_or_default();
        format!("{} {}: {inside}: {}", fault.code, fault.pointer, fault.message)
    };
    faults.iter().map(show).collect()
}

#[track_caller]
fn assert_reported(action: Value, is_error: bool, expected: &str) {
    let found = reported(action.clone());
    assert!(found.iter().any(|fault| fault.starts_with(expected)), "{action}: {found:?}");
    assert_eq!(compile(action).is_err(), is_error, "{found:?}");
}

#[test]
fn without_parameters_they_are_what_the_action_takes() {
    let tool = http_tool(
        json!({"url": "https://h/{{id}}?x={{input.x}}", "headers": {"X-A": "@who.name"}, "query": {"q": ["{{text}}", "{{id}}"]},
        "http_method": "POST", "body": {"a": "@deep.0.x", "now": "@now"}}),
    );
    let text = json!({"type": ["string", "number", "boolean"]});
    let expected = json!({"type": "object", "properties": {"id": text, "who": {}, "text": text, "deep": {}},
        "required": ["id", "who", "text", "deep"], "additionalProperties": false});
    assert_eq!(*tool.parameters.source(), expected);
    assert_eq!(tool.kind.used, ["id", "who", "text"]);
    assert!(tool.parameters.faults(&json!({"id": 1, "who": {}, "text": "", "deep": []})).is_empty());
    assert_eq!(tool.parameters.faults(&json!({"id": {}, "who": {}, "text": null, "deep": []})).len(), 2);
}

#[test]
fn what_is_printed_into_an_address_or_a_header_is_one_text() {
    let tool = http_tool(json!({
        "url": "https://h/{{a}}{{#if b}}/{{b}}{{/if}}{{#each c}},{{this}}{{/each}}{{lookup d 0}}{{#if e}}!{{/if}}",
        "headers": {"X-F": "@f", "X-G": "g {{g}} {{h.i}}", "X-N": "{{n}}"},
        "query": {"j": "@j", "k": "{{k}}", "l": {"m": "@l"}}, "http_method": "POST", "body": ["@o", "@n.x"]
    }));
    let (text, or_null) = (json!(["string", "number", "boolean"]), json!(["string", "number", "boolean", "null"]));
    let types = |name: &str| tool.parameters.source()["properties"][name]["type"].clone();
    for (name, expected) in [
        ("a", &text),
        ("b", &or_null),
        ("f", &text),
        ("g", &text),
        ("k", &text),
        ("j", &json!(["string", "number", "boolean", "array"])),
    ] {
        assert_eq!(types(name), *expected, "{name}");
    }
    for open in ["c", "d", "e", "h", "l", "n", "o"] {
        assert_eq!(types(open), Value::Null, "{open}");
    }
}

#[test]
fn an_http_action_that_names_nothing_takes_any_object() {
    assert_eq!(*http_tool(json!({})).parameters.source(), json!({"type": "object"}));
    let llm = tool(action("llm", json!({"template": "Say hello to {{input.name}}."})));
    assert_eq!(llm.parameters.faults(&json!({"x": 1})).len(), 1);
}

#[test]
fn a_query_takes_its_named_parameters() {
    let query = "SELECT ':no', \"$no\", a::text FROM t -- :no\n WHERE a = :id /* $no */ AND b = $who AND c = :id AND d = $$ :no $$ AND e = @w";
    assert_eq!(named_parameters(query), ["id", "who", "w"]);
    let tool = tool(action("db", json!({"datasource": "d", "query": query})));
    assert_eq!(tool.parameters.properties(), ["id", "who", "w"]);
    assert!(tool.idempotent);
    for (query, names) in [
        ("x = ':a' || :b", vec!["b"]),
        ("'it''s :a' :b", vec!["b"]),
        ("a::b", vec![]),
        ("é:ä = :ö", vec!["ö"]),
        ("'open :a", vec![]),
        (":1 : a $ $$ $a$ :b $a$ :c", vec![]),
        ("$tag$ :b $tag$ :c", vec!["c"]),
    ] {
        assert_eq!(named_parameters(query), names, "{query}");
    }
}

#[test]
fn written_params_must_be_as_many_as_the_query_takes() {
    let db = |query: &str, params: Value| action("db", json!({"datasource": "d", "query": query, "params": params}));
    let tool = tool(db("SELECT * FROM t WHERE a = $1 AND b > $2 AND c = $1", json!(["@status", "{{since}}"])));
    assert_eq!(tool.parameters.properties(), ["status", "since"]);
    assert_reported(
        db("a = $1 AND b = $2", json!([1])),
        true,
        "L077 /params: : the query takes 2 values, and `params` has 1",
    );
    assert_reported(db("a = ? AND b = ?", json!([1, 2, 3])), true, "L077 /params");
    assert_reported(db("a = $1", json!([])), true, "L077 /query");
    assert_reported(db("a = '{{x}}'", json!([])), true, "L077 /query: {{x}}: `{{x}}` is no placeholder of a query");
}

#[test]
fn a_variable_that_the_parameters_do_not_have_is_an_error_in_place() {
    let parameters = json!({"type": "object", "properties": {"ticket_id": {"type": "string"}, "note": {}}, "required": ["ticket_id"]});
    let with = |url: &str, more: Value| {
        let mut action = http(json!({"url": url, "parameters": parameters}));
        for (name, value) in more.as_object().unwrap() {
            action[name] = value.clone();
        }
        action
    };
    assert_reported(
        with("https://h/{{ticket}}", json!({})),
        true,
        "L060 /url: ticket: the action's `parameters` have no `ticket`",
    );
    let faults = compile(with("https://h/{{ticket_di}}", json!({"query": {"a": ["@unheard.x"]}}))).unwrap_err();
    assert_eq!(faults[0].help.as_deref(), Some("the nearest name is `ticket_id`"));
    assert_eq!((faults[1].pointer.as_str(), faults[1].inside.clone()), ("/query/a/0", Some(0..10)));
    assert_eq!(faults[1].help.as_deref(), Some("they have `ticket_id`, `note`; add it, or use one of them"));
    assert_reported(
        with("https://h/{{ticket_id}}/{{note}}", json!({})),
        false,
        "L061 /url: note: `note` may be left out",
    );
    assert!(
        reported(with("https://h/{{ticket_id}}/a{{#if note}}{{note}}{{/if}}{{input.x}}{{now}}", json!({}))).is_empty()
    );
    let open = json!({"type": "object", "additionalProperties": {"type": "string"}});
    assert!(reported(with("https://h/{{anything}}", json!({"parameters": open}))).is_empty());
}

#[test]
fn parameters_that_go_nowhere_or_hide_are_warned_of() {
    let parameters = json!({"type": "object", "properties": {"text": {}, "tone": {}}, "required": ["text", "tone"]});
    let llm = action("llm", json!({"template": "{{text}}", "parameters": parameters}));
    assert_reported(llm, false, "L062 /parameters/properties/tone: : `tone` is required");
    let sent = http(json!({"parameters": parameters, "http_method": "POST"}));
    assert!(reported(sent).is_empty(), "what an http action does not name is its body");
    let written = http(json!({"parameters": parameters, "http_method": "POST", "body": "@text"}));
    assert_reported(written, false, "L062 /parameters/properties/tone");
    let hides = json!({"type": "object", "properties": {"input": {"type": "string"}}});
    let llm = action("llm", json!({"template": "Sum up {{input}}", "parameters": hides}));
    assert_reported(llm, false, "L063 /template: input: `input` is the run's input here");
}

#[test]
fn bad_parameters_are_errors_at_their_place() {
    let with = |parameters: Value| http(json!({"parameters": parameters}));
    for (parameters, expected) in [
        (json!({"type": "objekt"}), "L070 /parameters/type"),
        (json!({"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}), "L070 /parameters/properties/a/$ref"),
        (json!({"properties": {"a": {"pattern": "("}}}), "L070 /parameters/properties/a/pattern"),
        (json!({"type": "string"}), "L071 /parameters/type"),
        (
            json!({"properties": {"a": {}}, "required": ["b"], "additionalProperties": false}),
            "L071 /parameters/required",
        ),
        (json!({"properties": {"a": false}, "required": ["a"]}), "L071 /parameters/properties/a"),
        (json!({"minProperties": 2, "maxProperties": 1}), "L071 /parameters/minProperties"),
    ] {
        assert_reported(with(parameters), true, expected);
    }
}

#[test]
fn all_faults_of_an_action_are_reported_at_once() {
    let action = http(
        json!({"url": "ftp://x/{{a", "headers": {"A B": "{{x"}, "query": {"q": "{{#if}}"}, "body": ["{{log y}}"], "parameters": {"type": 7}}),
    );
    let codes: Vec<String> = reported(action).iter().map(|fault| fault.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(
        codes,
        [
            "L050 /url",
            "L074 /url",
            "L075 /headers/A B",
            "L050 /headers/A B",
            "L050 /query/q",
            "L051 /body/0",
            "L070 /parameters/type"
        ]
    );
}

#[test]
fn what_runs_is_written_out() {
    let command = |fields: Value| {
        let mut action = action("command", json!({"program": "git"}));
        for (name, value) in fields.as_object().unwrap() {
            action[name] = value.clone();
        }
        action
    };
    let tool = tool(command(
        json!({"args": ["log", "{{range}}"], "stdin": "{{text}}", "env": {"A": "orgconfig:k {{x}}", "PATH": "/bin"}}),
    ));
    assert_eq!(tool.parameters.properties(), ["range", "text", "x"]);
    assert!(!tool.idempotent);
    assert_reported(command(json!({"program": "{{p}}"})), true, "L078 /program");
    assert_reported(command(json!({"cwd": "a/{{p}}"})), true, "L078 /cwd");
    assert_reported(command(json!({"env": {"A=B": "x"}})), true, "L078 /env/A=B");
    for name in ["PATH", "LD_PRELOAD", "ld_library_path", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "NODE_OPTIONS"] {
        assert_reported(command(json!({"env": {(name): "/x:{{p}}"}})), true, &format!("L105 /env/{name}: p: "));
    }
    assert_reported(
        command(json!({"env": {"PATH": "{{input.path}}"}})),
        true,
        "L105 /env/PATH: input.path: `PATH` decides which programs run, and `input.path` is the run's input",
    );
    assert!(
        reported(command(json!({"env": {"PATH": "orgconfig:path", "GIT_PAGER": "cat", "TICKET": "{{id}}"}})))
            .is_empty()
    );
}

#[test]
fn the_declaration_tightens_the_action_and_the_action_wins_over_the_loop() {
    let fields = json!({"timeout_ms": 5, "idempotent": false, "on_uncertain": "retry"});
    let (plain, _) = compile(http(fields.clone())).unwrap();
    assert_eq!(
        (plain.timeout_ms, plain.idempotent, plain.on_uncertain),
        (5, false, Some(crate::language::action::OnUncertain::Retry))
    );
    assert_eq!((plain.description.as_str(), plain.approval.always, plain.max_calls), ("Does it.", false, None));
    let declaration = json!({"name": "mine", "description": "Mine.", "timeout_ms": 7, "requires_approval": true, "max_calls": 2, "polling": true});
    let (own, _) = compile_as(declaration, http(fields)).unwrap();
    assert_eq!((own.name.as_str(), own.description.as_str(), own.timeout_ms), ("mine", "Mine.", 5));
    assert_eq!((own.approval.always, own.max_calls, own.polling), (true, Some(2), true));
    // The limits of an action for its own calls can't be loosened.
    let floor = json!({"requires_approval": true, "max_calls": 3, "timeout_ms": 9});
    let (own, _) = compile_as(
        json!({"name": "t", "requires_approval": false, "max_calls": 8, "timeout_ms": 10}),
        http(floor.clone()),
    )
    .unwrap();
    assert_eq!((own.approval.always, own.max_calls, own.timeout_ms), (true, Some(3), 9));
    let (own, _) = compile_as(json!({"name": "t", "max_calls": 2, "timeout_ms": 4}), http(floor.clone())).unwrap();
    assert_eq!((own.approval.always, own.max_calls, own.timeout_ms), (true, Some(2), 4));
    let (own, _) = compile(http(floor)).unwrap();
    assert_eq!((own.approval.always, own.max_calls, own.timeout_ms), (true, Some(3), 9));
    assert_eq!(compile(http(json!({}))).unwrap().0.timeout_ms, 30_000);
    for (method, idempotent) in
        [("GET", true), ("HEAD", true), ("PUT", true), ("DELETE", true), ("POST", false), ("PATCH", false)]
    {
        assert_eq!(tool(http(json!({"http_method": method}))).idempotent, idempotent, "{method}");
    }
    let write = tool(action("db", json!({"datasource": "d", "query": "q", "read_only": false})));
    assert!(!write.idempotent);
}

#[test]
fn a_tool_without_a_description_gets_a_plain_one_and_a_warning() {
    for (action, expected) in [
        (
            json!({"kind": "http", "action_name": "a", "url": "https://h/{{id}}?key=orgconfig:k", "http_method": "GET"}),
            "Sends a GET request to https://h/{id}.",
        ),
        (json!({"kind": "llm", "action_name": "a", "template": "x"}), "Asks a language model."),
        (
            json!({"kind": "db", "action_name": "a", "datasource": "orders", "query": "q"}),
            "Reads from the database orders.",
        ),
        (
            json!({"kind": "command", "action_name": "a", "program": "git", "description": "  "}),
            "Runs the program git.",
        ),
    ] {
        let (tool, warnings) = compile(action).unwrap();
        assert_eq!(tool.description, expected);
        assert_eq!(
            (warnings.len(), warnings[0].code, warnings[0].severity),
            (1, codes::NO_DESCRIPTION, Severity::Warning)
        );
    }
}

/// An action with more fields.
fn with(mut action: Value, more: Value) -> Value {
    let fields = more.as_object().unwrap().clone();
    action.as_object_mut().unwrap().extend(fields);
    action
}

#[test]
fn a_matcher_takes_what_it_does_not_have_and_may_be_given_what_it_has() {
    let schema = |action: Value| {
        let (tool, _) =
            compile(with(json!({"kind": "matcher", "action_name": "m", "description": "M."}), action)).unwrap();
        assert!(tool.idempotent && tool.read_only && tool.variables().iter().all(|variable| variable.optional));
        let names: Vec<String> = tool.parameters.properties().into_iter().map(str::to_owned).collect();
        (names, tool.parameters.required().into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let (names, required) = schema(json!({}));
    assert_eq!((names.len(), required), (11, vec!["left".to_owned(), "right".to_owned(), "matchOn".to_owned()]));
    let (names, required) = schema(json!({"left": "@input.invoices", "right": "@payments", "matchOn": ["id"]}));
    assert!(names.contains(&"invoices".to_owned()) && names.contains(&"payments".to_owned()) && required.is_empty());
    // One name for two lists, or for a setting, says nothing.
    let (_, required) =
        schema(json!({"left": "@input.a", "right": "@input.b", "matchOn": ["id"], "fuzzyThreshold": 80}));
    assert_eq!(required, ["descriptionKey"]);
    let (names, _) = schema(json!({"left": "@input.a.rows", "right": "@input.b.rows", "matchOn": ["id"]}));
    assert_eq!(names.len(), 11);
    let (names, _) = schema(json!({"left": "@input.tolerance", "right": "@input.left"}));
    assert_eq!(names.len(), 11);
}

#[test]
fn a_table_says_which_tables_and_what_may_be_done_with_them() {
    let table = |more: Value| {
        compile(with(json!({"kind": "custom-table", "action_name": "t", "description": "T."}), more)).unwrap().0
    };
    let read = table(json!({"tables": ["orders"]}));
    assert!(read.idempotent && read.read_only && read.datasource() == Some("tables"));
    let faults = |tool: &Tool, input: Value| tool.parameters.faults(&input).len();
    assert_eq!(faults(&read, json!({"table": "orders", "operation": "read"})), 0);
    assert_eq!(faults(&read, json!({"table": "notes", "operation": "write"})), 2);
    let write = table(json!({"tables": ["orders"], "read_only": false}));
    assert!(!write.idempotent && !write.read_only);
    assert_eq!(faults(&write, json!({"table": "orders", "operation": "upsert", "keys": ["id"], "values": [1]})), 0);
    assert_eq!(write.description, "T.");
}

#[test]
fn an_embedded_tool_is_declared_like_any_other() {
    let declaration: ActionTool = serde_json::from_value(json!({"name": "f", "requires_approval": true})).unwrap();
    let properties: ReactProperties = serde_json::from_value(json!({"objective": "o", "tools": []})).unwrap();
    let signature = |parameters| ToolSignature {
        name: "f".to_owned(),
        description: "Adds.".to_owned(),
        parameters,
        idempotent: true,
        read_only: false,
    };
    let parameters = json!({"type": "object", "properties": {"a": {}}});
    let tool = embedded(&signature(parameters), &declaration, &properties).unwrap();
    assert_eq!((tool.name.as_str(), tool.description.as_str(), tool.idempotent), ("f", "Adds.", true));
    assert!(matches!(tool.kind, ToolKind::Embedded(_)));
    let faults = embedded(&signature(json!({"type": "array"})), &declaration, &properties).unwrap_err();
    assert_eq!((faults[0].code, faults[0].pointer.as_str()), (codes::NO_OBJECT, "/type"));
}
