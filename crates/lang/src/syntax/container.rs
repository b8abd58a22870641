//! Arrays and objects, and how the reader recovers from a wrong comma, key or bracket.

use super::reader::{JsonReader, OpenContainer};
use super::{MAX_PATH_BYTES, Member, Node, NodeKind, Span, text};
use crate::diagnostic::codes;

/// The text between two items.
#[derive(Default)]
struct Between {
    /// A comma without its item so far.
    comma: Option<usize>,
    /// Where the last item ended; none before the first one.
    end: Option<usize>,
    /// Whether the last item could not be read, so that its neighbours can't be checked.
    broken: bool,
}

/// The likely meaning of a bracket of the wrong kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meant {
    /// It is superfluous.
    Nothing,
    /// It closes an outer container; the ones inside of that were not closed.
    Outer,
    /// It closes the current container, but is of the wrong kind.
    Other,
}

/// Whether the brackets of a text close exactly the `open` ones.
fn closes(mut open: Vec<char>, text: &str) -> bool {
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '{' => open.push('}'),
            '[' => open.push(']'),
            ']' | '}' if open.pop() != Some(c) => return false,
            _ => {}
        }
    }
    open.is_empty()
}

impl JsonReader<'_> {
    /// The array that begins here.
    pub(super) fn array(&mut self) -> Node {
        let start = self.enter(']');
        let mut items = Vec::new();
        let mut between = Between::default();
        let mut keyed = false;
        while self.goes_on(&mut between) {
            if self.peek() == Some(':') {
                if !std::mem::replace(&mut keyed, true) {
                    let key = items.last().map_or(Span::new(self.at, self.at + 1), |item: &Node| item.span);
                    let fault = self.fault(codes::SYNTAX, key, "an array has no keys, and this is one");
                    self.report(fault.help("an object in an array has its own brackets: `[{\"key\": \"value\"}]`"));
                }
                self.advance();
                self.brackets_wrong = true;
                between.broken = true;
                continue;
            }
            let at = self.at;
            let item = self.value();
            self.comma_before(&between, at, item.is_fault());
            between = Between { comma: None, end: Some(self.at), broken: item.is_fault() };
            items.push(item);
            self.take_comma(&mut between);
        }
        self.open.pop();
        // It is neither an array nor an object: nothing in it can be checked.
        let kind = if keyed { NodeKind::Fault } else { NodeKind::Array(items) };
        Node { span: Span::new(start, self.at), kind }
    }

    /// The object that begins here.
    pub(super) fn object(&mut self) -> Node {
        let start = self.enter('}');
        let mut members = Vec::new();
        let mut between = Between::default();
        while self.goes_on(&mut between) {
            let at = self.at;
            let member = self.member();
            let broken = member.as_ref().is_none_or(|member| member.value.is_fault());
            self.comma_before(&between, at, member.is_none());
            between = Between { comma: None, end: Some(self.at), broken };
            members.extend(member);
            self.take_comma(&mut between);
        }
        self.open.pop();
        Node { span: Span::new(start, self.at), kind: NodeKind::Object(members) }
    }

    fn enter(&mut self, closer: char) -> usize {
        let start = self.at;
        self.open.push(OpenContainer { closer, start });
        self.advance();
        start
    }

    /// Whether another item follows. Consumes the closing bracket, and superfluous commas.
    fn goes_on(&mut self, between: &mut Between) -> bool {
        loop {
            self.trivia();
            let Some(c) = self.peek() else {
                self.unclosed();
                return false;
            };
            let closer = self.open.last().map_or('}', |open| open.closer);
            match c {
                ',' => {
                    let span = Span::new(self.at, self.at + 1);
                    let fault = self.fault(codes::COMMA, span, "a comma separates two values, and one is missing here");
                    self.report(fault.suggest(""));
                    self.advance();
                }
                c if c == closer => {
                    if let Some(comma) = between.comma {
                        let span = Span::new(comma, comma + 1);
                        let fault = self.fault(codes::COMMA, span, format!("a comma before `{closer}`"));
                        self.report(fault.help("JSON has no comma after the last one: take it out").suggest(""));
                    }
                    self.advance();
                    return false;
                }
                ']' | '}' => {
                    if self.wrong_closer(c, closer) {
                        return false;
                    }
                    between.broken = true;
                }
                _ => return true,
            }
        }
    }

    /// Handles a bracket of the other kind. Returns whether it ends the container.
    fn wrong_closer(&mut self, found: char, closer: char) -> bool {
        let span = Span::new(self.at, self.at + 1);
        let opened = self.open.last().map(|open| self.source.place(open.start, open.start + 1));
        let (message, ends, taken) = match self.meant(found, closer) {
            Meant::Nothing => (format!("this `{found}` closes nothing"), false, true),
            Meant::Outer => (format!("`{closer}` is missing before this `{found}`"), true, false),
            Meant::Other => (format!("`{closer}` was expected; `{found}` was found"), true, true),
        };
        let quiet = std::mem::replace(&mut self.brackets_wrong, true);
        if taken {
            self.advance();
        }
        if !quiet {
            let fault = self.fault(codes::SYNTAX, span, message);
            let fault = match opened {
                Some(opened) => fault.related(&opened, "what it would close begins here"),
                None => fault,
            };
            self.report(fault);
        }
        ends
    }

    /// The likely meaning of a bracket of the other kind: the reading under which the rest of the text closes
    /// all open containers; if none or several do, the most likely one.
    fn meant(&self, found: char, closer: char) -> Meant {
        let after = self.rest().get(1..).unwrap_or_default();
        let outer = self.open.iter().rev().skip(1).any(|open| open.closer == found);
        let likeliest = if after.trim_start_matches([' ', '\t', '\r', '\n']).starts_with(closer) {
            Meant::Nothing
        } else if outer {
            Meant::Outer
        } else {
            Meant::Other
        };
        // Checked once for each text: after the first wrong bracket, others are its consequence.
        let open: Vec<char> = self.open.iter().map(|open| open.closer).collect();
        let fits = |meant: &Meant| match meant {
            Meant::Nothing => closes(open.clone(), after),
            Meant::Outer => {
                let left = open.iter().rposition(|closer| *closer == found);
                left.is_some_and(|left| closes(open.iter().take(left).copied().collect(), after))
            }
            Meant::Other => closes(open.iter().rev().skip(1).rev().copied().collect(), after),
        };
        if self.brackets_wrong || fits(&likeliest) {
            return likeliest;
        }
        [Meant::Outer, Meant::Other, Meant::Nothing].into_iter().find(fits).unwrap_or(likeliest)
    }

    fn unclosed(&mut self) {
        if std::mem::replace(&mut self.brackets_wrong, true) {
            return;
        }
        let missing: String = self.open.iter().rev().map(|open| open.closer).collect();
        let end = self.text.trim_end().len();
        self.drop_cut(end);
        let fault =
            self.fault(codes::SYNTAX, Span::new(end, end), format!("the text ends where `{missing}` is missing"));
        let fault = match self.open.last() {
            Some(open) => {
                fault.related(&self.source.place(open.start, open.start + 1), "what is not closed begins here")
            }
            None => fault,
        };
        self.report(fault);
    }

    fn take_comma(&mut self, between: &mut Between) {
        self.trivia();
        if self.peek() == Some(',') {
            between.comma = Some(self.at);
            self.advance();
        } else if self.peek() == Some(';') {
            let fault = self.fault(codes::COMMA, Span::new(self.at, self.at + 1), "values are separated by `,`");
            self.report(fault.suggest(","));
            self.advance();
            between.comma = Some(self.at);
            between.broken = true;
        }
    }

    fn comma_before(&mut self, between: &Between, at: usize, broken: bool) {
        if let (Some(end), None, false, false) = (between.end, between.comma, between.broken, broken) {
            // Two adjacent tokens, one of them wrong, are one fault: `b"text"`, `"text"s`.
            if end == at && self.last_fault_touches(at) {
                return;
            }
            // At the end of the last item, not at the start of the next one: there the comma belongs.
            let fault = self.fault(codes::COMMA, Span::new(end, end), "a comma is missing here");
            let next = self.source.place(at, at);
            let fault = fault.help("a comma belongs between two entries").suggest(",");
            self.report(fault.related(&next, "the next one begins here"));
        }
    }

    /// The member that begins here; none when there is no key.
    fn member(&mut self) -> Option<Member> {
        let Some((key, key_span)) = self.key() else {
            self.skip_value();
            return None;
        };
        let quoted = self.raw(key_span).starts_with('"');
        let end = self.at;
        self.trivia();
        match self.peek() {
            Some(':') => {
                self.advance();
            }
            Some('=' | '\u{ff1a}') => {
                let start = self.at;
                self.advance();
                if self.peek() == Some('>') {
                    self.advance();
                }
                let fault = self.fault(codes::SYNTAX, Span::new(start, self.at), "a `:` belongs between key and value");
                self.report(fault.suggest(":"));
            }
            Some(',' | '}' | ']') => {
                if quoted {
                    let fault = self.fault(codes::SYNTAX, key_span, format!("the key `{key}` has no value"));
                    self.report(fault);
                }
                return Some(Member { key, key_span, value: self.nothing() });
            }
            None => return Some(Member { key, key_span, value: self.nothing() }),
            Some(_) => {
                let fault =
                    self.fault(codes::SYNTAX, Span::new(end, end), format!("a `:` is missing after the key `{key}`"));
                self.report(fault.suggest(":"));
            }
        }
        self.trivia();
        let value = match self.peek() {
            None => self.nothing(),
            Some(',' | '}' | ']') => {
                let fault = self.fault(codes::SYNTAX, key_span, format!("the key `{key}` has no value"));
                self.report(fault);
                self.nothing()
            }
            Some(':') => {
                let fault = self.fault(codes::SYNTAX, Span::new(self.at, self.at + 1), "one `:` is enough");
                self.report(fault.suggest(""));
                self.advance();
                self.trivia();
                match self.peek() {
                    None | Some(',' | '}' | ']') => self.nothing(),
                    Some(_) => self.value_of(&key, key_span),
                }
            }
            Some(_) => self.value_of(&key, key_span),
        };
        Some(Member { key, key_span, value })
    }

    fn value_of(&mut self, key: &str, key_span: Span) -> Node {
        let before = self.path;
        self.path = before.saturating_add(key.len()).saturating_add(1);
        if self.path > MAX_PATH_BYTES {
            let message = format!(
                "the keys on the way to this value have more than {MAX_PATH_BYTES} bytes; the rest is not read"
            );
            let fault = self.fault(codes::TOO_MUCH, key_span, message);
            self.report(fault);
            self.cut();
            return self.nothing();
        }
        let value = self.value();
        self.path = before;
        value
    }

    /// Skips the text after something that is no key.
    fn skip_value(&mut self) {
        self.trivia();
        if self.peek() == Some(':') {
            self.advance();
            self.trivia();
            if !matches!(self.peek(), None | Some(',' | '}' | ']')) {
                self.value();
            }
        }
    }

    /// Digits where a key is expected: the rest of a number that a comma or a blank splits.
    fn cut_number(&mut self) -> Option<()> {
        let before = self.text.get(..self.at)?.trim_end();
        let comma = before.strip_suffix(',');
        let is_digit = comma.unwrap_or(before).ends_with(|c: char| c.is_ascii_digit());
        let digits = self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let after = self.rest().get(digits..)?.trim_start();
        if !is_digit || digits == 0 || !after.starts_with([',', '}']) {
            return None;
        }
        let fault = match comma {
            Some(comma) => {
                let message = "a fraction is written with a point, as in `0.5`; a comma ends the number";
                self.fault(codes::NUMBER, Span::new(comma.len(), before.len()), message).suggest(".")
            }
            None => {
                let span = Span::new(before.len(), self.at);
                self.fault(codes::NUMBER, span, "a number is written without blanks").suggest("")
            }
        };
        self.report(fault);
        self.at += digits;
        Some(())
    }

    fn key(&mut self) -> Option<(Box<str>, Span)> {
        match self.peek() {
            Some(quote @ ('"' | '\'')) => {
                let node = self.string(quote);
                match node.kind {
                    NodeKind::String(key) => Some((key, node.span)),
                    _ => None,
                }
            }
            Some('{' | '[') => {
                let span = Span::new(self.at, self.at + 1);
                let fault = self.fault(codes::SYNTAX, span, "an object has keys, and this value has none");
                self.report(fault);
                self.value();
                None
            }
            Some('0'..='9') if self.cut_number().is_some() => None,
            Some(c) if c.is_alphanumeric() || matches!(c, '_' | '$' | '-') => {
                let span = self.word_span();
                let word = self.raw(span);
                let fault = self.fault(codes::SYNTAX, span, format!("the key `{word}` has no quotes"));
                self.report(fault.help("a key needs double quotes").suggest(text::quoted(word)));
                Some((word.into(), span))
            }
            _ => {
                let node = self.junk("a key");
                if let NodeKind::String(key) = node.kind {
                    return Some((key, node.span));
                }
                // The value after it belongs to the same fault.
                self.trivia();
                if self.peek() == Some(':') {
                    self.advance();
                    self.trivia();
                    if !matches!(self.peek(), None | Some(',' | '}' | ']' | ':')) {
                        self.value();
                    }
                }
                None
            }
        }
    }
}
