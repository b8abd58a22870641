//! The tags of a template: where each begins and ends, and its words. The parser can't replace this scan: it
//! recurses for each block and parenthesis, so their depth must be limited before it runs; for a text that it
//! can't parse it reports one position and no reason; and its tree has few positions (see [`super::locate`]).

use std::ops::Range;

use super::TemplateFault;
use crate::diagnostic::codes;

/// The most tags of one template.
const MAX_TAGS: usize = 1000;
/// The deepest nesting of blocks.
const MAX_BLOCKS: usize = 32;
/// The deepest nesting of parentheses.
const MAX_PARENTHESES: usize = 8;

/// What can be done where a comparison is not possible.
pub(super) const NO_COMPARISONS: &str = "{{#if name}} asks only whether a value is there: give the result of the comparison as an \
                                        input of its own, or compare in the `filter` of a workflow's step";

/// A tag: `{{...}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TemplateTag {
    /// All of it, with its braces.
    pub range: Range<usize>,
    /// What the tag does.
    pub kind: TagKind,
    /// Its words: names, paths, texts in quotes.
    pub words: Vec<Range<usize>>,
    /// For a tag that opens, divides or closes a block: the index of the tag that opens it.
    pub block: Option<usize>,
}

/// What a tag does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagKind {
    /// Prints a value.
    Print,
    /// Opens a block.
    Open,
    /// Closes it.
    Close,
    /// `{{else}}`, alone or with a condition.
    Else,
    Comment,
}

/// Finds the tags, and checks that blocks are opened and closed in order.
pub(super) fn scan(text: &str) -> Result<Vec<TemplateTag>, TemplateFault> {
    let mut tags: Vec<TemplateTag> = Vec::new();
    let mut open: Vec<OpenTag<'_>> = Vec::new();
    let mut from = 0;
    while let Some(begin) = next_tag(text, from) {
        let mut tag = read(text, begin)?;
        from = tag.range.end;
        let name = tag.words.first().and_then(|word| text.get(word.clone())).unwrap_or_default();
        tag.block = match tag.kind {
            TagKind::Open => {
                open.push(OpenTag { number: tags.len(), range: tag.range.clone(), name });
                Some(tags.len())
            }
            TagKind::Else => match open.last() {
                Some(block) => Some(block.number),
                None if is_inverse(text, &tag.range) => {
                    return Err(TemplateFault::new(codes::TEMPLATE, "`{{^` begins no block", tag.range)
                        .help("what is written where a value is missing or false: `{{#unless name}}...{{/unless}}`"));
                }
                None => {
                    return Err(TemplateFault::new(codes::TEMPLATE, "`{{else}}` is outside of a block", tag.range)
                        .help("it belongs between `{{#if ...}}` and `{{/if}}`"));
                }
            },
            TagKind::Close => Some(close(&mut open, name, &tag.range)?),
            TagKind::Print | TagKind::Comment => None,
        };
        if open.len() > MAX_BLOCKS {
            let message = format!("blocks are nested more than {MAX_BLOCKS} deep");
            return Err(TemplateFault::new(codes::TEMPLATE_SIZE, message, tag.range));
        }
        tags.push(tag);
        if tags.len() > MAX_TAGS {
            let message = format!("the template has more than {MAX_TAGS} tags");
            return Err(TemplateFault::new(codes::TEMPLATE_SIZE, message, begin..from));
        }
    }
    match open.pop() {
        Some(OpenTag { range, name, .. }) => {
            Err(TemplateFault::new(codes::TEMPLATE, format!("the block `{name}` is never closed"), range)
                .help(format!("write {{{{/{name}}}}} where it ends")))
        }
        None => Ok(tags),
    }
}

/// Whether a tag begins with `^`, which is another word for `else`, and in other languages begins a block.
fn is_inverse(text: &str, range: &Range<usize>) -> bool {
    text.get(range.clone()).is_some_and(|tag| tag.trim_start_matches(['{', '~', ' ']).starts_with('^'))
}

/// An open block, by the tag that opens it.
struct OpenTag<'t> {
    number: usize,
    range: Range<usize>,
    name: &'t str,
}

/// Closes the innermost block; returns the index of the tag that opened it.
fn close(open: &mut Vec<OpenTag<'_>>, name: &str, place: &Range<usize>) -> Result<usize, TemplateFault> {
    match open.pop() {
        Some(block) if block.name == name => Ok(block.number),
        Some(OpenTag { name: opened, .. }) => {
            let message = format!("`{{{{/{name}}}}}` closes a block that was opened as `{opened}`");
            Err(TemplateFault::new(codes::TEMPLATE, message, place.clone()).help(format!("write {{{{/{opened}}}}}")))
        }
        None => {
            let message = format!("`{{{{/{name}}}}}` closes a block that was never opened");
            Err(TemplateFault::new(codes::TEMPLATE, message, place.clone()).help("take it out"))
        }
    }
}

/// The start of the next tag. One backslash before the braces makes them literal text; two or more are
/// backslashes before a tag.
fn next_tag(text: &str, mut from: usize) -> Option<usize> {
    let start = from;
    loop {
        let begin = from + text.get(from..)?.find('{')?;
        if !text.get(begin..)?.starts_with("{{") {
            from = begin + 1;
            continue;
        }
        let backslashes = text.get(start..begin)?.bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes != 1 {
            return Some(begin);
        }
        from = begin + if text.get(begin..)?.starts_with("{{{{") { 4 } else { 2 };
    }
}

fn read(text: &str, begin: usize) -> Result<TemplateTag, TemplateFault> {
    let rest = text.get(begin..).unwrap_or_default();
    if rest.starts_with("{{{{") {
        return Err(TemplateFault::new(
            codes::TEMPLATE_HELPER,
            "blocks in four braces are not offered",
            begin..begin + 4,
        )
        .help("write \\{{ for two braces that are text"));
    }
    if let Some(comment) = rest.strip_prefix("{{!") {
        let end =
            match comment.trim_start().strip_prefix("--").and_then(|inner| inner.find("--}}").map(|at| (inner, at))) {
                Some((inner, at)) => rest.len() - inner.len() + at + 4,
                None => comment.find("}}").map(|at| at + 5).ok_or_else(|| never_closed(text, begin))?,
            };
        return comment_tag(text, begin..begin + end);
    }
    if rest.starts_with("{{~!") {
        return Err(tilde_of_comment(begin + 2));
    }
    TagReader::new(text, begin).read()
}

/// A comment. Handlebars itself removes the whitespace beside `~`; the library that parses templates leaves it.
fn comment_tag(text: &str, range: Range<usize>) -> Result<TemplateTag, TemplateFault> {
    let written = text.get(range.clone()).unwrap_or_default();
    let mark = if written.ends_with("--}}") { written.find("--~}}").map(|at| at + 2) } else { None };
    let mark = mark.or_else(|| written.ends_with("~}}").then(|| written.len() - 3));
    match mark {
        Some(at) => Err(tilde_of_comment(range.start + at)),
        None => Ok(TemplateTag { range, kind: TagKind::Comment, words: Vec::new(), block: None }),
    }
}

fn tilde_of_comment(at: usize) -> TemplateFault {
    let message = "a comment takes no `~`: the whitespace beside it would stay";
    TemplateFault::new(codes::TEMPLATE, message, at..at + 1)
        .help("take the `~` away, or write it in the tag beside the comment: {{~name}}")
}

fn never_closed(text: &str, begin: usize) -> TemplateFault {
    let rest = text.get(begin..).unwrap_or_default();
    let end = begin + rest.find('\n').unwrap_or(rest.len());
    TemplateFault::new(codes::TEMPLATE, "`{{` is never closed", begin..end)
        .help("write }} after the name, or \\{{ for two braces that are text")
}

/// Reads the words of one tag.
struct TagReader<'t> {
    text: &'t str,
    begin: usize,
    at: usize,
    triple: bool,
    depth: usize,
    words: Vec<Range<usize>>,
}

impl<'t> TagReader<'t> {
    fn new(text: &'t str, begin: usize) -> Self {
        Self { text, begin, at: begin + 2, triple: false, depth: 0, words: Vec::new() }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '~']).len();
    }

    fn read(mut self) -> Result<TemplateTag, TemplateFault> {
        self.skip_space();
        let kind = self.sigil()?;
        loop {
            self.skip_space();
            let Some(next) = self.peek() else { return Err(never_closed(self.text, self.begin)) };
            match next {
                '}' => return self.end(kind),
                '(' => {
                    self.depth += 1;
                    self.at += 1;
                    if self.depth > MAX_PARENTHESES {
                        let message = format!("parentheses are nested more than {MAX_PARENTHESES} deep");
                        return Err(TemplateFault::new(codes::TEMPLATE_SIZE, message, self.begin..self.at));
                    }
                }
                ')' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.at += 1;
                }
                '|' | '=' => self.at += 1,
                '"' | '\'' => self.quoted(next)?,
                _ => self.name(next)?,
            }
        }
    }

    fn sigil(&mut self) -> Result<TagKind, TemplateFault> {
        let kind = match self.peek() {
            Some('#') => TagKind::Open,
            Some('/') => TagKind::Close,
            Some('^') => TagKind::Else,
            Some('&') => TagKind::Print,
            Some('{') => {
                self.triple = true;
                TagKind::Print
            }
            Some('>') => return Err(self.not_offered("partials (`{{> ...}}`) are not offered")),
            Some('*') => return Err(self.not_offered("decorators (`{{* ...}}`) are not offered")),
            _ => {
                let word = self.rest().split(|c: char| !is_name(c)).next().unwrap_or_default();
                if word != "else" {
                    return Ok(TagKind::Print);
                }
                self.at += word.len();
                return Ok(TagKind::Else);
            }
        };
        self.at += 1;
        self.skip_space();
        match (kind, self.peek()) {
            (TagKind::Open, Some('>')) => Err(self.not_offered("partials (`{{#> ...}}`) are not offered")),
            (TagKind::Open, Some('*')) => Err(self.not_offered("decorators (`{{#* ...}}`) are not offered")),
            _ => Ok(kind),
        }
    }

    fn not_offered(&self, message: &str) -> TemplateFault {
        TemplateFault::new(codes::TEMPLATE_HELPER, message, self.begin..self.at + 1)
            .help("a template holds only values, if, unless, each, with, lookup and comments")
    }

    fn end(mut self, kind: TagKind) -> Result<TemplateTag, TemplateFault> {
        if self.triple {
            self.at += 1;
            self.skip_space();
        }
        if !self.rest().starts_with("}}") {
            let message =
                if self.triple { "`{{{` is closed by fewer than three braces" } else { "a tag holds a single `}`" };
            let range = self.begin..self.at.min(self.text.len());
            let braces = if self.triple { "}}}" } else { "}}" };
            return Err(
                TemplateFault::new(codes::TEMPLATE, message, range).help(format!("write {braces} after the name"))
            );
        }
        let range = self.begin..self.at + 2;
        if self.words.is_empty() && kind != TagKind::Else {
            return Err(TemplateFault::new(codes::TEMPLATE, "a tag names nothing", range)
                .help("write the name of a value: {{input.name}}"));
        }
        Ok(TemplateTag { range, kind, words: self.words, block: None })
    }

    fn quoted(&mut self, quote: char) -> Result<(), TemplateFault> {
        let begin = self.at;
        let mut escaped = false;
        for (offset, c) in self.rest().char_indices().skip(1) {
            if !escaped && c == quote {
                self.at = begin + offset + 1;
                self.words.push(begin..self.at);
                return Ok(());
            }
            escaped = !escaped && c == '\\';
        }
        Err(TemplateFault::new(codes::TEMPLATE, "a text in quotes is never closed", begin..begin + 1))
    }

    /// A name or path. A part in brackets, `[with spaces]`, is allowed only at the beginning or after a
    /// separator.
    fn name(&mut self, first: char) -> Result<(), TemplateFault> {
        let begin = self.at;
        let mut separated = true;
        while let Some(c) = self.peek() {
            if separated && c == '[' {
                let Some(end) = self.rest().find(']') else {
                    return Err(TemplateFault::new(
                        codes::TEMPLATE,
                        "`[` is never closed by `]`",
                        self.at..self.at + 1,
                    ));
                };
                self.at += end + 1;
                separated = false;
            } else if is_name(c) {
                separated = matches!(c, '.' | '/' | '@');
                self.at += c.len_utf8();
            } else {
                break;
            }
        }
        if self.at == begin {
            let (reason, help) = match first {
                '!' if !self.rest().starts_with("!=") => {
                    ("", "the opposite of {{#if name}} is {{#unless name}}...{{/unless}}")
                }
                '?' => (
                    ": nothing is printed of what is missing",
                    "a value that may be missing: {{#if name}}{{name}}{{/if}}",
                ),
                '>' | '<' | '!' => (": a template has no comparisons", NO_COMPARISONS),
                _ => (
                    "",
                    "write {{name}}, {{a.b}}, {{items.0}} or {{a.[with spaces]}}; \\{{ for two braces that are text",
                ),
            };
            let message = format!("a tag can't hold `{}`{reason}", first.escape_debug());
            return Err(TemplateFault::new(codes::TEMPLATE, message, begin..begin + first.len_utf8()).help(help));
        }
        self.words.push(begin..self.at);
        Ok(())
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '$' | ':' | '.' | '/' | '@') || !c.is_ascii()
}
