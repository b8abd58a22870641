//! What a fault recommends, in the words of HTTP: the faults of documents and runs are written for the command line, whose
//! options a client of the server does not have.

use std::borrow::Cow;

/// What is said of an option, and what a client does in its place. The first that fits is taken.
const WORDS: [(&str, &str); 14] = [
    ("give its names one by one, as in --input name=value", "write it as an object: `\"input\": {\"name\": ...}`"),
    ("`--new-document` and no decision", "`{\"resume\": true, \"new_document\": true}`"),
    ("decide with `--if` and its hash", "decide with its `hash`"),
    ("by --new-document", "by `\"new_document\": true`"),
    ("by --recorded-document", "by `\"new_document\": false`"),
    (", or --model", ""),
    ("name the loop, and this one with `--actions FILE`", "send the loop, and serve this one in the folder `actions`"),
    ("name the loop, and this one with `--script FILE`", "send the loop"),
    ("move it into a folder `actions`, or name it with `--actions`", "move it into a folder `actions`"),
    ("`--actions FILE` names another file", "the server reads the actions of the folder that it serves"),
    ("give those that are needed with `--actions FILE`", "leave those that are needed in the folder `actions`"),
    ("name it with `--actions FILE`", "move it into a folder `actions`"),
    ("--new-document", "`\"new_document\": true`"),
    ("--recorded-document", "`\"new_document\": false`"),
];
/// The option of the command line that gives an input, before its name.
const INPUT: &str = "--input ";

/// A text in the words of HTTP.
pub fn over_http(text: &str) -> Cow<'_, str> {
    if !text.contains("--") {
        return Cow::Borrowed(text);
    }
    let mut shown = text.to_owned();
    for (said, meant) in WORDS {
        if shown.contains(said) {
            shown = shown.replace(said, meant);
        }
    }
    Cow::Owned(inputs(&shown))
}

/// `--input NAME=...` is a member of the body.
fn inputs(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(INPUT) {
        shown.push_str(before);
        match after.split_once("=...") {
            Some((name, after)) if !name.is_empty() && !name.contains(char::is_whitespace) => {
                shown.push_str(&format!("`\"input\": {{\"{name}\": ...}}` in the body"));
                rest = after;
            }
            _ => {
                shown.push_str("`input` of the body ");
                rest = after;
            }
        }
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_command_line_are_said_as_members_of_the_body() {
        for (said, shown) in [
            ("give it: --input order_id=...", "give it: `\"input\": {\"order_id\": ...}` in the body"),
            (
                "`oder` was given, which the loop does not have: write --input order=...",
                "`oder` was given, which the loop does not have: write `\"input\": {\"order\": ...}` in the body",
            ),
            (
                "give its names one by one, as in --input name=value",
                "write it as an object: `\"input\": {\"name\": ...}`",
            ),
            ("--input", "--input"),
            ("a -- b", "a -- b"),
        ] {
            assert_eq!(over_http(said), shown);
        }
        let shown = over_http(
            "l.json has changed since the run began; continue with the new text by --new-document, or with the recorded one by \
             --recorded-document",
        );
        assert!(
            shown.contains("by `\"new_document\": true`") && shown.ends_with("by `\"new_document\": false`"),
            "{shown}"
        );
    }
}
