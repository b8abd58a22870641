//! What must not reach a terminal, a log or a page does not, and what is harmless stays as it is.

use super::*;
use proptest::prelude::*;

#[test]
fn ansi_bidi_zero_width_and_tags_are_shown_by_their_code() {
    assert_eq!(terminal("a\u{1b}[31mb"), "a\\u{1B}[31mb");
    assert_eq!(terminal("\u{202E}evil\u{2069}"), "\\u{202E}evil\\u{2069}");
    assert_eq!(terminal("pay\u{200B}ment\u{FEFF}"), "pay\\u{200B}ment\\u{FEFF}");
    assert_eq!(terminal("x\u{E0041}"), "x\\u{E0041}");
    assert_eq!(terminal("\u{9b}2J"), "\\u{9B}2J");
}

#[test]
fn prose_keeps_its_spaces_and_emoji_and_what_is_agreed_to_does_not() {
    let prose = "10\u{202F}000\u{A0}€ \u{3000}漢字 ❤\u{FE0F}";
    assert!(matches!(terminal(prose), Cow::Borrowed(same) if same == prose));
    assert!(matches!(line(prose), Cow::Borrowed(same) if same == prose));
    assert_eq!(html(prose), prose);
    let shown = "10\\u{202F}000\\u{A0}€ \\u{3000}漢字 ❤\\u{FE0F}";
    assert_eq!(exact(prose), shown);
    assert_eq!(exact_line(&format!("{prose}\n")), format!("{shown}\\n"));
    assert_eq!(exact_html(prose), shown);
}

#[test]
fn plain_text_is_not_copied() {
    for text in ["plain", "line\n\tindented", "Zażółć 漢字 🦀"] {
        assert!(matches!(terminal(text), Cow::Borrowed(same) if same == text));
        assert!(matches!(json(text), Cow::Borrowed(same) if same == text));
    }
}

#[test]
fn a_line_end_of_windows_is_a_line_end_and_a_lone_return_is_not() {
    assert_eq!(terminal("a\r\nb"), "a\nb");
    assert_eq!(terminal("real\rfake"), "real\\u{D}fake");
}

#[test]
fn a_line_stays_one_line() {
    assert_eq!(line("a\nb\tc\u{7}"), "a\\nb\\tc\\u{7}");
}

#[test]
fn human_output_to_a_file_keeps_joiners_and_loses_controls() {
    assert_eq!(controls("👩\u{200D}💻 \u{1b}]52;c;x\u{7}"), "👩\u{200D}💻 \\u{1B}]52;c;x\\u{7}");
}

#[test]
fn escaped_json_means_the_same() {
    let value = serde_json::json!({"a\u{202E}": "\u{9b}x\u{E0041}\u{200B}\u{7f}\n"});
    let text = value.to_string();
    let shown = json(&text);
    assert!(!shown.contains(is_hidden));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
}

#[test]
fn html_holds_no_element_of_the_text() {
    assert_eq!(html("<b a=\"'\">&"), "&lt;b a=&quot;&#39;&quot;&gt;&amp;");
}

proptest! {
    #[test]
    fn nothing_hidden_ever_comes_through(text in ".*") {
        prop_assert!(!terminal(&text).contains(is_hidden));
        prop_assert!(!line(&text).contains(|c| is_hidden(c) || c == '\n' || c == '\t'));
        prop_assert!(!exact(&text).contains(deceives) && !exact_html(&text).contains(deceives));
        prop_assert!(!exact_line(&text).contains(|c| deceives(c) || c == '\n' || c == '\t'));
        prop_assert!(!controls(&text).contains(is_control));
        prop_assert!(!html(&text).contains(['<', '>', '"', '\'']));
    }
}

#[test]
fn a_report_keeps_the_joiners_of_scripts_and_emoji_and_shows_what_is_hidden() {
    for text in ["plain", "Zürich 東京 ירושלים", "👩\u{200D}💻 ❤\u{FE0F}\u{200D}🔥", "می\u{200C}خواهم", "a\n\tb"]
    {
        assert_eq!(report(text), text);
    }
    for (text, shown) in [
        ("in\u{202E}side", "in\\u{202E}side"),
        ("a\u{200B}b", "a\\u{200B}b"),
        ("a\u{200D}b", "a\\u{200D}b"),
        ("東\u{200D}", "東\\u{200D}"),
        ("東\u{200D}\u{200D}京", "東\\u{200D}\\u{200D}京"),
        ("\u{1B}[2J", "\\u{1B}[2J"),
    ] {
        assert_eq!(report(text), shown);
    }
}
