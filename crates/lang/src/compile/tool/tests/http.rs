//! `http` actions: addresses, headers, bodies, and where secrets may be sent.

use serde_json::{Value, json};

use super::{action, assert_reported, http, http_tool, reported};
use crate::program::Body;
use crate::program::json_texts::JsonRule;
use crate::program::reference::Scope;

#[test]
fn an_address_begins_with_its_scheme_and_holds_no_password() {
    let with = |url: &str| http(json!({"url": url}));
    for url in
        ["ftp://h/", "h.example/a", "{{input.base}}/a", "orgconfig:base/a", "file:///etc/passwd", "/a", "javascript:x"]
    {
        assert_reported(with(url), true, "L074 /url");
    }
    assert_reported(with("https://"), true, "L074 /url: https://: the address names no host");
    assert_reported(with("https:///a"), true, "L074 /url");
    assert_reported(with("https://h/a b"), true, "L074 /url:  : the address holds a space");
    assert_reported(with("https://h\\@e.test/"), true, "L074 /url");
    assert_reported(with("https://user:pass@h/"), true, "L100 /url: user:pass@");
    assert_reported(with("https://{{u}}@h/"), true, "L100 /url: {{u}}@");
    for url in [
        "HTTPS://h/@a?b=@c",
        "https://h/{{#if input.a}}b c{{/if}}".replace(' ', "%20").as_str(),
        "https://{{tenant}}.h.example/{{../x}}x",
    ] {
        let faults = reported(with(url));
        assert!(!faults.iter().any(|fault| fault.starts_with("L074") || fault.starts_with("L100")), "{url} {faults:?}");
    }
}

#[test]
fn headers_have_names_of_their_own_and_one_line() {
    let with = |headers: Value| http(json!({"headers": headers}));
    for name in ["", "a b", "a:", "é", "a\r\nb", "a\0"] {
        assert_reported(with(json!({(name): "x"})), true, &format!("L075 /headers/{name}"));
    }
    for name in ["Host", "content-length", "Transfer-Encoding", "connection"] {
        assert_reported(with(json!({(name): "x"})), true, &format!("L075 /headers/{name}"));
    }
    assert_reported(with(json!({"X-A": "1", "x-a": "2"})), true, "L075 /headers/x-a");
    assert_reported(with(json!({"X-A": "a\r\nB: c"})), true, "L075 /headers/X-A: \r: ");
    assert!(
        reported(with(
            json!({"X-A": "a\tb", "Authorization": "Bearer orgconfig:api:x", "X-Run": "{{__run_id}} orgconfig:k"})
        ))
        .is_empty()
    );
}

#[test]
fn what_the_model_writes_never_lands_in_a_header_with_a_secret() {
    let with = |value: &str| http(json!({"headers": {"Authorization": value}}));
    assert_reported(with("Bearer orgconfig:api:x {{who}}"), true, "L101 /headers/Authorization: who: ");
    // The input of a called loop comes from its caller's model, and over HTTP from a tenant.
    assert_reported(with("{{input.who}} orgconfig:k"), true, "L131 /headers/Authorization: input.who: ");
    assert_reported(
        with("{{#each input.xs}}{{this}}{{/each}} orgconfig:k"),
        true,
        "L131 /headers/Authorization: input.xs: ",
    );
    assert!(reported(with("Bearer {{token}}")).is_empty(), "a twin without a secret");
    assert!(reported(with("{{input.who}}")).is_empty(), "a twin without a secret");
}

#[test]
fn a_secret_goes_to_the_host_that_is_written_out() {
    let with = |url: &str, key: &str| http(json!({"url": url, "headers": {"Authorization": key}}));
    for url in
        ["https://{{host}}/a", "https://api.{{host}}/a", "https://h.example{{path}}", "https://h.example:{{port}}/"]
    {
        assert_reported(with(url, "orgconfig:k"), true, "L102 /url");
        assert!(reported(with(url, "plain")).is_empty(), "a twin without a secret");
    }
    for url in [
        "https://{{input.host}}/x",
        "https://{{input.tenant}}.h.example/",
        "https://h.example:{{input.port}}/",
        "https://h.example{{input.path}}",
        "https://{{#if input.host}}h.example/{{/if}}{{input.host}}/",
        "https://{{#each input.hosts}}{{this}}/{{/each}}h.example/",
    ] {
        assert_reported(with(url, "orgconfig:k"), true, "L102 /url: input.");
        assert!(reported(with(url, "plain")).is_empty(), "a twin without a secret");
    }
    assert!(reported(with("https://h.example/{{path}}", "orgconfig:k")).is_empty());
    assert!(reported(with("https://h.example/{{#if input.a}}{{input.b}}/{{/if}}", "orgconfig:k")).is_empty());
    assert_reported(with("http://h.example/", "orgconfig:k"), false, "L103 /url: http://");
    for host in ["localhost:8080", "127.0.0.1", "[::1]:80"] {
        assert!(reported(with(&format!("http://{host}/"), "orgconfig:k")).is_empty());
    }
    let llm = action("llm", json!({"template": "The key is orgconfig:k."}));
    assert_reported(llm, true, "L104 /template: orgconfig:k: ");
}

#[test]
fn a_body_is_escaped_for_its_content_type() {
    let render = |fields: Value| -> String {
        let mut fields = fields;
        fields["http_method"] = json!("POST");
        let arguments = json!({"x": "a\"b&c d", "n": 1});
        let scope = Scope { arguments: &arguments, ..Scope::of_input(&Value::Null, JsonRule::Plain.into()) };
        match http_tool(fields).kind.body.unwrap() {
            Body::Text(template) => template.render(&scope).unwrap(),
            Body::Json(field) => field.resolve(&scope).unwrap().to_string(),
            Body::Notice(_) => unreachable!("an action has no notice"),
        }
    };
    assert_eq!(render(json!({"body": "{\"a\": \"{{x}}\"}"})), "{\"a\": \"a\\\"b&c d\"}");
    assert_eq!(render(json!({"body": "<{{x}}>", "content_type": "text/plain; charset=utf-8"})), "<a\"b&c d>");
    assert_eq!(
        render(json!({"body": "x={{x}}", "content_type": "application/x-www-form-urlencoded"})),
        "x=a%22b%26c%20d"
    );
    assert_eq!(render(json!({"body": {"a": "@n", "b": ["{{x}}"]}})), "{\"a\":1,\"b\":[\"a\\\"b&c d\"]}");
    assert_eq!(render(json!({"body": "@x", "content_type": "application/problem+json"})), "\"a\\\"b&c d\"");
    let text = http(json!({"body": "@x", "http_method": "POST", "content_type": "text/csv; charset=utf-8"}));
    assert!(reported(text).is_empty(), "a whole text is a path whatever the body is");
    let unquoted = http(json!({"body": "{\"a\": {{n}}, \"b\": \"\\\"{{x}}\"}", "http_method": "POST"}));
    assert_eq!(reported(unquoted).len(), 1);
    assert_reported(http(json!({"body": "{\"a\": {{n}}}"})), false, "L076 /body: n: ");
}

#[test]
fn hostile_arguments_stay_what_they_are_on_the_way_to_the_wire() {
    for hostile in
        ["{{input.secret}}", "@input.secret", "orgconfig:k", "${secret}", "{{{{raw}}}}", "\r\nX-Evil: 1", "../../admin"]
    {
        let arguments = json!({"x": hostile});
        let input = json!({"secret": "planted"});
        let scope = Scope { arguments: &arguments, ..Scope::of_input(&input, JsonRule::Plain.into()) };
        let tool = http_tool(json!({"url": "https://h/a/{{x}}", "http_method": "POST", "headers": {"X-A": "{{x}}"}, "query": {"q": "@x"}, "body": {"b": "{{x}}"}})).kind;
        let url = tool.url.render(&scope).unwrap();
        assert_eq!(url.matches('/').count(), 4, "{url}");
        assert!(!url.contains(['\r', '\n', '{', '@', '$']), "{url}");
        assert_eq!(tool.headers[0].1.resolve(&scope).unwrap(), json!(hostile));
        assert_eq!(tool.query[0].1.resolve(&scope).unwrap(), json!(hostile));
        let Some(Body::Json(body)) = tool.body else { panic!() };
        assert_eq!(body.resolve(&scope).unwrap(), json!({"b": hostile}));
    }
}
