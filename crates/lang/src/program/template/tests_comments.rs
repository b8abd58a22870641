//! Comments: how the library handles them, and the `~` that it ignores.

use super::*;

#[track_caller]
fn fault(text: &str) -> TemplateFault {
    Template::compile(text, ValueEscape::Plain).map(|template| panic!("{text}: {template:?}")).unwrap_err()
}

#[test]
fn a_tilde_in_a_comment_is_reported_at_its_place() {
    for (text, at) in [
        ("a {{! c ~}} b", 8),
        ("a {{!~}} b", 5),
        ("a {{!-- c --~}} b", 12),
        ("a {{!-- c --~}} b {{!-- d --}}", 12),
        ("{{a}} {{!-- {{b}} --~}} c {{!-- --}}", 20),
    ] {
        let fault = fault(text);
        assert_eq!((fault.code, fault.range), (codes::TEMPLATE, Some(at..at + 1)), "{text}: {}", fault.message);
    }
    // The library has no rule for it.
    assert_eq!(fault("a {{~! c}} b").code, codes::TEMPLATE);
    assert!(handlebars::Template::compile("a {{~! c}} b").is_err());
}

#[test]
fn the_library_leaves_the_whitespace_beside_a_comment() {
    let library = handlebars::Handlebars::new();
    for (text, rendered) in [
        ("a {{! c ~}} b", "a  b"),
        ("a {{!-- c --~}} b", "a  b"),
        // The library searches further for the end of the comment.
        ("a {{!-- c --~}} b {{!-- d --}} e", "a  e"),
    ] {
        assert_eq!(library.render_template(text, &()).unwrap(), rendered, "{text}");
    }
}

#[test]
fn a_tilde_inside_of_a_comment_means_nothing() {
    for text in ["a{{!-- {{~t~}} --}}b", "a{{! ~ c ~ }}b", "a{{!-- ~ --}}b", "a{{!-- c ~--}}b"] {
        assert!(Template::compile(text, ValueEscape::Plain).unwrap().is_literal(), "{text}");
        assert_eq!(handlebars::Handlebars::new().render_template(text, &()).unwrap(), "ab", "{text}");
    }
}
