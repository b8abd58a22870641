//! Questions of servers: what a human is asked, and what the server is answered.

#![expect(clippy::needless_pass_by_value, reason = "a test writes its values where it passes them")]

use super::*;

fn by() -> AskingServer {
    AskingServer { mcp_server: "crm".to_owned(), tool: "create_lead".to_owned() }
}

fn asked(requests: Value) -> Result<ServerQuestion, String> {
    ServerQuestion::of(by(), &json!({ "resultType": "input_required", "inputRequests": requests, "requestState": "s" }))
}

fn form(schema: Value) -> Value {
    json!({ "method": "elicitation/create", "params": { "message": "Which?", "requestedSchema": schema } })
}

fn answered(question: &ServerQuestion, answer: Value) -> Value {
    let decision = Decision::Answer(answer.as_str().map_or_else(|| answer.to_string(), str::to_owned));
    question.accepts(&decision).unwrap();
    Value::Object(question.answered(&decision).responses)
}

fn refused(question: &ServerQuestion, answer: &str) -> String {
    question.accepts(&Decision::Answer(answer.to_owned())).unwrap_err().to_string()
}

#[test]
fn each_property_is_a_field_and_the_answer_has_the_types_that_the_server_wants() {
    let question = asked(json!({ "who": form(json!({ "type": "object", "required": ["name", "size"], "properties": {
        "name": { "type": "string", "title": "Name", "description": "Of the account", "minLength": 2 },
        "size": { "type": "integer", "minimum": 1, "maximum": 9 },
        "rate": { "type": "number" },
        "open": { "type": "boolean", "default": true },
        "due": { "type": "string", "format": "date" },
        "tier": { "type": "string", "oneOf": [{ "const": "a", "title": "Alpha" }, { "const": "b", "title": "Beta" }] },
        "level": { "enum": [1, 2], "default": 2 },
        "tags": { "type": "array", "items": { "enum": ["x", "y"] } },
        "note": { "type": "string", "maxLength": 5000 },
    } })) }))
    .unwrap();
    let kinds: Vec<Value> =
        question.form.fields.iter().map(|field| json!([field.name, field.kind, field.required])).collect();
    assert_eq!(
        Value::from(kinds),
        json!([
            ["name", "text", true],
            ["size", "integer", true],
            ["rate", "number", false],
            ["open", "yes_no", false],
            ["due", "date", false],
            ["tier", "choice", false],
            ["level", "choice", false],
            ["tags", "long_text", false],
            ["note", "long_text", false]
        ])
    );
    assert!(
        question.form.question.starts_with("The MCP server `crm` asks, before it continues with `create_lead`: Which?")
    );
    let tier = &question.form.fields[5];
    assert_eq!(
        (tier.choices.as_slice(), tier.help.as_deref()),
        (&["a".to_owned(), "b".to_owned()][..], Some("a is Alpha, b is Beta"))
    );
    let given = json!({ "name": "Ada", "size": "3", "tier": "b", "tags": "[\"x\"]" });
    assert_eq!(
        answered(&question, given),
        json!({ "who": { "action": "accept", "content": { "name": "Ada", "size": 3, "open": true, "tier": "b", "level": 2,
            "tags": ["x"] } } })
    );
    for (answer, why) in [
        (r#"{"name":"Ada","size":10}"#, "`size`"),
        (r#"{"name":"Ada"}"#, "`size`"),
        (r#"{"name":"A","size":3}"#, "does not fit what the server asks for"),
        (r#"{"name":"Ada","size":3,"tags":"x"}"#, "`tags` is no JSON"),
        (r#"{"name":"Ada","size":3,"tags":"[\"z\"]"}"#, "does not fit what the server asks for"),
        (r#"{"name":"Ada","size":3,"more":1}"#, "`more`"),
        ("Ada", "a form is answered by a JSON object"),
    ] {
        assert!(refused(&question, answer).contains(why), "{answer}: {}", refused(&question, answer));
    }
    assert!(question.accepts(&Decision::Approve).is_err());
    let declined = question.answered(&Decision::Deny(None));
    assert_eq!(
        (Value::Object(declined.responses), declined.request_state),
        (json!({ "who": { "action": "decline" } }), Some("s".to_owned()))
    );
}

#[test]
fn a_lone_value_may_be_written_alone_and_what_wants_none_is_accepted_or_declined() {
    let one = asked(json!({ "who": form(json!({ "properties": { "size": { "type": "integer" } } })) })).unwrap();
    assert_eq!(answered(&one, json!("7")), json!({ "who": { "action": "accept", "content": { "size": 7 } } }));
    assert!(refused(&one, "seven").contains("`size`"));
    let none = asked(json!({ "go": form(json!({ "type": "object", "properties": {} })) })).unwrap();
    assert_eq!(answered(&none, json!("yes")), json!({ "go": { "action": "accept", "content": {} } }));
    assert_eq!(answered(&none, json!({ "accept": false })), json!({ "go": { "action": "decline" } }));
    let url = json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "Sign in.", "url": "https://x.example/a" } });
    let url = asked(json!({ "auth": url })).unwrap();
    assert_eq!(url.form.show["url"], "https://x.example/a");
    assert_eq!(answered(&url, json!({ "done": true })), json!({ "auth": { "action": "accept" } }));
}

#[test]
fn several_requests_are_one_form_with_a_field_for_each_value() {
    let account = form(json!({ "properties": { "name": { "type": "string" } } }));
    let both = asked(json!({ "a": account, "b": account })).unwrap();
    let names: Vec<&str> = both.form.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["a.name", "b.name"]);
    assert_eq!(
        answered(&both, json!({ "a.name": "x" })),
        json!({ "a": { "action": "accept", "content": { "name": "x" } }, "b": { "action": "accept", "content": {} } })
    );
}

#[test]
fn what_no_human_may_be_asked_is_said_and_a_stranger_s_words_are_shown_as_they_are() {
    let many: Map<String, Value> = (0..101).map(|n| (format!("f{n}"), json!({ "type": "string" }))).collect();
    for (requests, why) in [
        (json!({ "s": { "method": "sampling/createMessage" } }), "sampling/createMessage"),
        (json!({ "r": { "method": "roots/list" } }), "roots/list"),
        (json!({}), "asks for nothing"),
        (json!({ "f": form(json!({ "properties": many })) }), "more than 100"),
        (json!({ "f": form(json!({ "description": "x".repeat(70_000) })) }), "64 KiB"),
        (json!({ "u": { "method": "elicitation/create", "params": { "mode": "url" } } }), "gives none"),
    ] {
        assert!(asked(requests.clone()).unwrap_err().contains(why), "{requests}");
    }
    let odd = ServerQuestion::of(by(), &json!({ "inputRequests": {}, "requestState": 7 })).unwrap_err();
    assert!(odd.contains("no text"), "{odd}");
    let message = format!("Hi\u{202e}{}", "x".repeat(5_000));
    let long = json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": {} } });
    let question = asked(json!({ "k": long })).unwrap().form.question;
    assert!(question.contains("Hi\\u{202e}xx") && question.ends_with("(cut)") && question.len() < 4_200, "{question}");
}

#[test]
fn a_question_is_the_same_when_it_is_read_back() {
    let question =
        asked(json!({ "who": form(json!({ "properties": { "n": { "type": "number", "minimum": 1.0 } } })) })).unwrap();
    let text = serde_json::to_string(&question).unwrap();
    assert_eq!(serde_json::from_str::<ServerQuestion>(&text).unwrap(), question);
}

#[test]
fn a_list_of_choices_shows_them_and_takes_a_list() {
    let tags = json!({ "type": "array", "items": { "enum": ["r", "g"] }, "minItems": 1, "maxItems": 2 });
    let titled = json!({ "type": "array", "items": { "anyOf": [{ "const": "s", "title": "Small" }] } });
    let properties = json!({ "tags": tags, "sizes": titled });
    let question =
        asked(json!({ "q": form(json!({ "type": "object", "properties": properties, "required": ["tags"] })) }));
    let question = question.unwrap();
    let help: Vec<&str> = question.form.fields.iter().map(|field| field.help.as_deref().unwrap()).collect();
    assert!(help[0].starts_with(r#"of "r", "g"; at least 1; at most 2; as JSON"#), "{help:?}");
    assert!(help[1].starts_with(r#"of "s" is Small; as JSON"#), "{help:?}");
    for answer in [json!({ "tags": ["r"] }), json!({ "tags": "[\"r\"]" })] {
        assert_eq!(answered(&question, answer)["q"]["content"], json!({ "tags": ["r"] }));
    }
    assert!(refused(&question, r#"{"tags": ["x"]}"#).contains("does not fit"));
    // A text takes no list.
    let text = asked(
        json!({ "q": form(json!({ "type": "object", "properties": { "note": { "type": "string", "maxLength": 5000 } } })) }),
    );
    assert!(refused(&text.unwrap(), r#"{"note": ["x"]}"#).contains("is no text"));
}

#[test]
fn a_number_is_chosen_as_it_is_and_choices_that_read_alike_are_one() {
    let properties = json!({ "a": { "type": "integer", "enum": [1, 2] }, "b": { "enum": ["1", 1] }, "c": { "const": "only" }, "d": { "enum": [true, false] } });
    let question = asked(json!({ "q": form(json!({ "type": "object", "properties": properties })) })).unwrap();
    let choices: Vec<Value> = question.form.fields.iter().map(|field| json!(field.choices)).collect();
    assert_eq!(Value::from(choices), json!([["1", "2"], ["1"], ["only"], ["true", "false"]]));
    let content = json!({ "a": 1, "b": "1", "c": "only", "d": true });
    assert_eq!(answered(&question, json!({ "a": 1, "b": 1, "c": "only", "d": true }))["q"]["content"], content);
    assert_eq!(answered(&question, json!({ "a": "1", "b": "1", "c": "only", "d": "true" }))["q"]["content"], content);
    assert!(refused(&question, r#"{"a": 3}"#).contains("none of the choices"));
}

#[test]
fn what_nobody_can_answer_is_not_asked() {
    let of = |schema: Value| asked(json!({ "q": form(schema) })).map(drop);
    for (schema, part) in [
        (
            json!({ "required": ["a", "missing"], "properties": { "a": { "type": "string" } } }),
            "`missing`, and does not say",
        ),
        (
            json!({ "required": ["a"], "properties": { "a": { "type": "integer", "minimum": 5, "maximum": 1 } } }),
            "no value fits `a`",
        ),
        (json!({ "properties": { "n\u{1b}[2J": { "type": "string" } } }), "hidden character in its name"),
        (json!({ "properties": { "api_key": { "type": "string" } } }), "it asks for a secret, `api_key`, and what"),
        (json!({ "properties": { "n": { "type": "string", "format": "password" } } }), "it asks for a secret, `n`"),
        (json!({ "properties": { "n\u{200b}": { "type": "string" } } }), "hidden character in its name"),
    ] {
        assert!(of(schema.clone()).unwrap_err().contains(part), "{schema}");
    }
    let optional = json!({ "properties": { "a": { "type": "integer", "minimum": 5, "maximum": 1 } } });
    assert_eq!(of(optional), Ok(()));
    let two = json!({ "a\u{202e}": form(json!({ "properties": {} })), "b": form(json!({ "properties": {} })) });
    assert!(asked(two).unwrap_err().contains("hidden character"));
}
