//! Escapes texts from documents, models, tools, servers and file names, so that they can't control terminals,
//! logs and browsers, and stay readable.

use std::borrow::Cow;
use std::fmt::Write as _;

#[cfg(test)]
mod tests;

use loopctl_lang::policy::characters::deceives;
pub use loopctl_lang::policy::characters::is_hidden;

/// Whether a character is a control character in the narrow sense: one that a terminal may obey.
fn is_control(c: char) -> bool {
    matches!(c, '\u{00}'..='\u{08}' | '\u{0B}'..='\u{1F}' | '\u{7F}'..='\u{9F}')
}

/// For prose on a terminal: hidden characters are shown as `\u{202E}`; tab and newline stay, and so do the
/// spaces of all languages. A carriage return right before a newline is removed.
pub fn terminal(text: &str) -> Cow<'_, str> {
    show(text, is_hidden)
}

/// For text that a human approves, on a terminal: as [`terminal`], and characters that only look like a space
/// are shown by their number too.
pub fn exact(text: &str) -> Cow<'_, str> {
    show(text, deceives)
}

/// For human output that may go to a file: only control characters are shown as `\u{1B}`; joiners and marks
/// that scripts need stay.
pub fn controls(text: &str) -> Cow<'_, str> {
    show(text, is_control)
}

/// For one line of a terminal or a log: as [`terminal`], and newlines and tabs are shown as `\n`, `\t`.
pub fn line(text: &str) -> Cow<'_, str> {
    one_line(text, is_hidden)
}

/// For one line of text that a human approves: as [`exact`], and newlines and tabs are shown.
pub fn exact_line(text: &str) -> Cow<'_, str> {
    one_line(text, deceives)
}

/// For the text of a report that programs and people read: hidden characters are shown by their number, but for the joiners
/// that emoji and the scripts of some languages need between two of their characters. Newlines and tabs stay.
pub fn report(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let (mut before, mut rest) = (None, text.chars().peekable());
    let joins = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_hidden(c));
    while let Some(c) = rest.next() {
        if matches!(c, '\u{200C}' | '\u{200D}') && joins(before) && joins(rest.peek().copied()) {
            shown.push(c);
        } else {
            push(&mut shown, c, is_hidden);
        }
        before = Some(c);
    }
    shown
}

fn one_line(text: &str, hide: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(|c| matches!(c, '\n' | '\t') || hide(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            c => push(&mut shown, c, hide),
        }
    }
    Cow::Owned(shown)
}

/// For JSON on one line: hidden characters as `\uXXXX`. The text must be valid JSON without newlines between
/// its tokens; its meaning does not change, because such characters only occur inside strings.
pub fn json(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 32);
    let mut units = [0u16; 2];
    for c in text.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut units) {
                // Writing to a String can't fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// For the inside of an HTML element or a quoted attribute. Hidden characters are shown as on a terminal, so
/// that a page can't be misread.
pub fn html(text: &str) -> String {
    markup(&terminal(text))
}

/// The same for text that a human approves, with the characters that [`exact`] shows by their number.
pub fn exact_html(text: &str) -> String {
    markup(&exact(text))
}

fn markup(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            c => shown.push(c),
        }
    }
    shown
}

/// Adds one character to `shown`, as [`terminal`] shows it.
pub fn push(shown: &mut String, c: char, hide: fn(char) -> bool) {
    if hide(c) {
        let _ = write!(shown, "\\u{{{:X}}}", u32::from(c));
    } else {
        shown.push(c);
    }
}

fn show(text: &str, hide: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(hide) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '\r' && rest.peek() == Some(&'\n') {
            continue;
        }
        push(&mut shown, c, hide);
    }
    Cow::Owned(shown)
}
