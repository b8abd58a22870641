//! The tags of a template's text: where each begins and ends, and the words in it. It runs before
//! the parser, for two reasons: faults get their exact place, and nothing nests deeper than the
//! parser's stack can bear.

use std::ops::Range;

use super::TemplateFault;
use crate::diagnostic::codes;

/// The most tags of one template.
const MAX_TAGS: usize = 1000;
/// The most blocks inside each other.
const MAX_BLOCKS: usize = 32;
/// The most parentheses inside each other.
const MAX_PARENTHESES: usize = 8;

/// A tag: `{{...}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    /// All of it, with its braces.
    pub range: Range<usize>,
    /// What it does.
    pub kind: Kind,
    /// Its words: names, paths, texts in quotes.
    pub words: Vec<Range<usize>>,
}

/// What a tag does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Prints a value.
    Print,
    /// Opens a block.
    Open,
    /// Closes it.
    Close,
    /// `{{else}}`, alone or with a condition.
    Else,
    /// Says something to the reader of the template.
    Comment,
}

/// Finds the tags and checks that blocks are opened and closed in order.
pub(super) fn scan(text: &str) -> Result<Vec<Tag>, TemplateFault> {
    let mut tags = Vec::new();
    let mut open: Vec<(Range<usize>, &str)> = Vec::new();
    let mut from = 0;
    while let Some(begin) = next_tag(text, from) {
        let tag = read(text, begin)?;
        from = tag.range.end;
        let name = tag.words.first().and_then(|word| text.get(word.clone())).unwrap_or_default();
        match tag.kind {
            Kind::Open => open.push((tag.range.clone(), name)),
            Kind::Else if open.is_empty() => {
                return Err(TemplateFault::new(codes::TEMPLATE, "`{{else}}` stands outside of a block", tag.range)
                    .help("it belongs between `{{#if ...}}` and `{{/if}}`"));
            }
            Kind::Close => close(&mut open, name, &tag)?,
            Kind::Else | Kind::Print | Kind::Comment => {}
        }
        if open.len() > MAX_BLOCKS {
            let message = format!("blocks stand more than {MAX_BLOCKS} deep inside each other");
            return Err(TemplateFault::new(codes::TEMPLATE_SIZE, message, tag.range));
        }
        tags.push(tag);
        if tags.len() > MAX_TAGS {
            let message = format!("the template has more than {MAX_TAGS} tags");
            return Err(TemplateFault::new(codes::TEMPLATE_SIZE, message, begin..from));
        }
    }
    match open.pop() {
        Some((range, name)) => {
            Err(TemplateFault::new(codes::TEMPLATE, format!("the block `{name}` is never closed"), range)
                .help(format!("write {{{{/{name}}}}} where it ends")))
        }
        None => Ok(tags),
    }
}

fn close(open: &mut Vec<(Range<usize>, &str)>, name: &str, tag: &Tag) -> Result<(), TemplateFault> {
    match open.pop() {
        Some((_, opened)) if opened == name => Ok(()),
        Some((_, opened)) => {
            let message = format!("`{{{{/{name}}}}}` closes a block that was opened as `{opened}`");
            Err(TemplateFault::new(codes::TEMPLATE, message, tag.range.clone())
                .help(format!("write {{{{/{opened}}}}}")))
        }
        None => {
            let message = format!("`{{{{/{name}}}}}` closes a block that was never opened");
            Err(TemplateFault::new(codes::TEMPLATE, message, tag.range.clone()).help("take it out"))
        }
    }
}

/// Where the next tag begins. One backslash before the braces makes them plain text; two or more
/// are backslashes before a tag.
fn next_tag(text: &str, mut from: usize) -> Option<usize> {
    let start = from;
    loop {
        let begin = from + text.get(from..)?.find("{{")?;
        let backslashes = text.get(start..begin)?.bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes != 1 {
            return Some(begin);
        }
        from = begin + if text.get(begin..)?.starts_with("{{{{") { 4 } else { 2 };
    }
}

fn read(text: &str, begin: usize) -> Result<Tag, TemplateFault> {
    let rest = text.get(begin..).unwrap_or_default();
    if rest.starts_with("{{{{") {
        return Err(TemplateFault::new(
            codes::TEMPLATE_HELPER,
            "blocks in four braces are not offered",
            begin..begin + 4,
        )
        .help("write \\{{ for two braces that shall be read as they stand"));
    }
    if let Some(comment) = rest.strip_prefix("{{!") {
        let end =
            match comment.trim_start().strip_prefix("--").and_then(|inner| inner.find("--}}").map(|at| (inner, at))) {
                Some((inner, at)) => rest.len() - inner.len() + at + 4,
                None => comment.find("}}").map(|at| at + 5).ok_or_else(|| never_closed(text, begin))?,
            };
        return comment_tag(text, begin..begin + end);
    }
    Words::new(text, begin).read()
}

/// A comment. Handlebars itself takes the whitespace away beside `~`; the library that reads templates leaves it there.
fn comment_tag(text: &str, range: Range<usize>) -> Result<Tag, TemplateFault> {
    let written = text.get(range.clone()).unwrap_or_default();
    let mark = if written.ends_with("--}}") { written.find("--~}}").map(|at| at + 2) } else { None };
    let mark = mark.or_else(|| written.ends_with("~}}").then(|| written.len() - 3));
    match mark {
        Some(at) => {
            let at = range.start + at;
            let message = "a comment takes no `~`: the whitespace beside it would stay";
            Err(TemplateFault::new(codes::TEMPLATE, message, at..at + 1)
                .help("take the `~` away, or write it in the tag beside the comment: {{~name}}"))
        }
        None => Ok(Tag { range, kind: Kind::Comment, words: Vec::new() }),
    }
}

fn never_closed(text: &str, begin: usize) -> TemplateFault {
    let rest = text.get(begin..).unwrap_or_default();
    let end = begin + rest.find('\n').unwrap_or(rest.len());
    TemplateFault::new(codes::TEMPLATE, "`{{` is never closed", begin..end)
        .help("write }} after the name, or \\{{ for two braces that shall be read as they stand")
}

/// A reader of one tag's words.
struct Words<'t> {
    text: &'t str,
    begin: usize,
    at: usize,
    triple: bool,
    depth: usize,
    words: Vec<Range<usize>>,
}

impl<'t> Words<'t> {
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

    fn read(mut self) -> Result<Tag, TemplateFault> {
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
                        let message = format!("parentheses stand more than {MAX_PARENTHESES} deep inside each other");
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

    fn sigil(&mut self) -> Result<Kind, TemplateFault> {
        let kind = match self.peek() {
            Some('#') => Kind::Open,
            Some('/') => Kind::Close,
            Some('^') => Kind::Else,
            Some('&') => Kind::Print,
            Some('{') => {
                self.triple = true;
                Kind::Print
            }
            Some('>') => return Err(self.not_offered("partials (`{{> ...}}`) are not offered")),
            Some('*') => return Err(self.not_offered("decorators (`{{* ...}}`) are not offered")),
            _ => {
                let word = self.rest().split(|c: char| !is_name(c)).next().unwrap_or_default();
                if word != "else" {
                    return Ok(Kind::Print);
                }
                self.at += word.len();
                return Ok(Kind::Else);
            }
        };
        self.at += 1;
        self.skip_space();
        match (kind, self.peek()) {
            (Kind::Open, Some('>')) => Err(self.not_offered("partials (`{{#> ...}}`) are not offered")),
            (Kind::Open, Some('*')) => Err(self.not_offered("decorators (`{{#* ...}}`) are not offered")),
            _ => Ok(kind),
        }
    }

    fn not_offered(&self, message: &str) -> TemplateFault {
        TemplateFault::new(codes::TEMPLATE_HELPER, message, self.begin..self.at + 1)
            .help("a template holds only values, if, unless, each, with, lookup and comments")
    }

    fn end(mut self, kind: Kind) -> Result<Tag, TemplateFault> {
        if self.triple {
            self.at += 1;
            self.skip_space();
        }
        if !self.rest().starts_with("}}") {
            let message =
                if self.triple { "`{{{` is closed by fewer than three braces" } else { "a single `}` stands in a tag" };
            let range = self.begin..self.at.min(self.text.len());
            let braces = if self.triple { "}}}" } else { "}}" };
            return Err(
                TemplateFault::new(codes::TEMPLATE, message, range).help(format!("write {braces} after the name"))
            );
        }
        let range = self.begin..self.at + 2;
        if self.words.is_empty() && kind != Kind::Else {
            return Err(TemplateFault::new(codes::TEMPLATE, "a tag names nothing", range)
                .help("write the name of a value: {{input.name}}"));
        }
        Ok(Tag { range, kind, words: self.words })
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

    /// A name or path. A part in brackets, `[with spaces]`, stands at its beginning or after a
    /// separator only.
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
            let message = format!("`{}` can't stand in a tag", first.escape_debug());
            return Err(TemplateFault::new(codes::TEMPLATE, message, begin..begin + first.len_utf8())
                .help("write {{name}}, {{a.b}}, {{items.0}} or {{a.[with spaces]}}; \\{{ for two braces that shall be read as they stand"));
        }
        self.words.push(begin..self.at);
        Ok(())
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '$' | ':' | '.' | '/' | '@') || !c.is_ascii()
}
