//! Templates: what they print, what they refuse, and that values are never read as templates.

mod properties;

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::program::json_texts::JsonRule;
use crate::program::reference::Secrets;

struct Vault(AtomicU32);

impl Secrets for Vault {
    fn secret(&self, key: &str) -> Result<String, String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        match key {
            "api:x" => Ok("s3cr&t \"q\"/+".to_owned()),
            "nested" => Ok("{{input.x}} orgconfig:api:x".to_owned()),
            other => Err(format!("there is no secret `{other}`")),
        }
    }
}

pub(super) fn render_with(text: &str, escape: ValueEscape, arguments: &Value, input: &Value) -> Result<String, String> {
    let vault = Vault(AtomicU32::new(0));
    let template = Template::compile(text, escape).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
    template.render(&scope(arguments, input, &vault)).map_err(|unresolved| unresolved.why)
}

fn scope<'a>(arguments: &'a Value, input: &'a Value, vault: &'a Vault) -> Scope<'a> {
    let (now, run_id, extra) = ("2026-01-02T03:04:05.000Z", "run-1", &[("today", "Friday")]);
    Scope { arguments, now, run_id, extra, secrets: Some(vault), ..Scope::of_input(input, JsonRule::Plain.into()) }
}

pub(super) fn render(text: &str, arguments: &Value) -> Result<String, String> {
    render_with(text, ValueEscape::Plain, arguments, &json!({"x": 1, "name": "Ann", "amount": 12.50, "items": [1, 2]}))
}

fn fault(text: &str) -> TemplateFault {
    Template::compile(text, ValueEscape::Plain).map(|template| panic!("{text}: {template:?}")).unwrap_err()
}

#[track_caller]
fn assert_faults(cases: &[(&str, &'static str, &str, &str)]) {
    for (text, code, place, message) in cases {
        let fault = fault(text);
        let range = fault.range.clone().unwrap_or_else(|| panic!("{text}: no place"));
        assert_eq!(fault.code, *code, "{text}: {fault:?}");
        assert_eq!(&text[range], *place, "{text}: {fault:?}");
        assert!(fault.message.contains(message), "{text}: {fault:?}");
    }
}

#[cfg(feature = "exact-numbers")]
#[test]
fn values_print_as_they_are() {
    let arguments: Value = serde_json::from_str(
        r#"{"t":"a b","n":12345678901234567890123,"e":1E400,"z":-0,"f":1.0,"y":true,"u":null,"l":[1,{"a":"b"}],"o":{"k":[]}}"#,
    )
    .unwrap();
    for (text, expected) in [
        ("{{t}}|{{n}}|{{e}}|{{z}}|{{f}}", "a b|12345678901234567890123|1e+400|-0|1.0"),
        ("{{y}}|{{u}}|{{l}}|{{o}}", r#"true||[1,{"a":"b"}]|{"k":[]}"#),
        ("{{{t}}}{{&t}}{{ t }}{{~ t ~}} x", "a ba ba ba bx"),
        ("${{input.amount}}", "$12.5"),
        ("{{now}} {{__run_id}} {{today}}", "2026-01-02T03:04:05.000Z run-1 Friday"),
        ("{{l.1.a}}{{l.[1].a}}{{l/1/a}}{{lookup l.[1] 'a'}}{{lookup (lookup l 1) \"a\"}}", "bbbbb"),
        (r"\{{t}} {{t}} }} } {", "{{t}} a b }} } {"),
        ("a{{! a comment }}b{{!-- {{t}} --}}c", "abc"),
        ("plain @input.x {x}", "plain @input.x {x}"),
    ] {
        assert_eq!(render(text, &arguments).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn blocks_go_by_their_values() {
    let arguments =
        json!({"l": ["a", "b"], "o": {"k": 1, "m": 2}, "deep": [{"n": "x", "in": [{"n": "y"}]}], "no": [], "zero": 0});
    for (text, expected) in [
        ("{{#if l}}1{{else}}2{{/if}}{{#if no}}1{{else if zero}}2{{else}}3{{/if}}", "13"),
        ("{{#unless zero}}1{{/unless}}{{#unless l}}1{{^}}2{{/unless}}", "12"),
        ("{{#each l}}{{#if @first}}>{{/if}}{{@index}}{{this}}{{#if @last}}.{{else}},{{/if}}{{/each}}", ">0a,1b."),
        ("{{#each o}}{{@key}}={{this}};{{/each}}", "k=1;m=2;"),
        ("{{#each o as |v k|}}{{k}}={{v}};{{/each}}", "k=1;m=2;"),
        (
            "{{#each deep}}{{#each in}}{{n}}{{../n}}{{@root.input.name}}{{../../zero}}{{@../index}}{{/each}}{{/each}}",
            "yxAnn00",
        ),
        ("{{#each deep as |d|}}{{#each d.in as |i|}}{{d.n}}{{i.n}}{{/each}}{{/each}}", "xy"),
        ("{{#with o}}{{k}}{{m}}{{/with}}{{#with nothing}}1{{else}}2{{/with}}", "122"),
        ("{{#each no}}1{{else}}none{{/each}}{{#each nothing}}1{{else}}none{{/each}}", "nonenone"),
        ("{{#if input.none}}1{{else}}2{{/if}}{{#unless input.none.deeper}}3{{/unless}}", "23"),
        ("{{#each l}}{{#with ../o}}{{@index}}{{k}}{{/with}}{{/each}}", "0111"),
        ("a\n{{#if l}}\nb\n{{/if}}\nc", "a\nb\nc"),
    ] {
        assert_eq!(render(text, &arguments).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn a_missing_name_is_an_error_that_names_it() {
    let arguments = json!({"ticket_id": "T-1", "o": {"name": 1}, "l": [1]});
    for (text, expected) in [
        ("{{ticket}}", "`ticket` was not given"),
        ("{{ticket_di}}", "`ticket_di` was not given; did you mean `ticket_id`?"),
        ("{{name}}", "`name` was not given; did you mean `input.name`?"),
        ("{{input.nane}}", "`input` has no `nane`; did you mean `name`?"),
        ("{{o.q}}", "`o` has no `q`; it has `name`"),
        ("{{l.5}}", "`l` has no `5`; it is a list of 1"),
        ("{{ticket_id.x}}", "`ticket_id` is a text and has no `x`"),
        ("{{#each input.none}}{{/each}}", "`input` has no `none`; it has `x`, `name`, `amount`, `items`"),
        ("{{#each ticket_id}}{{/each}}", "`ticket_id` is a text and no list to go through"),
        ("{{lookup o 'q'}}", "`o` has no `q`; it has `name`"),
        ("orgconfig:nope", "there is no secret `nope`"),
    ] {
        assert_eq!(render(text, &arguments), Err(expected.to_owned()), "{text}");
    }
    let inside = render("{{#each input.items}}{{input.x}}{{/each}}", &arguments).unwrap_err();
    assert!(inside.contains("@root."), "{inside}");
}

#[cfg(feature = "exact-numbers")]
#[test]
fn a_path_into_json_text_reads_the_json() {
    let arguments = json!({"answer": "{\"decision\":\"yes\",\"n\":0.10}", "list": " [1,2,3]", "word": "héllo"});
    assert_eq!(render("{{answer.decision}} {{answer.n}} {{list.2}}", &arguments).as_deref(), Ok("yes 0.10 3"));
    assert_eq!(render("{{list.length}} {{word.length}} {{input.items.length}}", &arguments).as_deref(), Ok("3 5 2"));
}

const HOSTILE: [&str; 10] = [
    "{{input.secret}}",
    "@input.x",
    "orgconfig:api:x",
    "${x}",
    "{{{{raw}}}}",
    "{{{x}}}",
    "\\{{x}}",
    "{{#each this}}{{/each}}",
    "%7B%7Bx%7D%7D",
    "{{lookup this 'orgconfig:api:x'}}",
];

#[test]
fn hostile_text_appears_literally_in_every_escape_mode() {
    for hostile in HOSTILE {
        let arguments = json!({"x": hostile, "o": {"k": hostile}, "l": [hostile]});
        for text in
            ["{{x}}", "{{{x}}}", "{{&x}}", "{{o.k}}", "{{#each l}}{{this}}{{/each}}", "{{#with o}}{{k}}{{/with}}"]
        {
            let run = |escape| render_with(text, escape, &arguments, &json!({"secret": "planted"})).unwrap();
            assert_eq!(run(ValueEscape::Plain), hostile);
            let url = run(ValueEscape::Url);
            assert_eq!(percent_encoding::percent_decode_str(&url).decode_utf8().unwrap(), hostile);
            assert!(!url.contains(['{', '$', '@', ':', '/']), "{url}");
            assert_eq!(serde_json::from_str::<String>(&format!("\"{}\"", run(ValueEscape::Json))).unwrap(), hostile);
        }
        // The twin: written by the author, the same text has a meaning.
        assert_eq!(render("{{input.name}}", &arguments).as_deref(), Ok("Ann"));
    }
}

#[test]
fn what_was_rendered_once_is_not_rendered_again() {
    let arguments = json!({"x": "{{y}}", "y": "planted"});
    let once = render("{{x}}", &arguments).unwrap();
    assert_eq!(once, "{{y}}");
    // The twin: an author who writes exactly that text gets the value.
    assert_eq!(render(&once, &arguments).as_deref(), Ok("planted"));
    assert_eq!(render("orgconfig:nested {{x}}", &arguments).as_deref(), Ok("{{input.x}} orgconfig:api:x {{y}}"));
}

#[test]
fn secrets_are_resolved_when_rendered_and_only_then() {
    let vault = Vault(AtomicU32::new(0));
    let template = Template::compile("Bearer orgconfig:api:x, {{x}} orgconfig:api:x.", ValueEscape::Plain).unwrap();
    assert_eq!((template.secrets(), vault.0.load(Ordering::Relaxed)), (["api:x".to_owned()].as_slice(), 0));
    let arguments = json!({"x": "orgconfig:api:x"});
    let scope = scope(&arguments, &Value::Null, &vault);
    assert_eq!(template.render(&scope).unwrap(), "Bearer s3cr&t \"q\"/+, orgconfig:api:x s3cr&t \"q\"/+.");
    assert_eq!(vault.0.load(Ordering::Relaxed), 2);
    let refused = template.render(&Scope { secrets: None, ..scope }).unwrap_err();
    assert_eq!(refused.why, "the secret `api:x` may not be used here");
    assert!(!format!("{template:?}").contains("s3cr"));
}

#[test]
fn secrets_are_escaped_too() {
    let render = |text, escape| render_with(text, escape, &Value::Null, &Value::Null).unwrap();
    assert_eq!(render("k=orgconfig:api:x", ValueEscape::Url), "k=s3cr%26t%20%22q%22%2F%2B");
    assert_eq!(render("{\"k\":\"orgconfig:api:x\"}", ValueEscape::Json), "{\"k\":\"s3cr&t \\\"q\\\"/+\"}");
}

#[test]
fn a_mark_without_a_key_or_inside_a_word_is_no_secret() {
    for text in ["orgconfig:", "orgconfig: x", "myorgconfig:api:x", "orgconfig:...", "Orgconfig:api:x"] {
        let template = Template::compile(text, ValueEscape::Plain).unwrap();
        assert!(template.is_literal() && template.secrets().is_empty() && !secret::is_named(text), "{text}");
        assert_eq!(render(text, &Value::Null).as_deref(), Ok(text));
    }
    for (text, key) in [("(orgconfig:api:x)", "api:x"), ("/orgconfig:a.b-c/d", "a.b-c"), ("é orgconfig:k_", "k_")] {
        assert_eq!(Template::compile(text, ValueEscape::Plain).unwrap().secrets(), [key], "{text}");
        assert!(secret::is_named(text), "{text}");
    }
}

#[test]
fn the_key_of_a_secret_is_never_made_of_data() {
    for text in ["orgconfig:{{x}}", "orgconfig:api:{{x}}", "orgconfig:api{{x}}", "a:orgconfig:{{#if x}}k{{/if}}"] {
        assert_eq!(fault(text).code, codes::TEMPLATE_NAME, "{text}");
    }
    assert_eq!(fault("é orgconfig:{{x}}").code, codes::TEMPLATE_NAME);
    // Inside of a word it is no mark, also behind a letter of several bytes.
    assert_eq!(render("éorgconfig:{{x}}", &json!({"x": 1})).as_deref(), Ok("éorgconfig:1"));
    assert_eq!(render("{{x}}orgconfig:{{! }} k", &json!({"x": 1})).as_deref(), Ok("1orgconfig: k"));
    assert_eq!(render("{{a}}{{b}}", &json!({"a": "orgconfig:", "b": "api:x"})).as_deref(), Ok("orgconfig:api:x"));
}

#[test]
fn what_is_not_offered_is_a_fault_at_its_place() {
    assert_faults(&[
        ("a {{> part}}", codes::TEMPLATE_HELPER, "{{>", "partials"),
        ("{{#> part}}{{/part}}", codes::TEMPLATE_HELPER, "{{#>", "partials"),
        ("{{* deco}}", codes::TEMPLATE_HELPER, "{{*", "decorators"),
        ("{{#*inline \"x\"}}{{/inline}}", codes::TEMPLATE_HELPER, "{{#*", "decorators"),
        ("{{{{raw}}}} {{x}} {{{{/raw}}}}", codes::TEMPLATE_HELPER, "{{{{", "four braces"),
        ("x {{log x}}", codes::TEMPLATE_HELPER, "log", "no helper `log`"),
        ("x {{log}}", codes::TEMPLATE_HELPER, "{{log}}", "helper's name"),
        ("{{lokup a b}}", codes::TEMPLATE_HELPER, "lokup", "no helper `lokup`"),
        ("{{upper a}}", codes::TEMPLATE_HELPER, "upper", "no helper `upper`"),
        ("{{#eech a}}{{/eech}}", codes::TEMPLATE_HELPER, "eech", "no block `eech`"),
        ("{{#if (gt a 1)}}{{/if}}", codes::TEMPLATE_HELPER, "gt", "no helper `gt`"),
        ("{{#if a includeZero=true}}{{/if}}", codes::TEMPLATE, "{{#if a includeZero=true}}", "no options"),
        ("{{#if a b}}{{/if}}", codes::TEMPLATE, "{{#if a b}}", "one value"),
        ("{{lookup a}}", codes::TEMPLATE, "{{lookup a}}", "two values"),
    ]);
    assert_eq!(fault("{{lokup a b}}").help.as_deref(), Some("did you mean `lookup`?"));
    assert_eq!(fault("{{#eech a}}{{/eech}}").help.as_deref(), Some("did you mean {{#each ...}}?"));
    assert_eq!(render("{{this.log}}", &json!({"log": 1})).as_deref(), Ok("1"));
}

#[test]
fn what_cannot_be_read_is_a_fault_at_its_place() {
    assert_faults(&[
        ("a {{x", codes::TEMPLATE, "{{x", "never closed"),
        ("a {{x\nb", codes::TEMPLATE, "{{x", "never closed"),
        ("{{}}", codes::TEMPLATE, "{{}}", "names nothing"),
        ("{{#if a}}b", codes::TEMPLATE, "{{#if a}}", "never closed"),
        ("{{#if a}}b{{/each}}", codes::TEMPLATE, "{{/each}}", "opened as `if`"),
        ("b{{/if}}", codes::TEMPLATE, "{{/if}}", "never opened"),
        ("{{else}}", codes::TEMPLATE, "{{else}}", "outside of a block"),
        ("{{a, b}}", codes::TEMPLATE, ",", "`,`"),
        ("{{ \"x }}", codes::TEMPLATE, "\"", "quotes"),
        ("{{a.[b }}", codes::TEMPLATE, "[", "`]`"),
        ("{{{x}}", codes::TEMPLATE, "{{{x}", "three braces"),
        ("{{this}}", codes::TEMPLATE_NAME, "this", "names nothing"),
        ("{{../x}}", codes::TEMPLATE_NAME, "../x", "leads out"),
        ("{{@index}}", codes::TEMPLATE_NAME, "@index", "means nothing here"),
        ("{{@input.x}}", codes::TEMPLATE_NAME, "@input.x", "means nothing here"),
        ("{{#each a}}{{@indx}}{{/each}}", codes::TEMPLATE_NAME, "@indx", "means nothing here"),
    ]);
    assert_eq!(
        fault("{{@input.x}}").help.as_deref(),
        Some("inside of a template a value is named without `@`: {{input.x}}")
    );
}

#[test]
fn a_template_that_would_break_the_parser_is_refused_before_it() {
    let deep = |n: usize| format!("{}x{}", "{{#if a}}".repeat(n), "{{/if}}".repeat(n));
    assert!(Template::compile(&deep(32), ValueEscape::Plain).is_ok());
    for text in [
        deep(33),
        deep(20_000),
        "{{#if a}}".repeat(20_000),
        format!("{{{{lookup {}a 1{}}}}}", "(lookup ".repeat(5000), " 1)".repeat(5000)),
        format!("{{{{a {}", "(".repeat(100_000)),
        "{{a}}".repeat(1001),
        format!("{{{{a}}}}{}", "x".repeat(MAX_TEMPLATE_BYTES)),
    ] {
        assert_eq!(fault(&text).code, codes::TEMPLATE_SIZE);
    }
    for text in ["{{a [[[[[[[[".to_owned() + &"[".repeat(100_000), "{{".repeat(100_000), "{".repeat(100_001)] {
        fault(&text);
    }
    assert!(Template::compile(&"x".repeat(2 * MAX_TEMPLATE_BYTES), ValueEscape::Plain).is_ok());
}

#[test]
fn free_variables_are_those_that_the_scope_must_give() {
    let text = "{{input.a}} {{#each items as |item|}}{{name}} {{this.x}} {{item.y}} {{../z}} {{@index}} {{@root.q.r}}{{/each}} \
                {{#with w.v}}{{u}}{{/with}} {{lookup m k}} {{#if maybe}}{{maybe.b}}{{else}}{{other}}{{/if}}{{input.a}}";
    let template = Template::compile(text, ValueEscape::Plain).unwrap();
    let found: Vec<(String, &str, bool)> = template
        .variables()
        .iter()
        .map(|variable| (variable.path.join("."), &text[variable.range.clone()], variable.optional))
        .collect();
    let expected = [
        ("input.a", "input.a", false),
        ("items", "items", false),
        ("z", "../z", false),
        ("q.r", "@root.q.r", false),
        ("w.v", "w.v", false),
        ("m", "m", false),
        ("k", "k", false),
        ("maybe", "maybe", true),
        ("maybe.b", "maybe.b", true),
        ("other", "other", false),
        ("input.a", "input.a", false),
    ];
    assert_eq!(found, expected.map(|(path, place, optional)| (path.to_owned(), place, optional)));
    assert_eq!(template.variables().last().unwrap().range, text.len() - 9..text.len() - 2);
}

#[test]
fn places_are_right_beside_comments_escapes_and_chains() {
    let text = r"é \{{a}} {{! {{a}} }} {{#if b}}{{!-- x --}}{{c}}{{else if d}}{{e}}{{else}}{{#if f}}{{f}}{{else if j}}{{/if}}{{/if}}{{#unless g}}{{h}}{{/unless}}{{i}}";
    let template = Template::compile(text, ValueEscape::Plain).unwrap();
    for variable in template.variables() {
        assert_eq!(&text[variable.range.clone()], variable.path[0]);
    }
    assert_eq!(template.variables().len(), 10);
}

#[cfg(feature = "exact-numbers")]
#[test]
fn numbers_are_true_unless_they_are_zero() {
    let numbers: Value = serde_json::from_str("[0,-0,0.00,0e5,0E-9,1,1E400,1e-400,0.001,-5]").unwrap();
    let text = "{{#each l}}{{#if this}}1{{else}}0{{/if}}{{/each}}";
    assert_eq!(render(text, &json!({"l": numbers})).as_deref(), Ok("0000011111"));
}

/// A quirk of the grammar, reported with its fix.
#[test]
fn a_name_that_begins_like_else_is_reported_with_its_cure() {
    let fault = fault("a\né {{elsewhere}} b");
    assert_eq!((fault.code, fault.range), (codes::TEMPLATE, Some(5..18)));
    assert_eq!(
        fault.help.as_deref(),
        Some("a name that begins like `else` is written {{this.else_name}}; a second condition {{else if name}}")
    );
    assert_eq!(render("{{this.elsewhere}}{{#if elsewhere}}1{{/if}}", &json!({"elsewhere": 7})).as_deref(), Ok("71"));
}

#[test]
fn a_rendering_says_of_each_condition_that_it_comes_to_whether_it_held() {
    let text =
        "{{#each list}}{{#if this}}a{{else if @first}}b{{/if}}{{/each}}{{#unless no}}{{#if yes}}c{{/if}}{{/unless}}";
    let template = Template::compile(text, ValueEscape::Plain).unwrap();
    assert_eq!(template.conditions(), ["this", "@first", "no", "yes"]);
    let judged = |arguments: Value| -> Vec<(usize, bool)> {
        let vault = Vault(AtomicU32::new(0));
        let judged = template.judged(&scope(&arguments, &Value::Null, &vault));
        judged.iter().map(|condition| (condition.number, condition.holds)).collect()
    };
    let arguments = json!({ "list": [false, true, false], "no": false, "yes": true });
    let first = [(0, false), (1, true), (0, true), (0, false), (1, false)];
    assert_eq!(judged(arguments), [&first[..], &[(2, false), (3, true)]].concat());
    // What is within a side that is not taken is not judged.
    assert_eq!(judged(json!({ "list": [], "no": true, "yes": true })), [(2, true)]);
}
