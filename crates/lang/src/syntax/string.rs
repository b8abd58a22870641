//! Strings: strict escapes, no control characters, double quotes.

use super::reader::JsonReader;
use super::{Node, NodeKind, Span, text};
use crate::diagnostic::codes;

/// The longest string that a help repeats, in bytes.
const MAX_SHOWN_BYTES: usize = 60;

/// The faults of a string besides those of its escapes.
#[derive(Default)]
struct StringFaults {
    control: Option<(usize, char)>,
    lines: bool,
}

impl JsonReader<'_> {
    /// A text in typographic quotes, which word processors write; the opening one is consumed.
    pub(super) fn curly(&mut self, start: usize) -> Node {
        let inner = self.at;
        let line = self.raw(Span::new(inner, self.line_end()));
        let end = line.find(['\u{201c}', '\u{201d}', '\u{2019}', '"']);
        let closing = end.and_then(|end| line.get(end..)).and_then(|rest| rest.chars().next());
        self.at = inner + end.unwrap_or(line.len());
        let text = self.raw(Span::new(inner, self.at));
        self.at += closing.map_or(0, char::len_utf8);
        let span = Span::new(start, self.at);
        let fault = self.fault(codes::SYNTAX, span, "a text needs straight double quotes");
        if closing.is_none() {
            self.report(fault.help("write `\"` before and after it"));
            return Node { span, kind: NodeKind::Fault };
        }
        self.report(fault.help("these are the quotes of print").suggest(text::quoted(text)));
        Node { span, kind: NodeKind::String(text.into()) }
    }

    /// The string that begins here with `quote`.
    pub(super) fn string(&mut self, quote: char) -> Node {
        let start = self.at;
        if let Some(text) = self.three_quotes() {
            return text;
        }
        self.advance();
        let mut found = StringFaults::default();
        let mut closed = false;
        loop {
            let rest = self.rest();
            // Byte by byte: the special characters are ASCII, and never part of another character.
            let special = |byte: u8| char::from(byte) == quote || matches!(byte, b'\\' | 0..=0x1f);
            self.at += rest.bytes().position(special).unwrap_or(rest.len());
            match self.peek() {
                None => break,
                Some('\\') => self.escape(quote),
                Some(c) if c == quote => {
                    self.advance();
                    closed = true;
                    break;
                }
                Some(c) => {
                    let line_break = matches!(c, '\n' | '\r');
                    if line_break && !found.lines && !self.closes_later(quote) {
                        break;
                    }
                    found.lines |= line_break;
                    found.control.get_or_insert((self.at, c));
                    self.advance();
                }
            }
        }
        if !closed {
            return self.unclosed_string(start);
        }
        if let Some(node) = self.quotes_inside(start, quote) {
            return node;
        }
        let span = Span::new(start, self.at);
        self.string_faults(span, quote, &found);
        Node { span, kind: NodeKind::String(text::decode(self.raw(span)).into()) }
    }

    /// A text in three pairs of quotes, as in other languages.
    fn three_quotes(&mut self) -> Option<Node> {
        let inner = self.rest().strip_prefix("\"\"\"")?;
        let (inner, _) = inner.split_once("\"\"\"")?;
        let span = Span::new(self.at, self.at + inner.len() + 6);
        let fault = self.fault(codes::STRING, span, "a JSON string needs one pair of double quotes");
        self.report(fault.suggest(text::quoted(inner)));
        self.at = span.end;
        Some(Node { span, kind: NodeKind::String(inner.into()) })
    }

    fn string_faults(&mut self, span: Span, quote: char, found: &StringFaults) {
        let repaired = || repair(self.raw(span));
        if let Some((at, c)) = found.control {
            let (what, escape) = match c {
                '\n' | '\r' => ("a line break".to_owned(), "`\\n`".to_owned()),
                '\t' => ("a tab".to_owned(), "`\\t`".to_owned()),
                c => (format!("U+{:04X}", u32::from(c)), format!("`\\u{:04x}`", u32::from(c))),
            };
            let message = format!("a JSON string can't hold {what} as it is");
            let fault = self.fault(codes::STRING, Span::new(at, at + 1), message);
            let fault = fault.help(format!("write {escape}")).suggest_at(repaired(), span.start, span.end);
            self.report(fault);
        } else if quote == '\'' {
            let fault = self.fault(codes::STRING, span, "a JSON string needs double quotes");
            let fault = fault.suggest(repaired());
            self.report(fault);
        }
    }

    /// A string that seems to end but continues with something that can't follow one: it contains unescaped
    /// quotes. The string is read to the likely end in its line.
    fn quotes_inside(&mut self, start: usize, quote: char) -> Option<Node> {
        let inner = self.at - 1;
        let next = self.peek()?;
        if quote != '"' || next.is_whitespace() || ",:}];=/#\"'".contains(next) {
            return None;
        }
        let line = self.raw(Span::new(self.at, self.line_end()));
        let mut ends = line.match_indices('"').map(|(at, _)| at);
        let end = self.at + ends.find(|at| ends_string(line.get(at + 1..).unwrap_or_default()))? + 1;
        let span = Span::new(start, end);
        let text = self.raw(Span::new(start + 1, end - 1));
        let repaired = format!("\"{}\"", escape_quotes(text));
        let fault =
            self.fault(codes::STRING, Span::new(inner, inner + 1), "this quote ends the string, and the text goes on");
        let fault = fault.help("a quote inside of a string is written `\\\"`");
        self.report(fault.suggest_at(repaired.as_str(), start, end));
        self.at = end;
        Some(Node { span, kind: NodeKind::String(text::decode(&repaired).into()) })
    }

    /// A string that its line does not close: reading continues at the end of the line.
    fn unclosed_string(&mut self, start: usize) -> Node {
        let line = self.raw(Span::new(start, self.at)).trim_end();
        // The brackets that close the containers were most likely not meant as part of the text.
        let meant = line.trim_end_matches([',', '}', ']']).trim_end();
        let end = start + if meant.len() > 1 { meant.len() } else { line.len().max(1) };
        if self.at >= self.text.len() {
            self.brackets_wrong = true;
        }
        self.at = end;
        let fault =
            self.fault(codes::STRING, Span::new(start, end), "this string does not end: its closing quote is missing");
        let meant = self.raw(Span::new(start, end));
        let short = meant.len() <= MAX_SHOWN_BYTES && meant.starts_with('"');
        self.report(if short { fault.help(format!("most likely `{meant}\"` is meant")) } else { fault });
        Node { span: Span::new(start, end), kind: NodeKind::Fault }
    }

    /// Whether the next quote looks like the end of this string, so that the string has several lines.
    fn closes_later(&self, quote: char) -> bool {
        let mut rest = self.rest().chars();
        while let Some(c) = rest.next() {
            if c == '\\' {
                rest.next();
            } else if c == quote {
                let after = rest.as_str().trim_start();
                return after.is_empty() || after.starts_with([',', '}', ']', ':']);
            }
        }
        false
    }

    fn escape(&mut self, quote: char) {
        let start = self.at;
        self.advance();
        match self.peek() {
            Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
                self.advance();
            }
            Some('u') => {
                self.advance();
                self.unicode_escape(start);
            }
            Some('\'') if quote == '\'' => {
                self.advance();
            }
            None => {}
            // A line that ends here may end a string without a closing quote: that is reported then.
            Some('\n' | '\r') if !self.closes_later(quote) => {}
            Some(c) if c < ' ' => {
                let fault = self.fault(codes::STRING, Span::new(start, self.at), "a backslash must begin an escape");
                self.report(fault.help("a backslash itself is written `\\\\`, a line break `\\n`"));
                self.advance();
                if c == '\r' && self.peek() == Some('\n') {
                    self.advance();
                }
            }
            Some(c) => {
                self.advance();
                let span = Span::new(start, self.at);
                let fault = self.fault(codes::STRING, span, format!("`\\{c}` is no escape of JSON"));
                self.report(if c == '\'' {
                    fault.suggest("'")
                } else {
                    fault.help("a backslash itself is written `\\\\`").suggest(format!("\\\\{c}"))
                });
            }
        }
    }

    fn unicode_escape(&mut self, start: usize) {
        let Some(first) = self.four_digits() else {
            // Cut off by the end of the text: the unclosed string is reported.
            if self.rest().bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return;
            }
            let fault = self.fault(codes::STRING, Span::new(start, self.at), "`\\u` needs four hexadecimal digits");
            return self.report(fault);
        };
        if !(0xD800..0xE000).contains(&first) {
            return;
        }
        let first_end = self.at;
        if first < 0xDC00 && self.rest().starts_with("\\u") {
            self.at += 2;
            if self.four_digits().is_some_and(|second| (0xDC00..0xE000).contains(&second)) {
                return;
            }
            self.at = first_end;
        }
        let fault =
            self.fault(codes::STRING, Span::new(start, first_end), "half of a surrogate pair has no other half");
        self.report(fault.help("a character beyond U+FFFF is two such escapes, or is written as it is"));
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// Whether the text after a quote allows it to be the end of a string.
fn ends_string(rest: &str) -> bool {
    let rest = rest.trim_start();
    match rest.strip_prefix(',') {
        Some(after) => {
            let after = after.trim_start();
            after.is_empty()
                || after.starts_with(['"', '{', '[', '-', '/', '#'])
                || after.starts_with(|c: char| c.is_ascii_digit())
        }
        None => rest.is_empty() || rest.starts_with(['}', ']', ':']),
    }
}

/// A text with a backslash before each unescaped quote.
fn escape_quotes(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 4);
    let mut behind_backslash = false;
    for c in text.chars() {
        if c == '"' && !behind_backslash {
            escaped.push('\\');
        }
        behind_backslash = c == '\\' && !behind_backslash;
        escaped.push(c);
    }
    escaped
}

/// The same string in double quotes, with its control characters escaped. Escapes stay as they are.
fn repair(raw: &str) -> String {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    let mut repaired = String::from("\"");
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\'') => repaired.push('\''),
                Some(next) => repaired.extend(['\\', next]),
                None => {}
            },
            '"' => repaired.push_str("\\\""),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' => repaired.push_str("\\n"),
            '\t' => repaired.push_str("\\t"),
            c if c < ' ' => repaired.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => repaired.push(c),
        }
    }
    repaired.push('"');
    repaired
}
