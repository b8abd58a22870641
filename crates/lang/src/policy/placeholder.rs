//! How other languages write a variable in a text: `{x}`, `${x}`, `$x`, `:x`, `<x>`, `%s`, `{% if x %}`. A template
//! here reads none of them, and SQL only some.

use std::ops::Range;

/// A variable, or a block, in the syntax of another language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder<'t> {
    /// Its place in the text, in bytes.
    pub range: Range<usize>,
    /// The name, which may have dots in it; empty for [`Printf`](Notation::Printf) and [`Block`](Notation::Block).
    pub name: &'t str,
    /// How it is written.
    pub notation: Notation,
}

/// How a placeholder is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// `{x}`.
    Braces,
    /// `${x}`, `#{x}`, `%{x}`, `$(x)`.
    MarkedBraces,
    /// `$x`.
    Dollar,
    /// `$.x`, `$.x[0].y`, `$['x']`.
    JsonPath,
    /// `:x`.
    Colon,
    /// `<x>`.
    Angle,
    /// `%x%`, `%(x)s`.
    Percent,
    /// `@x` inside a longer text.
    At,
    /// `[[x]]`.
    Brackets,
    /// `%s`, `%d`.
    Printf,
    /// `{% if x %}`, `<%= x %>`.
    Block,
}

/// The most that are found in one text.
const MAX_FOUND: usize = 50;
/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 100;
/// Whether a placeholder begins with this byte.
fn is_mark(byte: u8) -> bool {
    matches!(byte, b'{' | b'$' | b':' | b'<' | b'%' | b'@' | b'[' | b'#')
}

/// The placeholders of a text outside of the tags of its own templates, in their order.
pub fn placeholders(text: &str) -> Vec<Placeholder<'_>> {
    let (mut found, mut at) = (Vec::new(), 0);
    // Byte by byte: the marks are ASCII, and never part of another character.
    while let Some(step) = text.as_bytes().get(at..).and_then(|rest| rest.iter().copied().position(is_mark)) {
        let begin = at + step;
        let rest = text.get(begin..).unwrap_or_default();
        if rest.starts_with("{{") {
            match rest.find("}}") {
                Some(end) => at = begin + end + 2,
                None => break,
            }
            continue;
        }
        let before = text.get(..begin).and_then(|before| before.chars().next_back()).unwrap_or(' ');
        let Some(Read { length, name, notation }) = read(rest, before) else {
            at = begin + 1;
            continue;
        };
        // A whole text of `@x` is a path, and is read.
        if notation != Notation::At || length < text.len() {
            found.push(Placeholder { range: begin..begin + length, name, notation });
        }
        if found.len() >= MAX_FOUND {
            break;
        }
        at = begin + length;
    }
    found
}

/// What begins a text.
struct Read<'t> {
    length: usize,
    name: &'t str,
    notation: Notation,
}

fn read(rest: &str, before: char) -> Option<Read<'_>> {
    if before == '\\' {
        return None;
    }
    let joined = before.is_alphanumeric() || before == '_';
    let mark = rest.chars().next()?;
    let after = rest.get(1..)?;
    let next = after.chars().next()?;
    match (mark, next) {
        ('{', '%') => block(rest, "%}"),
        ('<', '%') => block(rest, "%>"),
        ('{', _) => enclosed(rest, 1, "}", Notation::Braces).filter(|read| !follows(rest, read.length, '}')),
        ('$' | '#' | '%', '{') => enclosed(rest, 2, "}", Notation::MarkedBraces),
        ('$', '(') => enclosed(rest, 2, ")", Notation::MarkedBraces),
        ('[', '[') => enclosed(rest, 2, "]]", Notation::Brackets),
        ('%', '(') => ["s", "d", "f"].into_iter().find_map(|kind| {
            let read = enclosed(rest, 2, ")", Notation::Percent)?;
            rest.get(read.length..)?.starts_with(kind).then_some(Read { length: read.length + 1, ..read })
        }),
        ('%', _) => percent(rest, joined || before == '%'),
        ('<', _) => angle(rest),
        ('$', '.' | '[') if !joined && before != '$' => json_path(after),
        ('$', _) if !joined && before != '$' => bare(after, Notation::Dollar),
        (':', _) if !joined && !matches!(before, ':' | ')' | ']' | '}') => bare(after, Notation::Colon),
        ('@', _) if !joined && !matches!(before, '.' | '+' | '@') => bare(after, Notation::At),
        _ => None,
    }
}

fn follows(rest: &str, at: usize, c: char) -> bool {
    rest.get(at..).is_some_and(|rest| rest.starts_with(c))
}

/// A tag of another template language, up to its end.
fn block<'t>(rest: &'t str, end: &str) -> Option<Read<'t>> {
    let near = rest.get(..rest.floor_char_boundary(2 * MAX_NAME_BYTES))?;
    Some(Read { length: near.find(end)? + end.len(), name: "", notation: Notation::Block })
}

/// A name after `begin` bytes and before `end`; between them a value in case there is none, as in `${x:-y}`.
fn enclosed<'t>(rest: &'t str, begin: usize, end: &str, notation: Notation) -> Option<Read<'t>> {
    let inner = rest.get(begin..)?;
    let blank = inner.len() - inner.trim_start_matches(' ').len();
    let name = indexed(inner.get(blank..)?)?;
    let after = inner.get(blank + name.len()..)?;
    let tail = after.trim_start_matches(' ');
    let mut length = begin + blank + name.len() + (after.len() - tail.len());
    if notation == Notation::MarkedBraces && tail.starts_with(":-") {
        length += tail.get(..tail.floor_char_boundary(MAX_NAME_BYTES))?.find(end)?;
    } else if !tail.starts_with(end) {
        return None;
    }
    Some(Read { length: length + end.len(), name, notation })
}

/// `%x%`, `%s`.
fn percent(rest: &str, joined: bool) -> Option<Read<'_>> {
    let name = path(rest.get(1..)?)?;
    let length = 1 + name.len();
    // `%C3%B6`: bytes of an address.
    let is_byte = name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if follows(rest, length, '%') && name.len() > 1 && !is_byte {
        return Some(Read { length: length + 1, name, notation: Notation::Percent });
    }
    let printf = matches!(name, "s" | "d") && !joined;
    printf.then_some(Read { length, name: "", notation: Notation::Printf })
}

/// `<order id>`: letters, digits and what parts words.
fn angle(rest: &str) -> Option<Read<'_>> {
    let inner = rest.get(1..)?;
    let length = inner.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ')))?;
    let name = inner.get(..length).filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))?;
    let fits = length <= MAX_NAME_BYTES && follows(inner, length, '>') && !name.ends_with(' ');
    fits.then_some(Read { length: length + 2, name, notation: Notation::Angle })
}

/// A name directly after a mark.
fn bare(after: &str, notation: Notation) -> Option<Read<'_>> {
    let name = path(after)?;
    Some(Read { length: 1 + name.len(), name, notation })
}

/// A path with an index after it, as in `input["x"]`; or without one.
fn indexed(text: &str) -> Option<&str> {
    let name = path(text)?;
    let index = text.get(name.len()..)?.strip_prefix('[');
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '"' | '\'');
    let length = index.and_then(|index| {
        let length = index.find(|c| !inside(c))?;
        (length > 0 && length <= MAX_NAME_BYTES && follows(index, length, ']')).then_some(length + 2)
    });
    text.get(..name.len() + length.unwrap_or_default())
}

/// The path behind the mark of a JSONPath. One that selects several values is none.
fn json_path(after: &str) -> Option<Read<'_>> {
    let start = if after.starts_with("['") || after.starts_with("[\"") { 2 } else { 1 };
    let inner = after.get(start..)?;
    let quoted = start == 2;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | '\'' | '"');
    let length = inner.find(|c| !is_part(c)).unwrap_or(inner.len());
    let name = inner.get(..length)?.trim_end_matches('.');
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let selects = name.contains("..") || name.contains("[]") || inner.get(length..)?.starts_with(['*', '?', '(']);
    let fits = begins && !selects && name.len() <= MAX_NAME_BYTES && (!quoted || name.contains(']'));
    fits.then_some(Read { length: 1 + start + name.len(), name, notation: Notation::JsonPath })
}

/// Names with dots between them.
fn path(text: &str) -> Option<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let length = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let name = text.get(..length)?.trim_end_matches('.');
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins && name.len() <= MAX_NAME_BYTES).then_some(name)
}

#[cfg(test)]
mod tests {
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
}
