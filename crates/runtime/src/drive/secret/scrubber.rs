//! Finds the encodings of secrets in texts, and replaces them by labels.
//!
//! A text is read in four ways at once: as it is, as hexadecimal digits, as base64 and as base32, where
//! the bytes between the digits are skipped. Then one layer of escapes is removed and the text is read
//! again, once for each layer. Each reading is one pass of an Aho-Corasick automaton.

mod settled;

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{AhoCorasick, Anchored, BuildError, MatchKind};
use serde_json::{Map, Value};

use super::decode::{DecodedView, begins, decoded};
use super::encodings::{LAYERS, Spellings};

/// A byte that is skipped. No pattern contains it.
const PASSED: u8 = 0;
/// A byte that no pattern contains.
const OTHER: u8 = 0xFF;
/// The most bytes of an escape that is cut at the end of a text.
const ESCAPE: usize = 12;

pub struct Scrubber {
    readings: [ScrubReading; 4],
    /// What replaces each secret.
    labels: Vec<String>,
    /// How many layers of escapes are removed from a text: those around a secret, and those that the
    /// secrets contain themselves. Both are decoded at once, but not in step: `&#6\\tA` is the JSON text
    /// of `&#6\tA`, and its first half is decoded before its second one is a secret's own escape.
    layers: usize,
}

/// One way of reading.
struct ScrubReading {
    /// A fast filter: most texts contain nothing.
    glance: Option<AhoCorasick>,
    automaton: NFA,
    start: StateID,
    /// The value that each byte is compared as.
    compared: [u8; 256],
    patterns: Vec<Vec<u8>>,
    /// The secret of each pattern, in the order of the patterns.
    owners: Vec<usize>,
    /// The most bytes at an edge of a match that are skipped, and belong to it.
    edge: usize,
    /// The most `=` that may follow.
    padding: usize,
    /// The shortest beginning of a pattern that is removed at the end of a cut text.
    beginning: usize,
    /// How many bytes of a pattern each state has seen; made when a reply is first watched.
    depths: OnceLock<HashMap<StateID, usize>>,
}

/// A part of a text, or of its compared bytes.
#[derive(Clone, Copy)]
struct SecretSpan {
    start: usize,
    end: usize,
    /// The length of the longest match in it, whose secret labels it.
    longest: usize,
    owner: usize,
}

impl Scrubber {
    /// Finds each of the secrets, and replaces it by its label.
    ///
    /// # Errors
    /// When there are more than an automaton can hold.
    pub fn new<'a>(secrets: impl Iterator<Item = (&'a str, String)>) -> Result<Self, BuildError> {
        let mut patterns: [BTreeMap<Vec<u8>, usize>; 4] = Default::default();
        let mut labels = Vec::new();
        let mut own_layers = 0;
        for (secret, label) in secrets {
            let spelled = Spellings::of(secret);
            own_layers = spelled.own_layers.max(own_layers);
            let all = [spelled.plain, spelled.hex, spelled.base64, spelled.base32];
            for (patterns, spellings) in patterns.iter_mut().zip(all) {
                for spelling in spellings {
                    patterns.entry(spelling).or_insert(labels.len());
                }
            }
            labels.push(label);
        }
        let [plain, hex, base64, base32] = patterns;
        let readings = [
            ScrubReading::new(plain, as_it_is, 0, 4)?.with_glance()?,
            ScrubReading::new(hex, as_hex, 0, 8)?,
            ScrubReading::new(base64, as_base64, 2, 6)?,
            ScrubReading::new(base32, as_base32, 6, 7)?,
        ];
        Ok(Self { readings, labels, layers: LAYERS.saturating_add(own_layers) })
    }

    /// A text without the secrets. `cut`: it is the beginning of a longer text, so that a possible beginning of
    /// a secret at its end is removed too.
    pub fn text(&self, text: String, cut: bool) -> String {
        let spans = self.find(text.as_bytes(), cut);
        if spans.is_empty() { text } else { self.labelled(&text, spans) }
    }

    /// The text with labels in place of these parts.
    fn labelled(&self, text: &str, spans: Vec<SecretSpan>) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut from = 0;
        for span in spans {
            clean.push_str(text.get(from..text.floor_char_boundary(span.start)).unwrap_or_default());
            clean.push_str(self.labels.get(span.owner).map_or("[secret]", String::as_str));
            from = text.ceil_char_boundary(span.end);
        }
        clean.push_str(text.get(from..).unwrap_or_default());
        clean
    }

    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text, false)),
            Value::Number(number) => {
                let text = number.to_string();
                let sign = usize::from(text.starts_with('-'));
                match self.find(text.as_bytes(), false).first() {
                    Some(span) if span.start <= sign && span.end == text.len() => Value::String(self.text(text, false)),
                    _ => Value::Number(number),
                }
            }
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.value(item)).collect()),
            Value::Object(fields) => {
                let mut clean = Map::with_capacity(fields.len());
                for (key, value) in fields {
                    let mut key = self.text(key, false);
                    while clean.contains_key(&key) {
                        key.push('\'');
                    }
                    clean.insert(key, self.value(value));
                }
                Value::Object(clean)
            }
            other => other,
        }
    }

    /// The parts of a text that are secrets, in order; those that overlap are one.
    fn find(&self, text: &[u8], cut: bool) -> Vec<SecretSpan> {
        let mut found = Vec::new();
        for reading in &self.readings {
            found.extend(reading.find(text, cut));
        }
        let mut view: Option<DecodedView> = None;
        for _ in 0..self.layers {
            let bytes = view.as_ref().map_or(text, |view| &view.bytes);
            let Some(next) = decoded(bytes, view.as_ref()) else { break };
            for span in self.readings.iter().flat_map(|reading| reading.find(&next.bytes, cut)) {
                let (start, end) = next.original(span.start, span.end);
                found.push(SecretSpan { start, end, ..span });
            }
            view = Some(next);
        }
        found.sort_by_key(|span| (span.end, span.start));
        let mut merged = Vec::with_capacity(found.len());
        found.into_iter().for_each(|span| add(&mut merged, span));
        merged
    }
}

impl ScrubReading {
    fn new(
        patterns: BTreeMap<Vec<u8>, usize>,
        compare: fn(u8) -> u8,
        padding: usize,
        beginning: usize,
    ) -> Result<Self, BuildError> {
        let mut compared = [OTHER; 256];
        compared.iter_mut().zip(0..=u8::MAX).for_each(|(to, byte)| *to = compare(byte));
        let (mut spelled, mut owners) = (Vec::with_capacity(patterns.len()), Vec::with_capacity(patterns.len()));
        let mut edge = 0;
        for (pattern, owner) in patterns {
            let is_skipped = |byte: &&u8| compare(**byte) == PASSED;
            edge = edge.max(pattern.iter().take_while(is_skipped).count());
            edge = edge.max(pattern.iter().rev().take_while(is_skipped).count());
            let pattern: Vec<u8> = pattern.into_iter().map(compare).filter(|byte| *byte != PASSED).collect();
            if !pattern.is_empty() {
                spelled.push(pattern);
                owners.push(owner);
            }
        }
        // Each match is found at its end, also one that begins inside of another.
        let automaton = NFA::builder().match_kind(MatchKind::Standard).prefilter(false).build(&spelled)?;
        let start = automaton.start_state(Anchored::No).unwrap_or_default();
        Ok(Self {
            glance: None,
            automaton,
            start,
            compared,
            patterns: spelled,
            owners,
            edge,
            padding,
            beginning,
            depths: OnceLock::new(),
        })
    }

    fn with_glance(mut self) -> Result<Self, BuildError> {
        self.glance = Some(AhoCorasick::new(&self.patterns)?);
        Ok(self)
    }

    fn compared(&self, byte: u8) -> u8 {
        self.compared.get(usize::from(byte)).copied().unwrap_or(OTHER)
    }

    /// The parts of the bytes that are secrets, in order.
    fn find(&self, bytes: &[u8], cut: bool) -> Vec<SecretSpan> {
        let mut found = Vec::new();
        if self.may_hold(bytes) {
            let least = self.automaton.min_pattern_len();
            let mut from = 0_usize;
            // A match contains no byte that is `OTHER`: a window with such a byte is skipped.
            while let Some(window) = bytes.get(from..from.saturating_add(least)) {
                if let Some(at) = window.iter().rposition(|byte| self.compared(*byte) == OTHER) {
                    from = from.saturating_add(at).saturating_add(1);
                    continue;
                }
                let rest = bytes.get(from..).unwrap_or_default();
                let end = rest.iter().skip(least).position(|byte| self.compared(*byte) == OTHER);
                let part = rest.get(..end.map_or(rest.len(), |end| end.saturating_add(least))).unwrap_or_default();
                let after = rest.get(part.len()..).unwrap_or_default();
                found.extend(self.read(part, after).into_iter().map(|span| SecretSpan {
                    start: span.start.saturating_add(from),
                    end: span.end.saturating_add(from),
                    ..span
                }));
                from = from.saturating_add(part.len());
            }
        }
        if cut && let Some(span) = self.beginning_at_end(bytes) {
            let placed = self.placed(bytes, &[], vec![span]);
            placed.into_iter().for_each(|span| add(&mut found, SecretSpan { end: bytes.len(), ..span }));
        }
        found
    }

    /// Whether the bytes must be read.
    fn may_hold(&self, bytes: &[u8]) -> bool {
        match &self.glance {
            // The filter finds only bytes that are compared as they are.
            Some(glance) => bytes.iter().any(|byte| matches!(byte, b'+' | 0)) || glance.is_match(bytes),
            None => true,
        }
    }

    /// The parts of some bytes that are secrets; their padding may be in the bytes after them.
    fn read(&self, bytes: &[u8], after: &[u8]) -> Vec<SecretSpan> {
        let mut spans = Vec::new();
        let mut state = self.start;
        let mut count = 0_usize;
        for byte in bytes {
            let byte = self.compared(*byte);
            if byte == PASSED {
                continue;
            }
            state = self.automaton.next_state(Anchored::No, state, byte);
            count = count.saturating_add(1);
            if self.automaton.is_match(state) {
                for at in 0..self.automaton.match_len(state) {
                    let pattern = self.automaton.match_pattern(state, at);
                    let longest = self.automaton.pattern_len(pattern);
                    let owner = self.owners.get(pattern.as_usize()).copied().unwrap_or_default();
                    add(&mut spans, SecretSpan { start: count.saturating_sub(longest), end: count, longest, owner });
                }
            }
        }
        self.placed(bytes, after, spans)
    }

    /// Where the bytes end in the beginning of a pattern, perhaps with a cut escape after it.
    fn beginning_at_end(&self, bytes: &[u8]) -> Option<SecretSpan> {
        let mut ends: BTreeMap<StateID, usize> = BTreeMap::new();
        let mut state = self.start;
        let all = bytes.iter().filter(|byte| self.compared(**byte) != PASSED).count();
        let compared = bytes.iter().map(|byte| self.compared(*byte)).filter(|byte| *byte != PASSED);
        for (index, byte) in compared.enumerate() {
            if begins(byte) && index.saturating_add(ESCAPE) >= all {
                ends.insert(state, index);
            }
            state = self.automaton.next_state(Anchored::No, state, byte);
        }
        ends.insert(state, all);
        let mut best: Option<SecretSpan> = None;
        for (pattern, owner) in self.patterns.iter().zip(&self.owners) {
            let mut state = self.start;
            let beginning = pattern.len().saturating_sub(1);
            for (index, byte) in pattern.iter().take(beginning).enumerate() {
                state = self.automaton.next_state(Anchored::No, state, *byte);
                let length = index.saturating_add(1);
                let Some(end) = ends.get(&state).filter(|_| length >= self.beginning) else { continue };
                let span = SecretSpan { start: end.saturating_sub(length), end: all, longest: length, owner: *owner };
                best = best.filter(|best| best.start <= span.start).or(Some(span));
            }
        }
        best
    }

    /// The same parts with positions in all bytes, and with the padding after them.
    fn placed(&self, bytes: &[u8], after: &[u8], spans: Vec<SecretSpan>) -> Vec<SecretSpan> {
        let mut placed = Vec::with_capacity(spans.len());
        let mut spans = spans.into_iter().peekable();
        let (mut count, mut start) = (0_usize, 0);
        for (index, byte) in bytes.iter().enumerate() {
            let Some(span) = spans.peek().copied() else { break };
            if self.compared(*byte) == PASSED {
                continue;
            }
            if count == span.start {
                let before = bytes.get(..index).unwrap_or_default().iter().rev();
                start = index.saturating_sub(self.edge_of(before));
            }
            count = count.saturating_add(1);
            if count == span.end {
                let next = index.saturating_add(1);
                let rest = bytes.iter().skip(next).chain(after);
                let behind = self.padding_of(rest.clone()).max(self.edge_of(rest));
                placed.push(SecretSpan { start, end: next.saturating_add(behind), ..span });
                spans.next();
            }
        }
        placed
    }

    /// How many of these bytes, next to a match, are skipped and may belong to it.
    fn edge_of<'a>(&self, next: impl Iterator<Item = &'a u8>) -> usize {
        next.take(self.edge).take_while(|byte| self.compared(**byte) == PASSED).count()
    }

    /// The length of the padding at the beginning of these bytes, including skipped ones.
    fn padding_of<'a>(&self, after: impl Iterator<Item = &'a u8>) -> usize {
        let near = after.take(self.padding.saturating_mul(8)).enumerate();
        let padding = near.take_while(|(_, byte)| **byte == b'=' || self.compared(**byte) == PASSED);
        let signs = padding.filter(|(_, byte)| **byte == b'=').take(self.padding);
        signs.last().map_or(0, |(index, _)| index.saturating_add(1))
    }
}

/// Adds a span whose end is not before the end of the last one. Overlapping spans become one, labelled by the
/// longest.
fn add(spans: &mut Vec<SecretSpan>, mut span: SecretSpan) {
    while let Some(last) = spans.pop_if(|last| span.start < last.end) {
        let name = if last.longest >= span.longest { last } else { span };
        span = SecretSpan {
            start: last.start.min(span.start),
            end: last.end.max(span.end),
            longest: name.longest,
            owner: name.owner,
        };
    }
    spans.push(span);
}

/// UTF-16 of Latin letters has zeros between them; a form encodes a space as `+`.
fn as_it_is(byte: u8) -> u8 {
    if byte == b'+' { b' ' } else { byte }
}

fn as_hex(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' | b'a'..=b'f' => byte,
        b'A'..=b'F' => byte.to_ascii_lowercase(),
        b'x' | b'X' | b'\\' | b':' | b',' | b'-' | b'_' => PASSED,
        _ if byte.is_ascii_whitespace() => PASSED,
        _ => OTHER,
    }
}

fn as_base64(byte: u8) -> u8 {
    match byte {
        b'-' => b'+',
        b'_' => b'/',
        b'+' | b'/' => byte,
        _ if byte.is_ascii_alphanumeric() => byte,
        _ if byte.is_ascii_whitespace() => PASSED,
        _ => OTHER,
    }
}

fn as_base32(byte: u8) -> u8 {
    match byte {
        b'2'..=b'7' => byte,
        b'-' => PASSED,
        _ if byte.is_ascii_alphabetic() => byte.to_ascii_uppercase(),
        _ if byte.is_ascii_whitespace() => PASSED,
        _ => OTHER,
    }
}
