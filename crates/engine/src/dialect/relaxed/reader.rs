//! The reader: one pass over the text, one call a level, at most `MAX_DEPTH` levels.

use serde_json::{Map, Value};

use super::fault::{RelaxedFault, RelaxedFaultKind};
use super::{MAX_DEPTH, MAX_VALUES, Opening, UnclosedBrackets, number, string};

/// A reading under way.
pub struct RelaxedReader<'a> {
    text: &'a str,
    at: usize,
    unclosed: UnclosedBrackets,
    depth: usize,
    values: usize,
    /// How many closing brackets were missing.
    supplied: usize,
    /// Whether the last value is a number that touches the end of the text: digits may be missing.
    open_number: bool,
    /// Whether a line comment runs into the end of the text: it may have swallowed brackets.
    open_line: bool,
    /// The duplicate keys of the outermost object that have equal values.
    repeated: Vec<String>,
}

impl<'a> RelaxedReader<'a> {
    pub fn new(text: &'a str, at: usize, unclosed: UnclosedBrackets) -> Self {
        Self {
            text,
            at,
            unclosed,
            depth: 0,
            values: 0,
            supplied: 0,
            open_number: false,
            open_line: false,
            repeated: Vec::new(),
        }
    }

    /// The current position, in bytes.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn supplied(&self) -> usize {
        self.supplied
    }

    pub fn into_repeated(self) -> Vec<String> {
        self.repeated
    }

    /// An object, from its `{` on.
    pub fn object(&mut self) -> Result<Map<String, Value>, RelaxedFault> {
        self.enter(b'{')?;
        let mut map = Map::new();
        loop {
            self.skip()?;
            if self.eat(b'}') {
                break;
            }
            let start = self.at;
            let key = self.key()?;
            self.skip()?;
            if !self.eat(b':') {
                return Err(self.expected(RelaxedFaultKind::Colon));
            }
            self.skip()?;
            let value = self.value()?;
            self.keep(&mut map, key, value, start)?;
            if self.closes(b'}')? {
                break;
            }
        }
        self.depth = self.depth.saturating_sub(1);
        Ok(map)
    }

    /// A quoted text.
    pub fn string(&mut self) -> Result<String, RelaxedFault> {
        match string::string(self.text, self.at)? {
            Some((text, end)) => {
                self.at = end;
                Ok(text)
            }
            None => Err(self.expected(RelaxedFaultKind::Value)),
        }
    }

    /// Spaces and comments.
    pub fn skip(&mut self) -> Result<(), RelaxedFault> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at = self.at.saturating_add(1),
                Some(b'#') => self.line_comment(),
                Some(b'/') => match self.peek_at(1) {
                    Some(b'/') => self.line_comment(),
                    Some(b'*') => self.block_comment()?,
                    _ => return Ok(()),
                },
                Some(byte) if !byte.is_ascii() => match self.rest().chars().next() {
                    Some(c) if c.is_whitespace() || c == '\u{feff}' => self.at = self.at.saturating_add(c.len_utf8()),
                    _ => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    /// That the text ends here.
    pub fn nothing_left(&self) -> Result<(), RelaxedFault> {
        if self.peek().is_none() { Ok(()) } else { Err(self.fault(RelaxedFaultKind::Trailing)) }
    }

    /// What follows an opening brace, see [`Opening`].
    pub fn opening(&mut self) -> Result<Opening, RelaxedFault> {
        self.skip()?;
        let quoted = match self.rest().chars().next() {
            Some('}') => return Ok(Opening::Object { key: None }),
            Some('"' | '\'' | '“') => true,
            Some(c) if begins_word(c) => false,
            _ if self.at_end() => return Err(self.fault(RelaxedFaultKind::CutOff)),
            _ => return Ok(Opening::Other),
        };
        let word = self.key()?;
        self.skip()?;
        if self.peek() == Some(b':') {
            return Ok(Opening::Object { key: Some(word) });
        }
        Ok(Opening::Word { word, quoted })
    }

    fn array(&mut self) -> Result<Vec<Value>, RelaxedFault> {
        self.enter(b'[')?;
        let mut items = Vec::new();
        loop {
            self.skip()?;
            if self.eat(b']') {
                break;
            }
            items.push(self.value()?);
            if self.closes(b']')? {
                break;
            }
        }
        self.depth = self.depth.saturating_sub(1);
        Ok(items)
    }

    /// Any value.
    pub fn value(&mut self) -> Result<Value, RelaxedFault> {
        self.values = self.values.saturating_add(1);
        if self.values > MAX_VALUES {
            return Err(self.fault(RelaxedFaultKind::TooMany));
        }
        match self.peek() {
            Some(b'{') => self.object().map(Value::Object),
            Some(b'[') => self.array().map(Value::Array),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9') => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => self.word(),
            _ => self.string().map(Value::String),
        }
    }

    fn number(&mut self) -> Result<Value, RelaxedFault> {
        let word = self.take(number::belongs);
        match number::number(word) {
            Some(number) => {
                self.at = self.at.saturating_add(word.len());
                self.open_number = self.at == self.text.len();
                Ok(Value::Number(number))
            }
            None if number::is_inexact(word) => Err(self.fault(RelaxedFaultKind::Inexact)),
            None if word.len() == self.rest().len() => Err(self.fault(RelaxedFaultKind::CutOff)),
            None => Err(self.fault(RelaxedFaultKind::Number)),
        }
    }

    fn word(&mut self) -> Result<Value, RelaxedFault> {
        let word = self.take(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let value = match word {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" => Value::Null,
            "NaN" | "Infinity" | "nan" | "inf" => return Err(self.fault(RelaxedFaultKind::Number)),
            _ if word.len() == self.rest().len() => return Err(self.fault(RelaxedFaultKind::CutOff)),
            _ => return Err(self.fault(RelaxedFaultKind::Word)),
        };
        self.at = self.at.saturating_add(word.len());
        Ok(value)
    }

    fn key(&mut self) -> Result<String, RelaxedFault> {
        match self.rest().chars().next() {
            Some('"' | '\'' | '“') => self.string(),
            Some(c) if begins_word(c) => {
                let word = self.take(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-'));
                self.at = self.at.saturating_add(word.len());
                Ok(word.to_owned())
            }
            _ => Err(self.expected(RelaxedFaultKind::Key)),
        }
    }

    /// Keeps a member; `start` is the position of its key.
    fn keep(
        &mut self,
        map: &mut Map<String, Value>,
        key: String,
        value: Value,
        start: usize,
    ) -> Result<(), RelaxedFault> {
        // serde_json hides numbers and raw JSON behind such keys: what is written with one of them
        // would be read back as something else.
        if key.starts_with("$serde_json::private::") {
            return Err(RelaxedFault { kind: RelaxedFaultKind::Reserved, at: start });
        }
        match map.get(&key) {
            None => {
                map.insert(key, value);
            }
            Some(old) if *old != value => {
                return Err(RelaxedFault { kind: RelaxedFaultKind::Repeated(key), at: start });
            }
            Some(_) if self.depth == 1 => self.repeated.push(key),
            Some(_) => {}
        }
        Ok(())
    }

    /// Reads what follows a value: a comma (false), or the container's end (true), which may be missing at the
    /// end of the text.
    fn closes(&mut self, closer: u8) -> Result<bool, RelaxedFault> {
        self.skip()?;
        if self.eat(b',') {
            return Ok(false);
        }
        if self.eat(closer) {
            return Ok(true);
        }
        if !self.at_end() {
            return Err(self.fault(RelaxedFaultKind::Separator));
        }
        // A list without its end may lack items.
        let open_list = closer == b']';
        if self.unclosed == UnclosedBrackets::Refuse || open_list || self.open_number || self.open_line {
            return Err(self.fault(RelaxedFaultKind::CutOff));
        }
        self.supplied = self.supplied.saturating_add(1);
        Ok(true)
    }

    fn enter(&mut self, opener: u8) -> Result<(), RelaxedFault> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault(RelaxedFaultKind::TooDeep));
        }
        if !self.eat(opener) {
            return Err(self.expected(RelaxedFaultKind::Value));
        }
        self.depth = self.depth.saturating_add(1);
        Ok(())
    }

    fn line_comment(&mut self) {
        let rest = self.rest();
        let length = rest.find(['\n', '\r']);
        self.open_line = length.is_none();
        self.at = self.at.saturating_add(length.unwrap_or(rest.len()));
    }

    fn block_comment(&mut self) -> Result<(), RelaxedFault> {
        let body = self.text.get(self.at.saturating_add(2)..).unwrap_or_default();
        let length = body.find("*/").ok_or_else(|| self.fault(RelaxedFaultKind::OpenComment))?;
        self.at = self.at.saturating_add(length).saturating_add(4);
        Ok(())
    }

    /// The end of the text, or of the code block around the object.
    fn at_end(&self) -> bool {
        self.peek().is_none() || self.rest().starts_with("```")
    }

    fn expected(&self, kind: RelaxedFaultKind) -> RelaxedFault {
        self.fault(if self.at_end() { RelaxedFaultKind::CutOff } else { kind })
    }

    fn fault(&self, kind: RelaxedFaultKind) -> RelaxedFault {
        RelaxedFault { kind, at: self.at }
    }

    fn take(&self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.bytes().position(|byte| !belongs(byte)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        if there {
            self.at = self.at.saturating_add(1);
        }
        there
    }

    fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    fn peek_at(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at.saturating_add(offset)).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }
}

fn begins_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == '$'
}
