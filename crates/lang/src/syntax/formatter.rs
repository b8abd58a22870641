//! The format of a document: the fields that the language knows in its order, two spaces for each level, and each array and
//! object on one line when it fits. Numbers and strings are copied as they are written, and what is no known field keeps
//! its place: the order of an input schema's properties, or of models, is their author's.

use serde_json::Value;

use super::document::{DocumentKind, read_as};
use super::shape::{KnownMember, ValueForm};
use super::{MAX_BYTES, Node, NodeKind, Span, Tree, parse, repeated_keys};
use crate::diagnostic::{Diagnostic, Source, codes, sort_by_place};
use crate::language::Project;

/// The most characters of a line, unless one key with its value has more.
const MAX_LINE_CHARACTERS: usize = 100;
/// The spaces of a level.
const INDENT_SPACES: usize = 2;

/// The formatted text of a document of a kind. Formatting it once more changes nothing.
///
/// # Errors
/// The faults of the text: what is no JSON, or has a key twice, has no format that keeps its meaning. One fault when the
/// formatted text would be longer than what is read.
pub fn formatted(source: &Source, kind: DocumentKind) -> Result<String, Vec<Diagnostic>> {
    let (tree, mut faults) = parse(source);
    faults.extend(repeated_keys(&tree));
    if !faults.is_empty() {
        sort_by_place(&mut faults);
        return Err(faults);
    }
    let text = String::with_capacity(source.text.len());
    let mut formatter = Formatter { tree: &tree, text, line_break: line_break(source) };
    formatter.value(ValueForm::of_kind(kind.name()), &tree.root, LinePlace::default(), true);
    formatter.text.push_str(formatter.line_break);
    let Formatter { text, .. } = formatter;
    if text.len() > MAX_BYTES {
        let message = format!("formatted, the text has {} bytes; at most {MAX_BYTES} (16 MiB) are read", text.len());
        return Err(vec![Diagnostic::error(codes::TOO_MUCH, message, "", source.whole())]);
    }
    Ok(text)
}

/// The formatted text of a value that is written as a document of a kind. A value that no document could hold stays on one
/// line.
pub fn formatted_value(value: &Value, kind: DocumentKind) -> String {
    let source = Source::new("", value.to_string());
    formatted(&source, kind).unwrap_or_else(|_| format!("{value}\n"))
}

/// The formatted text of a new document with the name of its file; the text itself when it is none.
pub fn formatted_document(file: &str, text: &str) -> String {
    let source = Source::new(file, text);
    let is_project = file.rsplit('/').next() == Some(Project::FILE);
    let kind = read_as(&source, is_project.then_some(DocumentKind::Project)).kind;
    kind.and_then(|kind| formatted(&source, kind).ok()).unwrap_or_else(|| text.to_owned())
}

/// The line break of a text: that of its first line.
fn line_break(source: &Source) -> &'static str {
    match source.text.split_once('\n') {
        Some((first, _)) if first.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

struct Formatter<'t> {
    tree: &'t Tree,
    text: String,
    line_break: &'static str,
}

/// Where a value is written.
#[derive(Clone, Copy, Default)]
struct LinePlace {
    /// The spaces before the line.
    indent: usize,
    /// The characters before the value in its line.
    before: usize,
    /// The characters after it: a comma, or nothing.
    after: usize,
}

/// An item of an array or a member of an object.
struct Entry<'n> {
    /// The place of the key, with its quotes.
    key: Option<Span>,
    value: &'n Node,
    form: ValueForm,
}

/// What begins and ends an array or an object: on lines of its own, and on one line.
struct Brackets {
    broken: [&'static str; 2],
    flat: [&'static str; 2],
}

static ARRAY: Brackets = Brackets { broken: ["[", "]"], flat: ["[", "]"] };
static OBJECT: Brackets = Brackets { broken: ["{", "}"], flat: ["{ ", " }"] };

impl Formatter<'_> {
    /// Writes a value. The tree is never deeper than `MAX_DEPTH`: the recursion ends. The whole document is never on one
    /// line.
    fn value(&mut self, form: ValueForm, node: &Node, place: LinePlace, is_root: bool) {
        let Some((brackets, entries)) = entries(form, node) else {
            return self.text.push_str(self.tree.raw(node.span));
        };
        let room = MAX_LINE_CHARACTERS.checked_sub(place.before + place.after).filter(|_| !is_root);
        if entries.is_empty() {
            brackets.broken.iter().for_each(|bracket| self.text.push_str(bracket));
        } else if room.is_some_and(|room| self.width(node, room).is_some()) {
            self.flat(brackets, &entries);
        } else {
            self.broken(brackets, &entries, place.indent);
        }
    }

    /// Writes entries on lines of their own.
    fn broken(&mut self, brackets: &Brackets, entries: &[Entry<'_>], indent: usize) {
        let inside = indent + INDENT_SPACES;
        let [open, close] = brackets.broken;
        self.text.push_str(open);
        for (at, entry) in entries.iter().enumerate() {
            let after = usize::from(at + 1 < entries.len());
            self.line(inside);
            let key = self.key(entry);
            self.value(entry.form, entry.value, LinePlace { indent: inside, before: inside + key, after }, false);
            self.text.push_str(if after > 0 { "," } else { "" });
        }
        self.line(indent);
        self.text.push_str(close);
    }

    /// Writes entries on one line.
    fn flat(&mut self, brackets: &Brackets, entries: &[Entry<'_>]) {
        let [open, close] = brackets.flat;
        self.text.push_str(open);
        for (at, entry) in entries.iter().enumerate() {
            self.text.push_str(if at > 0 { ", " } else { "" });
            self.key(entry);
            // What is in a line of at most its width fits, too.
            self.value(entry.form, entry.value, LinePlace::default(), false);
        }
        self.text.push_str(close);
    }

    fn line(&mut self, indent: usize) {
        self.text.push_str(self.line_break);
        self.text.extend(std::iter::repeat_n(' ', indent));
    }

    /// Writes the key of an entry, and returns its characters.
    fn key(&mut self, entry: &Entry<'_>) -> usize {
        let Some(span) = entry.key else { return 0 };
        let key = self.tree.raw(span);
        self.text.push_str(key);
        self.text.push_str(": ");
        key.chars().count() + 2
    }

    /// The characters of a value on one line, if there are at most `room`. What does not fit is not read to its end: a look
    /// at each value of a document costs no more than its lines.
    fn width(&self, node: &Node, room: usize) -> Option<usize> {
        let left = |used: usize| room.checked_sub(used);
        match &node.kind {
            NodeKind::Array(items) => {
                let mut used = 2_usize;
                for (at, item) in items.iter().enumerate() {
                    used += if at > 0 { 2 } else { 0 };
                    used += self.width(item, left(used)?)?;
                }
                left(used).map(|_| used)
            }
            NodeKind::Object(members) => {
                let mut used = if members.is_empty() { 2_usize } else { 4 };
                for (at, member) in members.iter().enumerate() {
                    used += if at > 0 { 4 } else { 2 };
                    used += self.characters(member.key_span, left(used)?)?;
                    used += self.width(&member.value, left(used)?)?;
                }
                left(used).map(|_| used)
            }
            _ => self.characters(node.span, room),
        }
    }

    /// The characters of a part of the text, if there are at most `room`.
    fn characters(&self, span: Span, room: usize) -> Option<usize> {
        let count = self.tree.raw(span).chars().take(room + 1).count();
        (count <= room).then_some(count)
    }
}

/// The entries of an array or an object, in the order in which they are written.
fn entries(form: ValueForm, node: &Node) -> Option<(&'static Brackets, Vec<Entry<'_>>)> {
    match &node.kind {
        NodeKind::Array(items) => {
            let form = form.items(node);
            Some((&ARRAY, items.iter().map(|value| Entry { key: None, value, form }).collect()))
        }
        NodeKind::Object(members) => {
            let known = form.members(node, members).into_iter().map(|KnownMember { member, form }| Entry {
                key: Some(member.key_span),
                value: &member.value,
                form,
            });
            Some((&OBJECT, known.collect()))
        }
        _ => None,
    }
}
