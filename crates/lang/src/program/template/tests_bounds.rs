//! How long and how deep what is rendered may be, and that no value leads an address elsewhere.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::tests::{render, render_with};
use super::*;
use crate::program::json_texts::JsonRule;
use crate::program::long_work;
use crate::program::reference::Field;

/// How often long work left its thread in this process.
static DEPARTURES: AtomicU32 = AtomicU32::new(0);

#[test]
fn rendering_ends_however_long_the_lists_are() {
    let arguments = json!({"l": vec![0; 3000]});
    let loops = "{{#each l}}{{#each ../l}}{{#each ../../l}}{{#if this}}{{/if}}{{/each}}{{/each}}{{/each}}";
    assert_eq!(render(loops, &arguments), Err("the template's loops go round too often".to_owned()));
    let long = json!({"t": "x".repeat(MAX_RENDERED_BYTES / 2), "l": [1, 2, 3]});
    let text = "{{#each l}}{{../t}}{{/each}}";
    assert_eq!(render(text, &long), Err("the text would be longer than 16 MiB".to_owned()));
    assert!(render("{{#if l}}{{t}}{{/if}}", &long).is_ok());
    let mut deep = Value::Null;
    for _ in 0..128 {
        deep = json!([deep]);
    }
    assert!(render("{{deep}}", &json!({"deep": deep})).is_ok());
    let mut deeper = Value::Null;
    for _ in 0..2000 {
        deeper = Value::Array(vec![deeper]);
    }
    // Not by `json!`, which copies the value by recursion.
    let deeper = Value::Object([("deep".to_owned(), deeper)].into_iter().collect());
    assert!(render("{{deep}}", &deeper).unwrap_err().contains("256 deep"));
}

#[test]
fn rounds_without_parts_end_too_and_so_does_what_rounds_read_again_and_again() {
    const TOO_OFTEN: &str = "the loops of the templates go round too often";
    const TOO_MUCH: &str = "the templates read more than 128 MiB of texts and values";
    let render = |text: &str, arguments: &Value| resolved(&json!(text), arguments, JsonRule::PRESENT).map(|_| ());
    let refused = |text: &str, arguments: &Value, why: &str| {
        assert_eq!(render(text, arguments), Err(why.to_owned()), "{text}");
    };
    let list = json!({"l": vec![0; 3_000], "o": {"a": vec![0; 3_000]}});
    refused("{{#each l}}{{#each ../l}}{{#each ../../l}}{{/each}}{{/each}}{{/each}}", &list, TOO_OFTEN);
    refused("{{#each o}}{{#each this}}{{#each @root.l}}{{/each}}{{/each}}{{/each}}a", &list, TOO_OFTEN);
    assert_eq!(render("a{{#each l}}{{/each}}{{#each l}}{{#with @root.o}}{{/with}}{{/each}}", &list), Ok(()));
    // Each round reads ten megabytes: as JSON, as a number, as the name of a member, and to say what is near.
    let mebibytes = |bytes: &str| bytes.repeat((10 << 20) / bytes.len());
    let number: Value = serde_json::from_str(&format!("1{}", mebibytes("0"))).unwrap();
    let names: serde_json::Map<String, Value> = (0..160_000).map(|at| (format!("x{at}"), Value::Null)).collect();
    let text = format!("{{]{}", mebibytes("x"));
    let long = json!({ "l": vec![0; 20], "t": text, "n": number, "o": {}, "names": names });
    for body in [
        "{{#if @root.t.length}}{{/if}}",
        "{{#with @root.t}}{{#if this.length}}{{/if}}{{/with}}",
        "{{#if (lookup @root.t \"length\")}}{{/if}}",
        "{{#if (lookup @root.o @root.t)}}{{/if}}",
        "{{#if @root.n}}{{/if}}",
        "{{#if @root.names.nope_that_is_long_and_near_no_other}}{{/if}}",
    ] {
        refused(&format!("{{{{#each l}}}}{body}{{{{/each}}}}"), &long, TOO_MUCH);
        assert_eq!(render(&format!("a{body}{body}"), &long), Ok(()), "{body}");
        // A run of an older edition bounds no reads: its journal holds what came of them.
        let older = json!(format!("a{{{{#each l}}}}{body}{{{{/each}}}}"));
        assert_eq!(resolved(&older, &long, JsonRule::Fenced), Ok(json!("a")), "{body}");
    }
    assert_eq!(render("{{#each l}}{{#if @root.o.a}}{{else}}b{{/if}}{{/each}}", &long), Ok(()));
}

#[test]
fn what_is_made_together_has_one_bound_no_matter_how_many_templates_it_is_written_as() {
    let many = |template: &str, times: usize| Value::from(vec![template; times]);
    let text = "x".repeat(6 << 20);
    let values = json!({ "l": vec![0; 5], "big": vec![0; 400_000], "t": text });
    for (written, why) in [
        (many("{{#each l}}{{#if @root.t.length}}{{/if}}{{/each}}", 5), "read more than 128 MiB"),
        (many("@t", 22), "read more than 128 MiB"),
        (many("{{t}}", 3), "are longer than 16 MiB"),
        (many("{{#each big}}{{#if this}}{{/if}}{{/each}}", 13), "go round too often"),
        (many("{{#each big}}{{/each}}", 13), "go round too often"),
    ] {
        let refused = resolved(&written, &values, JsonRule::PRESENT).unwrap_err();
        assert!(refused.contains("the templates") && refused.contains(why), "{refused}");
        assert!(resolved(&written, &values, JsonRule::Fenced).is_ok(), "{why}");
        let half: Vec<Value> = written.as_array().unwrap().iter().take(2).cloned().collect();
        assert!(resolved(&Value::from(half), &values, JsonRule::PRESENT).is_ok(), "{why}");
    }
    // A text that is JSON is parsed once: looking into it a thousand times is no work.
    let values = json!({ "l": vec![0; 1_000], "t": json!({ "a": vec![7; 200_000] }).to_string() });
    let looked = resolved(&json!("{{#each l}}{{@root.t.a.3}}{{/each}}"), &values, JsonRule::PRESENT);
    assert_eq!(looked, Ok(Value::from("7".repeat(1_000))));
}

/// The value of a written field.
fn resolved(written: &Value, arguments: &Value, rule: JsonRule) -> Result<Value, String> {
    let field = Field::compile(written).unwrap_or_else(|faults| panic!("{written}: {faults:?}"));
    let scope = Scope { arguments, ..Scope::of_input(&Value::Null, rule.into()) };
    field.resolve(&scope).map_err(|unresolved| unresolved.why)
}

#[test]
fn long_work_leaves_its_thread_and_is_done_once() {
    long_work::set_departure(|work| {
        DEPARTURES.fetch_add(1, Ordering::Relaxed);
        work();
    });
    let rounds = json!({"l": vec![1; 30_000]});
    assert_eq!(render("{{#each l}}{{this}}{{/each}}", &rounds), Ok("1".repeat(30_000)));
    assert!(DEPARTURES.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_text_is_as_long_as_the_limit_and_a_value_as_deep_and_no_more() {
    let long = |text: &str, escape: ValueEscape, value: String| {
        render_with(text, escape, &json!({"t": value}), &Value::Null).map(|rendered| rendered.len())
    };
    let too_long = Err("the text would be longer than 16 MiB".to_owned());
    let most = "x".repeat(MAX_RENDERED_BYTES - 1);
    for (fits, does_not) in [("{{t}}a", "{{t}}ab"), ("a{{t}}", "ab{{t}}")] {
        assert_eq!(long(fits, ValueEscape::Plain, most.clone()), Ok(MAX_RENDERED_BYTES), "{fits}");
        assert_eq!(long(does_not, ValueEscape::Plain, most.clone()), too_long, "{does_not}");
    }
    // Three bytes for each.
    let escaped = "/".repeat(MAX_RENDERED_BYTES / 3);
    assert_eq!(long("a{{t}}", ValueEscape::Url, escaped.clone()), Ok(MAX_RENDERED_BYTES));
    assert_eq!(long("ab{{t}}", ValueEscape::Url, escaped), too_long);
    let piece = "x".repeat(5_000);
    assert_eq!(long(&format!("{piece}{{{{t}}}}{piece}"), ValueEscape::Plain, piece), Ok(15_000));
    let nested = |levels: usize, wrap: fn(Value) -> Value| {
        let deep = (0..levels).fold(Value::Null, |deep, _| wrap(deep));
        render("{{deep}}", &json!({"deep": deep})).map(|rendered| rendered.len())
    };
    for wrap in [|deep| json!([deep]), |deep| json!({"a": deep})] {
        assert!(nested(256, wrap).is_ok());
        assert_eq!(nested(257, wrap), Err("a value is nested more than 256 deep".to_owned()));
    }
}

#[test]
fn a_value_cannot_lead_an_address_elsewhere() {
    let render = |text: &str, x: &str| render_with(text, ValueEscape::Url, &json!({"x": x, "y": "."}), &Value::Null);
    let url = "https://h.example/a/{{x}}/b?q={{x}}#{{x}}";
    assert_eq!(
        render(url, "c d/../?&#é").as_deref(),
        Ok(
            "https://h.example/a/c%20d%2F..%2F%3F%26%23%C3%A9/b?q=c%20d%2F..%2F%3F%26%23%C3%A9#c%20d%2F..%2F%3F%26%23%C3%A9"
        )
    );
    for (text, x) in [
        (url, ".."),
        (url, "."),
        ("https://h/{{y}}{{x}}", "."),
        ("https://h/.{{x}}/a", "."),
        ("https://h/.{{x}}/a", ""),
    ] {
        assert!(render(text, x).unwrap_err().contains("elsewhere"), "{text} {x}");
    }
    assert_eq!(render(url, ""), Err("`x` is empty, and the address needs it".to_owned()));
    assert_eq!(render("https://h/a?q={{x}}&r={{y}}", "").as_deref(), Ok("https://h/a?q=&r=."));
    assert_eq!(render("https://h/a{{x}}", "").as_deref(), Ok("https://h/a"));
    assert_eq!(render("{{x}}", "..").as_deref(), Ok(".."));
    // What is before the path or behind it is no segment.
    for (text, x, expected) in [
        ("https://{{x}}", "h", "https://h"),
        ("https://{{x}}/a", "..", "https://../a"),
        ("https://..{{x}}", "", "https://.."),
        ("https://h/?q={{x}}", "a", "https://h/?q=a"),
        ("https://h/#{{x}}", "..", "https://h/#.."),
    ] {
        assert_eq!(render(text, x).as_deref(), Ok(expected), "{text}");
    }
    assert_eq!(render("https://h/a{{x}}{{y}}/{{x}}", ""), Err("`x` is empty, and the address needs it".to_owned()));
    // Three hundred thousand values in one segment are checked once, not once each.
    let ids = render_with(
        "https://h/{{#each l}}{{this}},{{/each}}",
        ValueEscape::Url,
        &json!({"l": vec![1; 300_000]}),
        &Value::Null,
    );
    assert_eq!(ids.map(|url| url.len()), Ok(10 + 600_000));
}
