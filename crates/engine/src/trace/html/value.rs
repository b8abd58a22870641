//! Values on the page: texts as prose or in a box, JSON laid out and in quiet colours, long ones folded.

use std::fmt::Write as _;

use serde_json::Value;

use crate::trace::escape::{exact_html, html as escaped};
use crate::trace::json::{JsonToken, gist, pieces};
use crate::trace::units::plural;

/// The columns that JSON is laid out in.
const WIDTH: usize = 84;
/// A box with more lines is folded.
const LINES: usize = 14;
/// A box with more characters is folded.
const CHARACTERS: usize = 1_600;
/// The visible columns of a folded box.
const SEEN: usize = 320;

/// A value in a box with this class; a long one is folded to its gist.
pub fn boxed(class: &str, value: &Value) -> String {
    boxed_by(class, value, escaped)
}

/// The same for a value that a human approves: characters that only look like a space are shown too.
pub fn exactly(class: &str, value: &Value) -> String {
    boxed_by(class, value, exact_html)
}

/// A function that escapes a text.
type EscapeFn = fn(&str) -> String;

fn boxed_by(class: &str, value: &Value, escape: EscapeFn) -> String {
    let shown = marked(value, escape);
    if shown.lines <= LINES && shown.characters <= CHARACTERS {
        return format!("<pre class=\"{class}\">{}</pre>\n", shown.text);
    }
    let begin = match value {
        Value::String(text) => {
            let begin: String = text.trim_start().chars().take(SEEN).collect();
            format!("{}…", begin.replace('\n', " ").trim_end())
        }
        other => gist(other, SEEN),
    };
    format!(
        "<details class=\"{class}\"><summary><code>{}</code> <em>{}, {}</em></summary><pre>{}</pre></details>\n",
        escape(&begin),
        plural(shown.lines, "line"),
        plural(shown.characters, "character"),
        shown.text
    )
}

/// An answer: a text as prose, anything else in a box.
pub fn prose(value: &Value) -> String {
    match value {
        Value::String(text) => format!("<p class=\"prose\">{}</p>\n", escaped(text.trim())),
        other => format!("<pre>{}</pre>\n", marked(other, escaped).text),
    }
}

struct Marked {
    /// Escaped.
    text: String,
    lines: usize,
    characters: usize,
}

fn marked(value: &Value, escape: EscapeFn) -> Marked {
    if let Value::String(text) = value {
        let text = text.trim_end_matches('\n');
        let lines = text.lines().count().max(1);
        return Marked { text: escape(text), lines, characters: text.chars().count() };
    }
    let mut text = String::new();
    let (mut lines, mut characters) = (1, 0);
    pieces(value, WIDTH, &mut |kind, piece| {
        lines += piece.matches('\n').count();
        characters += piece.chars().count();
        let _ = match class(kind) {
            Some(class) => write!(text, "<span class=\"{class}\">{}</span>", escape(piece)),
            None => write!(text, "{}", escape(piece)),
        };
    });
    Marked { text, lines, characters }
}

fn class(kind: JsonToken) -> Option<&'static str> {
    match kind {
        JsonToken::Key => Some("k"),
        JsonToken::Number | JsonToken::Word => Some("n"),
        JsonToken::Text | JsonToken::Mark => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::json::on_one_line;
    use serde_json::json;

    #[test]
    fn a_long_value_is_folded_and_its_gist_is_seen() {
        let text = boxed("out", &json!("x\n".repeat(100)));
        assert!(text.starts_with("<details class=\"out\"><summary><code>x x"), "{text}");
        assert!(boxed("out", &json!("x")).starts_with("<pre class=\"out\">x</pre>"));
        let rows = boxed("out", &json!({"rows": vec![json!({"id": 1, "name": "n".repeat(60)}); 30]}));
        assert!(rows.contains(" more]}</code>") && rows.contains("<span class=\"k\">"), "{rows}");
    }

    #[test]
    fn a_folded_value_says_how_long_it_is() {
        let folded = boxed("out", &json!((0..20).collect::<Vec<_>>().repeat(8)));
        let laid_out = folded.split_once("<pre>").unwrap().1.split_once("</pre>").unwrap().0;
        let plain = laid_out.replace("</span>", "").replace("<span class=\"n\">", "");
        let said = format!("<em>{} lines, {} characters</em>", plain.lines().count(), plain.chars().count());
        assert!(folded.contains(&said), "{said}: {folded}");
        assert!(boxed("out", &json!("x\n".repeat(15))).contains("<em>15 lines, 29 characters</em>"));
        assert!(boxed("out", &json!("x\n".repeat(14))).starts_with("<pre"));
    }

    #[test]
    fn no_value_holds_an_element_and_what_is_approved_shows_each_blank() {
        let value = json!({ "<b>": "10\u{A0}<i>" });
        assert_eq!(
            boxed("in", &value),
            "<pre class=\"in\">{<span class=\"k\">&quot;&lt;b&gt;&quot;</span>: &quot;10\u{A0}&lt;i&gt;&quot;}</pre>\n"
        );
        assert_eq!(exactly("in", &json!("10\u{A0}<i>")), "<pre class=\"in\">10\\u{A0}&lt;i&gt;</pre>\n");
        assert_eq!(prose(&json!(" <b>it</b> is so\n")), "<p class=\"prose\">&lt;b&gt;it&lt;/b&gt; is so</p>\n");
        assert_eq!(prose(&json!(["<b>"])), "<pre>[&quot;&lt;b&gt;&quot;]</pre>\n");
    }

    #[test]
    fn what_is_marked_reads_as_it_would_without_marks() {
        let value = json!({"a": [1, true, "t"]});
        let plain = marked(&value, escaped).text.replace("</span>", "").replace("<span class=\"k\">", "");
        assert_eq!(plain.replace("<span class=\"n\">", "").replace("&quot;", "\""), on_one_line(&value));
    }
}
