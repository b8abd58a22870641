//! Requests against servers that refuse what the servers of the providers refuse, with their words.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};

use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, Ran};

/// The providers with a server.
const PROVIDERS: [&str; 4] = ["openai", "openai-responses", "anthropic", "gemini"];

/// What a model says in one turn.
#[derive(Clone)]
enum Turn {
    /// It calls the tool that the request names first, with this input.
    Call(Value),
    /// It answers.
    Text(&'static str),
}

const DONE: Turn = Turn::Text("The order is on its way.");

/// Why a server refuses a request; none when it takes it.
type Rule = fn(&Value) -> Option<String>;

/// The model `m` of a provider, at a server that refuses by a rule, and the tool at the same server.
struct Provided {
    place: Place,
    server: Arc<Server>,
    provider: &'static str,
}

fn reply(provider: &str, turn: &Turn, request: &Value, number: usize) -> Answer {
    let id = format!("call_{number}");
    let name = tools(request).first().and_then(|tool| tool["name"].as_str()).unwrap_or("lookup").to_owned();
    Answer::json(&match (provider, turn) {
        ("openai", Turn::Call(input)) => json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": null, "tool_calls": [{ "id": id, "type": "function",
                "function": { "name": name, "arguments": input.to_string() } }] } }] }),
        ("openai", Turn::Text(text)) => json!({ "choices": [{ "index": 0, "finish_reason": "stop",
            "message": { "role": "assistant", "content": text } }] }),
        ("openai-responses", Turn::Call(input)) => json!({ "status": "completed", "output": [{ "type": "function_call",
            "status": "completed", "call_id": id, "name": name, "arguments": input.to_string() }] }),
        ("openai-responses", Turn::Text(text)) => json!({ "status": "completed", "output": [{ "type": "message",
            "role": "assistant", "status": "completed", "content": [{ "type": "output_text", "text": text }] }] }),
        ("anthropic", Turn::Call(input)) => json!({ "type": "message", "role": "assistant", "stop_reason": "tool_use",
            "content": [{ "type": "tool_use", "id": id, "name": name, "input": input }] }),
        ("anthropic", Turn::Text(text)) => json!({ "type": "message", "role": "assistant", "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": text }] }),
        (_, Turn::Call(input)) => json!({ "candidates": [{ "finishReason": "STOP", "content": { "role": "model",
            "parts": [{ "functionCall": { "name": name, "args": input } }] } }] }),
        (_, Turn::Text(text)) => json!({ "candidates": [{ "finishReason": "STOP", "content": { "role": "model",
            "parts": [{ "text": text }] } }] }),
    })
}

/// The tools of a request, each with its `name`, its `description` and its `parameters`.
fn tools(request: &Value) -> Vec<Value> {
    let list = request["tools"].as_array().cloned().unwrap_or_default();
    let one = |tool: &Value| {
        let tool = tool.get("function").unwrap_or(tool);
        let schema = ["parameters", "input_schema", "parametersJsonSchema"].into_iter().find_map(|name| tool.get(name));
        json!({ "name": tool["name"], "description": tool["description"], "parameters": schema })
    };
    match list.first().and_then(|first| first["functionDeclarations"].as_array()) {
        Some(declared) => declared.iter().map(one).collect(),
        None => list.iter().map(one).collect(),
    }
}

fn refused(provider: &str, words: &str) -> Answer {
    let error = match provider {
        "gemini" => json!({ "code": 400, "message": words, "status": "INVALID_ARGUMENT" }),
        "anthropic" => json!({ "type": "invalid_request_error", "message": words }),
        _ => json!({ "message": words, "type": "invalid_request_error", "param": null, "code": null }),
    };
    Answer::json(&json!({ "type": "error", "error": error })).status(400)
}

impl Provided {
    fn new(provider: &'static str, model: &Value, turns: &[Turn], rule: Rule) -> Self {
        let (asked, turns) = (AtomicUsize::new(0), turns.to_vec());
        let server = Server::reading(move |_, request: &Request| {
            if !request.path.starts_with("/v1") {
                return Answer::json("{\"ok\":true}");
            }
            let body = request.json();
            if let Some(words) = rule(&body) {
                return refused(provider, &words);
            }
            let number = asked.fetch_add(1, Ordering::SeqCst);
            reply(provider, turns.get(number).unwrap_or(&DONE), &body, number)
        });
        let place = Place::new();
        let mut declared =
            json!({ "provider": provider, "base_url": format!("{}/v1", server.url()), "model": "fake-1" });
        for (name, value) in model.as_object().expect("an object") {
            declared[name] = value.clone();
        }
        let allow = json!({ "private_addresses": true });
        place.json("loopctl.json", &json!({ "allow": allow, "model": "m", "models": { "m": declared } }));
        Self { place, server: Arc::new(server), provider }
    }

    /// A loop with these properties, and actions with this in each.
    fn looped(self, properties: &Value, actions: &[Value]) -> Self {
        let actions: Vec<Value> = actions
            .iter()
            .enumerate()
            .map(|(at, more)| {
                let mut action = json!({ "action_name": format!("tool_{at}"), "kind": "http", "description": "Looks.",
                    "url": format!("{}/look", self.server.url()), "http_method": "GET" });
                for (name, value) in more.as_object().expect("an object") {
                    action[name] = value.clone();
                }
                action
            })
            .collect();
        let tools: Vec<Value> =
            actions.iter().map(|action| json!({ "type": "action", "name": action["action_name"] })).collect();
        let mut looped = json!({ "mode": "react", "objective": "Look the order up.", "tools": tools,
            "dialect": "tool_calls", "retry": { "attempts": 1 } });
        for (name, value) in properties.as_object().expect("an object") {
            looped[name] = value.clone();
        }
        self.place.json("loop.json", &json!({ "type": "loop", "properties": looped, "actions": actions }));
        self
    }

    fn ran(&self) -> Ran {
        self.place.call(&["run", "loop.json", "--output", "json", "--store", "memory"])
    }

    /// The result of a run that completes.
    fn completes(&self) -> Value {
        let ran = self.ran();
        assert!(!ran.stdout.is_empty(), "{}: {ran:#?}", self.provider);
        let result = ran.json();
        assert_eq!(result["status"], "completed", "{}: {result:#}", self.provider);
        result
    }

    fn asked(&self) -> Vec<Value> {
        let requests = self.server.requests().into_iter();
        requests.filter(|request| request.path.starts_with("/v1")).map(|request| request.json()).collect()
    }

    fn called(&self) -> Vec<String> {
        let requests = self.server.requests().into_iter();
        requests.filter(|request| !request.path.starts_with("/v1")).map(|request| request.path).collect()
    }

    /// What `check` reports.
    fn checked(&self) -> String {
        let ran = self.place.call(&["check", "loop.json"]);
        ran.stdout + &ran.stderr
    }
}

/// A reference that leads nowhere, or that has something beside it, which Gemini's servers refuse.
fn bad_reference(part: &Value, root: &Value) -> Option<String> {
    match part {
        Value::Array(parts) => parts.iter().find_map(|part| bad_reference(part, root)),
        Value::Object(members) => {
            let pointer = members.get("$ref").and_then(Value::as_str);
            if pointer.is_some_and(|pointer| root.pointer(pointer.trim_start_matches('#')).is_none()) {
                return Some(format!("reference {pointer:?} can't be resolved"));
            }
            if pointer.is_some() && members.len() > 1 {
                return Some("no other field can stand beside `$ref`".to_owned());
            }
            members.values().find_map(|part| bad_reference(part, root))
        }
        _ => None,
    }
}

#[test]
fn references_in_a_schema_lead_somewhere_and_stand_alone() {
    let order = json!({ "type": "object", "properties": { "kind": { "const": "order" },
        "size": { "$ref": "#/$defs/size", "description": "How large." }, "name": { "type": "string" } } });
    let refund = json!({ "type": "object", "properties": { "kind": { "const": "refund" },
        "größe": { "$ref": "#/$defs/size" }, "who": { "$ref": "#/anyOf/0/properties/name" } } });
    let parameters = json!({ "type": "object", "$defs": { "size": { "type": "integer" } }, "anyOf": [order, refund] });
    for provider in PROVIDERS {
        let rule: Rule =
            |request| tools(request).iter().find_map(|tool| bad_reference(&tool["parameters"], &tool["parameters"]));
        let turns = [Turn::Call(json!({ "kind": "refund", "gr__e": 7, "who": "Ann" })), DONE];
        let actions = [json!({ "http_method": "POST", "parameters": parameters })];
        let played = Provided::new(provider, &json!({}), &turns, rule).looped(&json!({}), &actions);
        played.completes();
        let sent = tools(&played.asked()[0]);
        assert!(sent[0]["parameters"]["$defs"].get("anyOf_0").is_some(), "{provider}: {sent:#?}");
        let called = played.server.requests().into_iter().find(|request| !request.path.starts_with("/v1"));
        let called = called.expect("the tool was called").json();
        assert_eq!(called, json!({ "kind": "refund", "größe": 7, "who": "Ann" }), "{provider}");
    }
}

#[test]
fn a_tool_whose_name_begins_with_a_digit_is_taken_and_called_by_every_provider() {
    for provider in PROVIDERS {
        let rule: Rule = |request| {
            let named = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
            let begins = |name: &String| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            let bad = tools(request).iter().map(named).find(|name| !begins(name))?;
            Some(format!("Invalid function name. Must start with a letter or an underscore: {bad}"))
        };
        let turns = [Turn::Call(json!({})), DONE];
        let actions = [json!({ "action_name": "21st_magic" }), json!({ "action_name": "_21st_magic" })];
        let played = Provided::new(provider, &json!({}), &turns, rule).looped(&json!({}), &actions);
        let result = played.completes();
        let names: Vec<Value> = tools(&played.asked()[0]).iter().map(|tool| tool["name"].clone()).take(2).collect();
        assert_eq!(names, ["_21st_magic_2", "_21st_magic"], "{provider}");
        assert_eq!(played.called().len(), 1, "{provider}: {result:#}");
        assert!(played.checked().contains("the model sees the tool `21st_magic` as `_21st_magic_2`"));
    }
}

/// What OpenAI's servers, and those of others, refuse of a schema: the words of the first fault.
fn bad_schema(schema: &Value, at: &str) -> Option<String> {
    let members = schema.as_object()?;
    let is = |kind: &str| match members.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        Some(one) => one == kind,
        None => false,
    };
    if is("object") && !members.get("properties").is_some_and(Value::is_object) {
        return Some(format!("In context=({at}), object schema missing properties."));
    }
    if is("array") && !members.get("items").is_some_and(Value::is_object) {
        return Some(format!("In context=({at}), array schema missing items."));
    }
    let named = members.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, part) in named {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            return Some("Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'".to_owned());
        }
        if !part.is_object() {
            return Some(format!("{part} is not of type 'object'"));
        }
        if let Some(fault) = bad_schema(part, &format!("{at}.{name}")) {
            return Some(fault);
        }
    }
    let required = members.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if is("object") && members["properties"].get(name).is_none() {
            return Some(format!("required: property `{name}` is not defined"));
        }
    }
    let lists = ["anyOf", "oneOf", "allOf", "prefixItems"].into_iter().filter_map(|name| members.get(name)?.as_array());
    let maps = ["$defs", "definitions"].into_iter().filter_map(|name| members.get(name)?.as_object());
    let parts = lists.flatten().chain(maps.flat_map(Map::values)).chain(members.get("items"));
    parts.filter_map(|part| bad_schema(part, at)).next()
}

/// What a request's tools have that a provider does not take.
fn bad_tools(request: &Value) -> Option<String> {
    for tool in tools(request) {
        let schema = &tool["parameters"];
        let top =
            ["oneOf", "anyOf", "allOf", "enum", "not", "$ref"].into_iter().find(|name| schema.get(*name).is_some());
        if top.is_some() || schema["type"] != "object" {
            let words =
                "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.";
            return Some(format!("Invalid schema for function {}: {words}", tool["name"]));
        }
        if let Some(fault) = bad_schema(schema, "") {
            return Some(format!("Invalid schema for function {}: {fault}", tool["name"]));
        }
    }
    None
}

#[test]
fn what_is_derived_for_a_tool_is_taken_by_each_provider() {
    for provider in PROVIDERS {
        let sql = json!({ "parameters": { "type": "object", "properties": { "ids": { "type": "array" },
            "more": { "type": "object" }, "any": true }, "required": ["other"] } });
        let provided = Provided::new(provider, &json!({}), &[Turn::Call(json!({ "ids": [1], "other": 1 }))], bad_tools)
            .looped(&json!({}), &[sql, json!({}), json!({ "parameters": { "type": "object" } })]);
        provided.completes();
        let asked = &provided.asked()[0];
        let simplest = tools(asked).into_iter().find(|tool| tool["name"] == "tool_1").expect("the tool");
        assert_eq!(simplest["parameters"]["properties"], json!({}), "{provider}");
        assert_eq!(provided.called().len(), 1, "{provider}");
    }
}

#[test]
fn alternatives_at_the_top_become_members_and_are_validated_all_the_same() {
    let members = json!({ "id": { "type": "string" }, "email": { "type": "string" } });
    let either = json!([{ "required": ["id"] }, { "required": ["email"] }]);
    for schema in [
        json!({ "type": "object", "properties": members, "oneOf": either }),
        json!({ "anyOf": [{ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] },
            { "$ref": "#/$defs/mail" }],
            "$defs": { "mail": { "type": "object", "properties": { "email": { "type": "string" } },
                "required": ["email"] } } }),
        json!({ "$ref": "#/$defs/all", "$defs": { "all": { "type": "object", "properties": members, "anyOf": either } } }),
        json!({ "allOf": [{ "type": "object", "properties": members }, { "oneOf": either }] }),
    ] {
        for provider in PROVIDERS {
            let turns = [Turn::Call(json!({})), Turn::Call(json!({ "id": "7" }))];
            let provided = Provided::new(provider, &json!({}), &turns, bad_tools)
                .looped(&json!({}), &[json!({ "parameters": schema })]);
            provided.completes();
            assert_eq!(provided.called(), ["/look?id=7"], "{provider} {schema}: a call with neither is not made");
            let tool = tools(&provided.asked()[0]).remove(0);
            for member in ["id", "email"] {
                assert_eq!(
                    tool["parameters"]["properties"][member],
                    json!({ "type": "string" }),
                    "{provider} {schema}"
                );
            }
            assert!(tool.to_string().contains("must match this JSON Schema too"), "{provider} {schema}: {tool:#}");
        }
    }
}

#[test]
fn parameters_have_names_that_each_provider_takes_and_their_own_in_calls() {
    let long = "n".repeat(70);
    let inner = json!({ "type": "object", "properties": { "größe": { "type": "string" }, "a b": { "type": "string" } },
        "required": ["größe"] });
    let schema = json!({ "type": "object", "properties": { "größe": { "type": "string" }, "gr__e": { "type": "string" },
        "liste": { "type": "array", "items": { "$ref": "#/$defs/größer" } }, long.clone(): { "type": "integer" } },
        "required": ["größe"], "$defs": { "größer": inner } });
    let action = json!({ "http_method": "POST", "parameters": schema });
    for provider in PROVIDERS {
        let input = json!({ "gr__e_2": "7", "gr__e": "own", "liste": [{ "gr__e_2": "in", "gr__e": "free", "a_b": "x" }],
            "n".repeat(64): 3 });
        let provided = Provided::new(provider, &json!({}), &[Turn::Call(input)], bad_tools)
            .looped(&json!({}), std::slice::from_ref(&action));
        let result = provided.completes();
        let tool = tools(&provided.asked()[0]).remove(0);
        let sent = &tool["parameters"];
        assert_eq!(sent["required"], json!(["gr__e_2"]), "{provider}");
        assert_eq!(sent["properties"]["gr__e_2"]["description"], "größe", "{provider}");
        let requests = provided.server.requests();
        let made = requests.iter().find(|request| request.path == "/look").expect("the call").json();
        let own = json!({ "größe": "7", "gr__e": "own", long.clone(): 3,
            "liste": [{ "größe": "in", "gr__e": "free", "a b": "x" }] });
        assert_eq!(made, own, "{provider}");
        assert_eq!(result["trace"][0]["action_input"], own, "{provider}");
        // The model reads its own words in the conversation.
        assert!(provided.asked()[1].to_string().contains("gr__e_2"), "{provider}");
    }
}

#[test]
fn no_more_tools_descriptions_and_texts_to_stop_at_are_sent_than_a_provider_takes() {
    let limits: Rule = |request| {
        let tools = tools(request);
        if tools.len() > 128 {
            return Some("Invalid 'tools': array too long. Expected an array with maximum length 128".to_owned());
        }
        let long = tools.iter().any(|tool| tool["description"].as_str().unwrap_or_default().chars().count() > 1024);
        long.then(|| "Invalid 'tools[0].function.description': string too long.".to_owned())
    };
    for provider in ["openai", "openai-responses"] {
        let mut actions = vec![json!({}); 130];
        actions[0]["description"] = json!("é".repeat(1_100));
        let provided = Provided::new(provider, &json!({}), &[], limits).looped(&json!({}), &actions);
        provided.completes();
        let sent = tools(&provided.asked()[0]);
        assert!(sent.iter().any(|tool| tool["name"] == "__complete__"), "{provider}");
        let checked = provided.checked();
        assert!(checked.contains("L167") && checked.contains("takes 128 tools in a request"), "{checked}");
        assert!(checked.contains("takes 1024 characters of a description"), "{checked}");
    }
    let stops: Rule = |request| {
        let count = |list: &Value| list.as_array().map_or(0, Vec::len);
        let config = &request["generationConfig"]["stopSequences"];
        (count(&request["stop"]) > 4 || count(config) > 5).then(|| "Invalid 'stop': array too long.".to_owned())
    };
    for (provider, sent) in [("openai", "/stop"), ("gemini", "/generationConfig/stopSequences")] {
        let model = json!({ "stop": ["END", "Q:", "A:", "###"] });
        let provided = Provided::new(provider, &model, &[Turn::Text("<answer>Done.</answer>")], stops)
            .looped(&json!({ "dialect": "tags" }), &[json!({})]);
        provided.completes();
        let stop = provided.asked()[0].pointer(sent).cloned().unwrap_or_default();
        for text in ["END", "Q:", "A:", "###"] {
            assert!(stop.as_array().expect("a list").contains(&json!(text)), "{provider}: {stop}");
        }
    }
}

#[test]
fn a_model_thinks_less_than_its_whole_reply() {
    let rule: Rule = |request| {
        let budget = request["thinking"]["budget_tokens"].as_u64()?;
        let is_bad = budget < 1_024 || budget >= request["max_tokens"].as_u64().unwrap_or(0);
        is_bad.then(|| "`max_tokens` must be greater than `thinking.budget_tokens`.".to_owned())
    };
    let model = json!({ "thinking": { "type": "enabled", "budget_tokens": 4_096 }, "model": "claude-sonnet-4-5" });
    for (most, budget) in [(json!(3_000), json!(1_500)), (json!(1_500), json!(1_024)), (json!(1_000), Value::Null)] {
        let provided =
            Provided::new("anthropic", &model, &[], rule).looped(&json!({ "max_tokens": most }), &[json!({})]);
        provided.completes();
        assert_eq!(provided.asked()[0]["thinking"]["budget_tokens"], budget);
        assert!(provided.checked().contains("L167"), "{}", provided.checked());
    }
    let provided = Provided::new("anthropic", &model, &[], rule).looped(&json!({ "max_tokens": 8_000 }), &[json!({})]);
    provided.completes();
    assert_eq!(provided.asked()[0]["thinking"], model["thinking"], "unchanged where it fits");
    assert!(!provided.checked().contains("L167"));
}

/// The words of a strict template, where two messages of one role follow each other.
fn roles_take_turns(request: &Value) -> Option<String> {
    let list = ["messages", "input", "contents"].into_iter().find_map(|name| request[name].as_array())?;
    let roles: Vec<&str> = list.iter().filter_map(|message| message["role"].as_str()).collect();
    let bad = roles.windows(2).any(|pair| pair[0] == pair[1])
        || roles.iter().find(|role| **role != "system").is_some_and(|first| *first != "user");
    bad.then(|| "Conversation roles must alternate user/assistant/user/assistant/...".to_owned())
}

#[test]
fn user_and_assistant_take_turns_in_each_request() {
    let turn = Turn::Text("{\"thought\": \"Now.\", \"action\": \"tool_0\", \"action_input\": {\"x\": 0}}");
    let other = Turn::Text("{\"thought\": \"Then.\", \"action\": \"tool_0\", \"action_input\": {\"x\": 1}}");
    let last =
        Turn::Text("{\"thought\": \"Done.\", \"action\": \"__complete__\", \"action_input\": {\"answer\": \"Yes.\"}}");
    let action = json!({ "parameters": { "type": "object", "properties": { "x": { "type": "integer" } } } });
    for provider in PROVIDERS {
        let turns = [turn.clone(), other.clone(), last.clone()];
        let provided = Provided::new(provider, &json!({ "constrain": "off" }), &turns, roles_take_turns).looped(
            &json!({ "dialect": "json", "max_iterations": 2, "on_limit": "answer" }),
            std::slice::from_ref(&action),
        );
        let result = provided.completes();
        assert_eq!(result["result"]["answer"], "Yes.", "{provider}: {result:#}");
        assert_eq!(provided.asked().len(), 3, "{provider}");
    }
}

#[test]
fn ids_of_calls_are_as_each_server_takes_them() {
    let action = json!({ "parameters": { "type": "object", "properties": { "x": { "type": "integer" } } } });
    let nine: Rule = |request| {
        let ids = ids(request);
        let fits = |id: &String| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let bad = ids.iter().find(|id| !fits(id))?;
        Some(format!("Tool call id was {bad} but must be a-z, A-Z, 0-9, with a length of 9."))
    };
    // The words of the templates that other servers run.
    let template: Rule = |request| {
        let fits = |id: &String| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let bad = ids(request).iter().any(|id| !fits(id));
        bad.then(|| "Tool call IDs should be alphanumeric strings with length 9!".to_owned())
    };
    // The server's own ids (`call_0`) are no nine signs: learned from the refusal, and known by the name of a model.
    for (model, nine, requests) in
        [("fake-1", nine, 4), ("fake-1", template, 4), ("mistral-large-latest", nine, 3), ("Ministral-8B", template, 3)]
    {
        let turns = [Turn::Call(json!({ "x": 1 })), Turn::Call(json!({ "x": 2 }))];
        let provided = Provided::new("openai", &json!({ "model": model }), &turns, nine)
            .looped(&json!({}), std::slice::from_ref(&action));
        provided.completes();
        let asked = provided.asked();
        assert_eq!(asked.len(), requests, "{model}");
        let ids = ids(asked.last().expect("a request"));
        assert_eq!((&ids[0], &ids[2]), (&ids[1], &ids[3]), "a call and its result have one id");
        assert_ne!(ids[0], ids[2]);
    }
}

#[test]
fn a_template_that_wants_turns_is_given_one_between_a_result_and_a_message() {
    let rule: Rule = |request| {
        let counts = |message: &&Value| match message["role"].as_str() {
            Some("user") => true,
            Some("assistant") => message["tool_calls"].as_array().is_none_or(Vec::is_empty),
            _ => false,
        };
        let list = request["messages"].as_array()?.iter().filter(counts);
        let bad = list.enumerate().any(|(at, message)| message["role"] != ["user", "assistant"][at % 2]);
        bad.then(|| {
            "After the optional system message, conversation roles must alternate user and assistant roles except for tool \
             calls and results."
                .to_owned()
        })
    };
    let turns = [Turn::Call(json!({ "x": 1 })), Turn::Call(json!({ "x": 2 })), Turn::Text("Yes.")];
    let action = json!({ "parameters": { "type": "object", "properties": { "x": { "type": "integer" } } } });
    let provided = Provided::new("openai", &json!({}), &turns, rule).looped(
        &json!({ "dialect": "tool_calls", "max_iterations": 2, "on_limit": "answer" }),
        std::slice::from_ref(&action),
    );
    let result = provided.completes();
    assert_eq!((&result["result"]["answer"], provided.asked().len()), (&json!("Yes."), 4), "{result:#}");
}

/// The ids of calls and of their results, in their order.
fn ids(request: &Value) -> Vec<String> {
    let mut ids = Vec::new();
    for message in request["messages"].as_array().into_iter().flatten() {
        let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]);
        ids.extend(calls.chain(message.get("tool_call_id")).filter_map(Value::as_str).map(str::to_owned));
    }
    ids
}

#[test]
fn no_temperature_is_sent_that_nobody_wrote() {
    let rule: Rule = |request| {
        let text = request.to_string();
        let has = ["temperature", "topP", "topK"].iter().any(|name| text.contains(&format!("\"{name}\":")));
        has.then(|| "Request contains an invalid argument.".to_owned())
    };
    for provider in PROVIDERS {
        let provided = Provided::new(provider, &json!({}), &[], rule).looped(&json!({}), &[json!({})]);
        provided.completes();
        assert_eq!(provided.asked().len(), 1, "{provider}");
        // A written one is sent; a refusal without a name is cured once.
        let provided = Provided::new(provider, &json!({}), &[Turn::Call(json!({})), DONE], rule)
            .looped(&json!({ "temperature": 0.2 }), &[json!({})]);
        provided.completes();
        let sent: Vec<bool> = provided.asked().iter().map(|asked| asked.to_string().contains("temperature")).collect();
        assert_eq!(sent, [true, false, false], "{provider}");
    }
}

#[test]
fn a_refused_setting_is_left_out_in_whatever_words_it_is_refused() {
    const WORDS: [&str; 9] = [
        "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
        "`temperature` is deprecated for this model.",
        "invalid temperature: only 1 is allowed for this model",
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        "The temperature parameter must be set to 1",
        "temperature: fixed sampling",
        "Argument not supported on this model: temperature",
        "Model fake-1 does not support parameter temperature.",
        "Extra inputs are not permitted: temperature",
    ];
    const fn rule<const AT: usize>() -> Rule {
        |request| request.to_string().contains("\"temperature\":").then(|| WORDS[AT].to_owned())
    }
    let rules: [Rule; 9] = [
        rule::<0>(),
        rule::<1>(),
        rule::<2>(),
        rule::<3>(),
        rule::<4>(),
        rule::<5>(),
        rule::<6>(),
        rule::<7>(),
        rule::<8>(),
    ];
    for provider in PROVIDERS {
        for (rule, words) in rules.into_iter().zip(WORDS) {
            let provided = Provided::new(provider, &json!({}), &[Turn::Call(json!({})), DONE], rule)
                .looped(&json!({ "temperature": 0.2 }), &[json!({})]);
            provided.completes();
            assert_eq!(provided.asked().len(), 3, "{provider}: {words}");
        }
    }
    // One that names a setting and is about something else stays one, and the setting is sent again.
    let other: Rule = |_| Some("bad request: {\"temperature\": 0.2, \"mesages\": []}".to_owned());
    let provided = Provided::new("openai", &json!({}), &[], other).looped(&json!({ "temperature": 0.2 }), &[json!({})]);
    assert_eq!(provided.ran().json()["status"], "failed");
    assert_eq!(provided.asked().len(), 2);
}

#[test]
fn anthropic_gets_top_p_alone() {
    let rule: Rule = |request| {
        let both = request.get("temperature").is_some() && request.get("top_p").is_some();
        both.then(|| "`temperature` and `top_p` cannot both be specified for this model.".to_owned())
    };
    let model = json!({ "model": "claude-sonnet-4-5", "top_p": 0.9 });
    for properties in [json!({}), json!({ "temperature": 0.2 })] {
        let provided = Provided::new("anthropic", &model, &[], rule).looped(&properties, &[json!({})]);
        provided.completes();
        let asked = provided.asked();
        assert_eq!((asked.len(), &asked[0]["top_p"]), (1, &json!(0.9)));
        assert_eq!(provided.checked().contains("L098"), properties.get("temperature").is_some());
    }
}

#[test]
fn llm_actions_follow_the_same_rules() {
    let rule: Rule = |request| {
        let has = request.to_string().contains("\"temperature\":");
        has.then(|| "Request contains an invalid argument.".to_owned())
    };
    for provider in PROVIDERS {
        for (written, requests) in [(None, 1), (Some(0.2), 2)] {
            let provided = Provided::new(provider, &json!({}), &[Turn::Text("Dear Ann")], rule);
            let mut action =
                json!({ "action_name": "ask", "kind": "llm", "description": "Asks.", "template": "Write." });
            if let Some(written) = written {
                action["temperature"] = json!(written);
            }
            provided.place.json("actions/ask.json", &action);
            let step = json!({ "type": "ask", "properties": {}, "outputKey": "a" });
            provided.place.json(
                "flow.json",
                &json!({ "name": "flow",
                "definition": { "actions": [step], "output": "@a" } }),
            );
            let ran = provided.place.call(&["run", "flow.json", "--output", "json", "--store", "memory"]);
            assert_eq!(ran.json()["status"], "completed", "{provider}: {ran:#?}");
            assert_eq!(provided.asked().len(), requests, "{provider}");
        }
    }
}
