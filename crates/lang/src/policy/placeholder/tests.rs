//! What is a placeholder of another language, and what only looks like one.

use super::{Notation, placeholders};

#[test]
fn the_notations_of_other_languages_are_found() {
    for (text, written, name, notation) in [
        ("a {id} b", "{id}", "id", Notation::Braces),
        ("a { user.id } b", "{ user.id }", "user.id", Notation::Braces),
        ("a/${id}/b", "${id}", "id", Notation::MarkedBraces),
        ("${HOST:-localhost}", "${HOST:-localhost}", "HOST", Notation::MarkedBraces),
        ("of {input[parcel]}.", "{input[parcel]}", "input[parcel]", Notation::Braces),
        ("${input[\"a\"]}", "${input[\"a\"]}", "input[\"a\"]", Notation::MarkedBraces),
        ("#{id}", "#{id}", "id", Notation::MarkedBraces),
        ("$(id)", "$(id)", "id", Notation::MarkedBraces),
        ("of $id.", "$id", "id", Notation::Dollar),
        ("$.ttl", "$.ttl", "ttl", Notation::JsonPath),
        ("$.input.rows[0].id", "$.input.rows[0].id", "input.rows[0].id", Notation::JsonPath),
        ("$['claim'].id", "$['claim'].id", "claim'].id", Notation::JsonPath),
        ("/orders/:id/items", ":id", "id", Notation::Colon),
        ("order <order id>", "<order id>", "order id", Notation::Angle),
        ("%NAME%", "%NAME%", "NAME", Notation::Percent),
        ("= %(id)s", "%(id)s", "id", Notation::Percent),
        ("Who owns @input.host?", "@input.host", "input.host", Notation::At),
        ("[[id]]", "[[id]]", "id", Notation::Brackets),
        ("id = %s", "%s", "", Notation::Printf),
        ("{% if vip %}", "{% if vip %}", "", Notation::Block),
        ("<%= id %>", "<%= id %>", "", Notation::Block),
    ] {
        let found = placeholders(text);
        let [one] = found.as_slice() else { panic!("{text}: {found:?}") };
        assert_eq!((&text[one.range.clone()], one.name, one.notation), (written, name, notation), "{text}");
    }
}

#[test]
fn what_only_looks_like_one_is_none() {
    for text in [
        "{{input.host}} ${{input.amount}} {{{input.raw}}} {{#if @input.x}}{{else}}{{/if}}",
        "$..book, $.items[*].id, $[0], $.",
        "$5, 10:30, https://host:8080/a, a::text, 100% sure, 50%, 5 < 6 > 4",
        r#"{"a": 1} {} {0} { a: 1 } \{id} \$id"#,
        "mail me@input.com or a-b@input.org",
        "@input.host",
        "a {{unclosed {id}",
        "${input.a",
    ] {
        assert_eq!(placeholders(text), [], "{text}");
    }
}

#[test]
fn so_many_are_found_and_no_more() {
    assert_eq!(placeholders(&"{a} ".repeat(10_000)).len(), super::MAX_FOUND);
}
