//! The reader: its position in the text, what is between values, and which value comes next.

use super::lookup::PointerIndex;
use super::{MAX_BYTES, MAX_DEPTH, MAX_FAULTS, MAX_VALUES, Node, NodeKind, Span, Tree, text};
use crate::diagnostic::{Diagnostic, Source, codes, sort_by_place};

/// An array or object that is being read.
pub(super) struct OpenContainer {
    /// The byte that ends it.
    pub closer: char,
    /// Where it begins.
    pub start: usize,
}

pub(super) struct JsonReader<'a> {
    pub source: &'a Source,
    pub text: &'a str,
    pub at: usize,
    pub open: Vec<OpenContainer>,
    /// A wrong bracket was found: missing brackets near it are its consequence.
    pub brackets_wrong: bool,
    faults: Vec<Diagnostic>,
    /// The bytes of the keys on the path to here.
    pub path: usize,
    values: usize,
    stopped: bool,
    is_cut: bool,
}

impl<'a> JsonReader<'a> {
    pub(super) fn read(source: &'a Source) -> (Tree, Vec<Diagnostic>) {
        let mut reader = Self {
            source,
            text: &source.text,
            at: 0,
            open: Vec::new(),
            brackets_wrong: false,
            faults: Vec::new(),
            values: 0,
            path: 0,
            stopped: false,
            is_cut: false,
        };
        let root = reader.document();
        let Self { is_cut, mut faults, .. } = reader;
        sort_by_place(&mut faults);
        (Tree { source: source.clone(), root, is_cut, lookup: PointerIndex::default() }, faults)
    }

    fn document(&mut self) -> Node {
        if self.text.len() > MAX_BYTES {
            let message = format!("the text has {} bytes; at most {MAX_BYTES} (16 MiB) are read", self.text.len());
            self.report(Diagnostic::error(codes::TOO_MUCH, message, "", self.source.whole()));
            return self.nothing();
        }
        if is_wide(self.text.as_bytes()) {
            let message = "every other byte of the file is zero, as in UTF-16";
            let fault = Diagnostic::error(codes::ENCODING, message, "", self.source.whole());
            self.report(fault.help("save it as UTF-8"));
            return self.nothing();
        }
        let marks = self.text.len() - self.text.trim_start_matches('\u{feff}').len();
        if marks > 0 {
            let fault = self.fault(codes::ENCODING, Span::new(0, marks), "the file begins with a byte-order mark");
            self.report(fault.help("save it as UTF-8 without a byte-order mark").suggest(""));
            self.at = marks;
        }
        self.trivia();
        if self.peek().is_none() {
            if self.faults.iter().all(|fault| fault.code != codes::SYNTAX) {
                // Only report that the text is empty, not that it begins with a mark or a comment.
                self.faults.clear();
                let place = self.source.whole();
                let fault = Diagnostic::error(codes::EMPTY, "the file has no JSON in it", "", place);
                self.report(fault.help(of_empty(&self.source.name)));
            }
            return self.nothing();
        }
        let root = match self.peek() {
            Some(closer @ ('}' | ']' | ',' | ':')) => {
                let span = Span::new(self.at, self.at + 1);
                let fault = self.fault(codes::SYNTAX, span, format!("a value was expected; `{closer}` was found"));
                self.report(fault);
                return self.nothing();
            }
            Some(c) if is_word(c) && !c.is_ascii_digit() && !self.is_literal() => return self.no_json(),
            _ => self.value(),
        };
        self.trivia();
        // A single word that could not be read is one fault, together with all that follows it.
        let stray = !self.faults.is_empty() && !matches!(root.kind, NodeKind::Object(_) | NodeKind::Array(_));
        if self.peek().is_some() && !self.brackets_wrong && !root.is_fault() && !stray {
            self.more_after();
        }
        root
    }

    /// Reports text after the end of the document.
    fn more_after(&mut self) {
        let rest = self.rest().trim_end();
        let closers = rest.chars().all(|c| matches!(c, '}' | ']') || c.is_ascii_whitespace());
        if let Some(closer) = rest.chars().next().filter(|_| closers) {
            let span = Span::new(self.at, self.at + rest.len());
            let fault = self.fault(codes::SYNTAX, span, format!("this `{closer}` closes nothing"));
            self.report(
                fault.help("the document ends before it: take it out, or look for the one that closes too early"),
            );
            return;
        }
        let span = Span::new(self.at, self.line_end());
        let fault = self.fault(codes::SYNTAX, span, "the document ends before this; there is more after it");
        self.report(fault.help("a file holds one JSON value: take the rest out, or put the values into an array"));
    }

    /// Reports the first word of a text that does not begin like JSON.
    fn no_json(&mut self) -> Node {
        let word = self.word_span();
        let span = Span::new(word.start, self.line_end());
        let yaml = self.peek() == Some(':');
        let message = format!("a document begins with `{{` or `[`; `{}` was found", self.raw(word));
        let fault = self.fault(codes::SYNTAX, span, message);
        self.report(if yaml { fault.help("it looks like YAML: write it as JSON") } else { fault });
        self.stop();
        Node { span, kind: NodeKind::Fault }
    }

    /// Reads the value that begins here. Always consumes at least one character.
    pub(super) fn value(&mut self) -> Node {
        self.values += 1;
        if self.values > MAX_VALUES {
            let span = Span::new(self.at, self.at);
            let message = format!("the document has more than {MAX_VALUES} values; the rest is not read");
            let fault = self.fault(codes::TOO_MUCH, span, message);
            self.report(fault);
            self.cut();
            return self.nothing();
        }
        match self.peek() {
            Some('{' | '[') if self.open.len() >= MAX_DEPTH => self.too_deep(),
            Some('{') => match self.bare_template() {
                Some(template) => template,
                None => self.object(),
            },
            Some('[') => self.array(),
            Some(quote @ ('"' | '\'')) => self.string(quote),
            Some('0'..='9' | '-' | '+' | '.') => self.number(),
            Some(c) if is_word(c) => self.word(),
            _ => self.junk("a value"),
        }
    }

    fn too_deep(&mut self) -> Node {
        let start = self.at;
        let message = format!("the nesting is deeper than {MAX_DEPTH} arrays and objects; deeper parts are not read");
        let fault = self.fault(codes::TOO_MUCH, Span::new(start, start + 1), message);
        self.report(fault);
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        let rest = self.text.get(start..).unwrap_or_default();
        for (offset, byte) in rest.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at = start + offset + 1;
                return Node { span: Span::new(start, self.at), kind: NodeKind::Fault };
            }
        }
        self.cut();
        self.nothing()
    }

    /// A `{{name}}` without quotes around it.
    fn bare_template(&mut self) -> Option<Node> {
        let inner = self.rest().strip_prefix("{{")?;
        let (name, _) = inner.split_once("}}")?;
        let names = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ' ' | '@' | '-' | '[' | ']');
        if name.trim().is_empty() || !name.chars().all(names) {
            return None;
        }
        let span = Span::new(self.at, self.at + name.len() + 4);
        let written = self.raw(span);
        let fault = self.fault(codes::SYNTAX, span, format!("the template `{written}` has no quotes"));
        self.report(fault.help("a template is a text, and needs double quotes").suggest(text::quoted(written)));
        self.at = span.end;
        Some(Node { span, kind: NodeKind::String(written.into()) })
    }

    /// A word without quotes.
    fn word(&mut self) -> Node {
        let span = self.word_span();
        let word = self.raw(span);
        let kind = match word {
            "null" => NodeKind::Null,
            "true" => NodeKind::Bool(true),
            "false" => NodeKind::Bool(false),
            _ => return self.wrong_word(span, word),
        };
        Node { span, kind }
    }

    fn wrong_word(&mut self, span: Span, word: &str) -> Node {
        let (meant, kind) = match word.to_ascii_lowercase().as_str() {
            "true" => ("true", NodeKind::Bool(true)),
            "false" => ("false", NodeKind::Bool(false)),
            "null" | "none" | "nil" => ("null", NodeKind::Null),
            "nan" | "infinity" | "inf" | "undefined" => {
                let fault = self.fault(codes::NUMBER, span, format!("`{word}` is no JSON value"));
                self.report(fault.help("JSON has no such value: write a number or null, or leave the field out"));
                return Node { span, kind: NodeKind::Fault };
            }
            _ => {
                let fault = self.fault(codes::SYNTAX, span, format!("the text `{word}` has no quotes"));
                self.report(fault.help("a text needs double quotes").suggest(text::quoted(word)));
                return Node { span, kind: NodeKind::String(word.into()) };
            }
        };
        let fault = self.fault(codes::SYNTAX, span, format!("`{word}` is written `{meant}` in JSON"));
        self.report(fault.suggest(meant));
        Node { span, kind }
    }

    /// Whether `true`, `false` or `null` begins here, in any case.
    fn is_literal(&self) -> bool {
        let word = self.rest().split(|c: char| !is_word(c)).next().unwrap_or_default();
        ["true", "false", "null"].iter().any(|literal| literal.eq_ignore_ascii_case(word))
    }

    /// The span of the word that begins here.
    pub(super) fn word_span(&mut self) -> Span {
        let start = self.at;
        while self.peek().is_some_and(|c| is_word(c) || matches!(c, '.' | '+' | '-')) {
            self.advance();
        }
        Span::new(start, self.at)
    }

    /// Characters that begin neither a value nor a key: one fault for all that are adjacent.
    pub(super) fn junk(&mut self, expected: &str) -> Node {
        let start = self.at;
        let first = self.advance();
        if matches!(first, Some('\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{2018}' | '\u{2019}')) {
            return self.curly(start);
        }
        while let Some(c) = self.peek() {
            if c.is_ascii_whitespace() || matches!(c, ',' | ':' | '"' | '[' | ']' | '{' | '}') {
                break;
            }
            self.advance();
        }
        let span = Span::new(start, self.at);
        let shown = first.map_or_else(String::new, |c| {
            if c.is_control() || c.is_whitespace() { format!("U+{:04X}", u32::from(c)) } else { format!("`{c}`") }
        });
        let fault = self.fault(codes::SYNTAX, span, format!("{expected} was expected; {shown} was found"));
        self.report(fault);
        Node { span, kind: NodeKind::Fault }
    }

    /// Skips white space, and characters that some use as white space.
    pub(super) fn trivia(&mut self) {
        loop {
            let rest = self.rest().as_bytes();
            let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            self.at += rest.iter().position(|byte| !blank(byte)).unwrap_or(rest.len());
            match self.peek() {
                Some('"' | ',' | ':' | '{' | '}' | '[' | ']' | '0'..='9' | '-' | 'a'..='z') | None => return,
                Some('#') => self.comment(None),
                Some('/') if self.rest().starts_with("//") => self.comment(None),
                Some('/') if self.rest().starts_with("/*") => self.comment(Some("*/")),
                Some(c) if c.is_whitespace() || matches!(c, '\u{200b}' | '\u{feff}' | '\u{2060}') => self.odd_space(c),
                _ => return,
            }
        }
    }

    fn comment(&mut self, end: Option<&str>) {
        let start = self.at;
        let rest = self.rest();
        self.at = match end {
            None => self.line_end(),
            Some(end) => rest.find(end).map_or(self.text.len(), |at| start + at + end.len()),
        };
        let closed = end.is_none_or(|_| self.at < self.text.len() || rest.ends_with("*/"));
        let span = Span::new(start, self.at);
        if closed {
            let fault = self.fault(codes::COMMENT, span, "JSON has no comments");
            self.report(fault.help("take it out").suggest(""));
        } else {
            let fault =
                self.fault(codes::COMMENT, Span::new(start, start + 2), "this comment does not end, and JSON has none");
            self.report(fault);
            self.brackets_wrong = true;
        }
    }

    fn odd_space(&mut self, c: char) {
        let start = self.at;
        while self.peek() == Some(c) {
            self.advance();
        }
        let message = format!("U+{:04X} is no white space in JSON", u32::from(c));
        let fault = self.fault(codes::SYNTAX, Span::new(start, self.at), message);
        self.report(fault.suggest(" "));
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn advance(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn line_end(&self) -> usize {
        let line = self.rest().split('\n').next().unwrap_or_default();
        self.at + line.trim_end_matches('\r').len()
    }

    pub(super) fn raw(&self, span: Span) -> &'a str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// The node of a value that could not be read.
    pub(super) fn nothing(&self) -> Node {
        Node { span: Span::new(self.at, self.at), kind: NodeKind::Fault }
    }

    pub(super) fn fault(&self, code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message, "", self.source.place(span.start, span.end))
    }

    pub(super) fn report(&mut self, fault: Diagnostic) {
        if self.stopped {
            return;
        }
        self.faults.push(fault);
        if self.faults.len() >= MAX_FAULTS {
            self.stop();
        }
    }

    /// Whether the last reported fault touches this position.
    pub(super) fn last_fault_touches(&self, at: usize) -> bool {
        self.faults.last().is_some_and(|fault| fault.place.start == at || fault.place.end == at)
    }

    /// Removes the fault of a word or number that the end of the text cuts off: the fault of the cut is enough.
    pub(super) fn drop_cut(&mut self, end: usize) {
        let cut = |fault: &Diagnostic| fault.place.end == end && fault.code != codes::COMMENT;
        if self.faults.last().is_some_and(cut) {
            self.faults.pop();
        }
    }

    /// Stops reading at a limit: what follows is not known.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
        self.stop();
    }

    /// Stops reading, and reports nothing more.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.at = self.text.len();
    }
}

/// Whether a text begins like JSON in UTF-16.
/// What belongs in an empty file of this name.
fn of_empty(file: &str) -> &'static str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    if name == "loopctl.json" {
        "a project file without settings is `{}`"
    } else if name.ends_with(".test.json") {
        "a file of scenarios is `{\"document\": \"loop.json\", \"scenarios\": [...]}`"
    } else if name.contains("script") {
        "a script is `{\"replies\": [...]}`"
    } else if file.ends_with(&format!("actions/{name}")) {
        "an action is `{\"action_name\": \"...\", \"kind\": \"http\", ...}`"
    } else {
        "a loop document is a JSON object: `{\"type\": \"loop\", \"properties\": {...}}`"
    }
}

fn is_wide(bytes: &[u8]) -> bool {
    let zeros: Vec<bool> = bytes.iter().take(4).map(|byte| *byte == 0).collect();
    matches!(zeros.as_slice(), [true, false, true, false] | [false, true, false, true])
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '@')
}
