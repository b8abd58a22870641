//! What holds for any text and any value.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use super::{render, render_with};
use crate::program::json_texts::JsonRule;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn url_values_hold_only_unreserved_and_percent(x in any::<String>()) {
        let text = render_with("{{x}}", ValueEscape::Url, &json!({"x": x}), &Value::Null).unwrap();
        prop_assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
        let back = percent_encoding::percent_decode_str(&text).decode_utf8().unwrap().into_owned();
        prop_assert_eq!(back, x);
    }

    #[test]
    fn json_values_parse_back_inside_of_quotes(x in any::<String>()) {
        let text = render_with("\"{{x}}\"", ValueEscape::Json, &json!({"x": x}), &Value::Null).unwrap();
        prop_assert_eq!(serde_json::from_str::<String>(&text).unwrap(), x);
    }

    #[test]
    fn plain_values_are_unchanged(x in any::<String>()) {
        prop_assert_eq!(render("<{{x}}>", &json!({"x": x})).unwrap(), format!("<{x}>"));
    }

    #[test]
    fn any_text_compiles_or_is_refused_in_place(parts in proptest::collection::vec(fragment(), 0..14)) {
        let text = parts.concat();
        match Template::compile(&text, ValueEscape::Plain) {
            Ok(template) => {
                for variable in template.variables() {
                    let word = text.get(variable.range.clone()).unwrap_or_default();
                    prop_assert!(word.contains(variable.path[0].as_str()) && !word.starts_with("{{"), "{text:?}: {word:?}");
                }
                let _ = render(&text, &json!({"a": [{"b": 1}], "b": {"a": "x"}}));
            }
            Err(fault) => prop_assert!(fault.range.is_none_or(|range| text.get(range).is_some())),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Where both render a template, the result is the same: the language is still Handlebars.
    #[test]
    fn blocks_mean_what_they_mean_to_the_crates_own_renderer(parts in proptest::collection::vec(fragment(), 0..10)) {
        let text = parts.concat();
        let data = json!({"a": [{"b": "1", "n": [7]}, {"b": "2"}], "b": {"a": "x", "b": ""}, "x": "t"});
        let mut theirs = handlebars::Handlebars::new();
        theirs.set_strict_mode(true);
        theirs.register_escape_fn(handlebars::no_escape);
        let Ok(template) = Template::compile(&text, ValueEscape::Plain) else { return Ok(()) };
        let scope = Scope { arguments: &data, input: &Value::Null, lists: None, files: None, now: "", run_id: "", context: &[], extra: &[], json: JsonRule::Plain.into(), secrets: None };
        let (Ok(ours), Ok(theirs)) = (template.render(&scope), theirs.render_template(&text, &data)) else { return Ok(()) };
        // The library prints lists and objects in another way.
        if !ours.contains(['[', '{']) && !theirs.contains("[object]") {
            prop_assert_eq!(ours, theirs, "{}", text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    /// Whitespace control, standalone lines, comments and chains of `else`: a lowered template renders as the
    /// library renders it, and each path is found at its own position.
    #[test]
    fn every_valid_template_renders_as_the_crate_renders_it(text in valid()) {
        let data = json!({"a": ["1", "2"], "b": {"c": "x"}, "x": "t", "no": []});
        let mut library = handlebars::Handlebars::new();
        // Every name is given; strict, the library refuses a `with` of an empty list.
        library.register_escape_fn(handlebars::no_escape);
        let theirs = library.render_template(&text, &data).map_err(|error| TestCaseError::fail(format!("{text:?}: {error}")))?;
        let template = Template::compile(&text, ValueEscape::Plain).map_err(|fault| TestCaseError::fail(format!("{text:?}: {fault:?}")))?;
        let scope = Scope { arguments: &data, input: &Value::Null, lists: None, files: None, now: "", run_id: "", context: &[], extra: &[], json: JsonRule::Plain.into(), secrets: None };
        let ours = template.render(&scope).map_err(|unresolved| TestCaseError::fail(format!("{text:?}: {unresolved}")))?;
        prop_assert_eq!(ours, theirs, "{:?}", text);
        let mut last = 0;
        for variable in template.variables() {
            let word = text.get(variable.range.clone()).unwrap_or_default();
            prop_assert_eq!(word, format!("@root.{}", variable.path.join(".")), "{:?}", text);
            prop_assert!(variable.range.start >= last, "{:?}", text);
            last = variable.range.end;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The fast path for templates with names alone gives the same as the parser, also for faults.
    #[test]
    fn what_is_read_without_the_parser_means_what_the_parser_reads(parts in proptest::collection::vec(simple(), 0..10)) {
        let text = parts.concat();
        let Ok(tags) = tag::scan(&text) else { return Ok(()) };
        if plain::is_plain(&text, &tags) {
            let (mut one, mut other) = (lower::Lower::new(&text, &tags), lower::Lower::new(&text, &tags));
            let (quick, slow) = (one.values(&tags), parsed(&text, &tags, &mut other));
            prop_assert_eq!(format!("{quick:?}"), format!("{slow:?}"), "{}", text);
            prop_assert_eq!(&one.variables, &other.variables);
            prop_assert_eq!(&one.secrets.all, &other.secrets.all);
        }
    }
}

/// Templates that the library renders: texts, values and comments, and blocks with them, with and without `~`.
fn valid() -> impl Strategy<Value = String> {
    let texts = ["a", " ", "  ", "\n", "\r\n", " \n", "\n  ", "\t", "é", "\n\n", ".\n", "\\{{x}}", "} }"];
    let comments = ["{{!c}}", "{{! c }}", "{{!-- c --}}", "{{!-- {{a}} {{/if}} --}}", "{{! ~ }}", "{{!-}}"];
    let paths = ["@root.x", "@root.b.c", " @root.x "];
    let value = (tilde(), proptest::sample::select(paths.to_vec()), tilde());
    let leaf = prop_oneof![
        4 => proptest::sample::select(texts.to_vec()).prop_map(str::to_owned),
        2 => proptest::sample::select(comments.to_vec()).prop_map(str::to_owned),
        2 => value.prop_map(|(before, path, after)| format!("{{{{{before}{path}{after}}}}}")),
    ];
    let parts = |part: BoxedStrategy<String>| proptest::collection::vec(part, 0..6).prop_map(|parts| parts.concat());
    let block = move |inner: BoxedStrategy<String>| {
        let names = proptest::sample::select(vec!["if", "unless", "each", "with"]);
        let condition = proptest::sample::select(vec!["@root.a", "@root.b", "@root.no", "@root.x"]);
        let branch = |words: BoxedStrategy<String>| {
            (tilde(), words, tilde(), parts(inner.clone()))
                .prop_map(|(before, words, after, body)| format!("{{{{{before}{words}{after}}}}}{body}"))
        };
        let chained = (proptest::sample::select(vec!["if", "unless"]), condition.clone());
        let chained = branch(chained.prop_map(|(name, path)| format!("else {name} {path}")).boxed());
        let other = branch(prop_oneof![Just("else".to_owned()), Just("^".to_owned())].boxed());
        (
            (names, condition, tilde(), tilde(), parts(inner.clone())),
            proptest::collection::vec(chained, 0..3),
            proptest::option::of(other),
            (tilde(), tilde()),
        )
            .prop_map(|((name, path, before, after, body), chained, other, (close, end))| {
                // `each` iterates over a list or an object.
                let path = if name == "each" && path == "@root.x" { "@root.a" } else { path };
                let (chained, other) = (chained.concat(), other.unwrap_or_default());
                format!("{{{{{before}#{name} {path}{after}}}}}{body}{chained}{other}{{{{{close}/{name}{end}}}}}")
            })
    };
    parts(leaf.boxed().prop_recursive(3, 24, 4, move |inner| prop_oneof![inner.clone(), block(inner)]).boxed())
}

fn tilde() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec!["", "", "~"])
}

/// The parts of templates with names alone, and of similar ones.
fn simple() -> impl Strategy<Value = String> {
    let parts = [
        "{{a}}",
        "{{ a }}",
        "{{input.ticket_id}}",
        "{{  _x.y9 }}",
        "{{a.b.c}}",
        "{{now}}",
        "{{log}}",
        "{{this.a}}",
        "{{elsewhere}}",
        "{{truely}}",
        "{{a.0}}",
        "{{a-b}}",
        "{{~a}}",
        "{",
        "}",
        "{ ",
        " }",
        "\n",
        " ",
        "text",
        "\"",
        "orgconfig:k ",
        "orgconfig:",
        "orgconfig:k",
        "é",
        "\t",
        "\r\n",
        "&",
        "<a>",
        "{{a.length}}",
        "{{as}}",
        "{{each}}",
        "{{nullable}}",
        "{{undefined_x}}",
        "{{a.else}}",
        "{{a.if}}",
        "{{if_so}}",
        "{{rawly}}",
        "{{ns.as}}",
    ];
    prop_oneof![12 => proptest::sample::select(parts.to_vec()).prop_map(str::to_owned), 1 => "[ -~\n]{0,12}"]
}

fn fragment() -> impl Strategy<Value = String> {
    let tags = [
        "{{a}}",
        "{{{b}}}",
        "{{&a}}",
        "{{#if a}}",
        "{{~#if a~}}",
        "{{~else~}}",
        "{{~else if b~}}",
        "{{~/if~}}",
        "{{~a~}}",
        "{{! c ~}}",
        "{{!-- c --~}}",
        "\r\n",
        "{{else}}",
        "{{^}}",
        "{{else if b}}",
        "{{/if}}",
        "{{#each a as |x y|}}",
        "{{/each}}",
        "{{x}}",
        "{{#with b}}",
        "{{/with}}",
        "{{../a}}",
        "{{@index}}",
        "{{@key}}",
        "{{this}}",
        "{{!c}}",
        "{{!-- c --}}",
        "\\",
        "\\\\",
        "{{",
        "}}",
        "{",
        "}",
        "{{~",
        "~}}",
        "{{lookup a 0}}",
        "{{#unless a}}",
        "{{/unless}}",
        "orgconfig:",
        "orgconfig:k ",
        "é",
        "\n",
        " ",
        "a",
        "(",
        ")",
        "[",
        "]",
        "\"",
        "'",
        "|",
        "=",
        ".",
        "/",
        "{{a.[b c]}}",
        "{{#if (lookup a 0)}}",
        "{{\"a\"}}",
        "{{true}}",
        "{{elsewhere}}",
        "{{{{raw}}}}",
        "{{{{/raw}}}}",
        "{{>p}}",
        "{{a=b}}",
    ];
    prop_oneof![8 => proptest::sample::select(tags.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}
