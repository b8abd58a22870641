//! Patterns of schemas: checked and measured when a schema is loaded, compiled when the first text comes.

use std::sync::OnceLock;

use fancy_regex::{Regex, RegexBuilder};

use super::work::{StepBudget, TooMuch, count};

/// The longest pattern, in bytes.
pub(super) const MAX_BYTES: usize = 4096;
/// The biggest program that a pattern may compile to, in bytes.
const MAX_PROGRAM_BYTES: usize = 1 << 20;
/// The sizes that a pattern's programs are measured by, in bytes.
const PROGRAM_SIZES_BYTES: [usize; 6] = [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 19, MAX_PROGRAM_BYTES];
/// The bytes that one state of a compiled program takes, about.
const STATE_BYTES: u64 = 32;
/// The most steps back of a pattern with look-around or back-references.
const MAX_BACKTRACKS: usize = 50_000;
/// The most bytes of text that are looked at in all, when each step back may look at the whole of it.
const MAX_LOOKED_AT: usize = 200_000_000;
/// The most states times bytes of a text. An engine takes that many steps at the very worst.
const MAX_STATES_TIMES_BYTES: u64 = 1_000_000_000;

/// The steps that a search takes however short the text is: it costs about as much as 40 others.
const SEARCH_START_STEPS: u64 = 40;

/// A pattern that is known to be sound.
#[derive(Debug)]
pub(super) struct Pattern {
    /// As the engine takes it.
    translated: Box<str>,
    /// An upper bound of the bytes of the programs that it compiles to.
    pub bytes: usize,
    compiled: OnceLock<Option<Regex>>,
}

/// Whether a text matches; the engine may not know in reasonable time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    Yes,
    No,
    Unknown,
}

impl Pattern {
    /// Checks and measures a pattern. It is kept as text: what it compiles to is made when it is needed.
    pub(super) fn read(written: &str) -> Option<Self> {
        let translated: Box<str> = jsonschema_regex::to_rust_regex(written).ok()?.into();
        let size = PROGRAM_SIZES_BYTES.into_iter().find(|size| build(&translated, *size, MAX_BACKTRACKS).is_some())?;
        // Each group that looks around, and each piece between them, is a program of its own.
        let pieces = if is_plain(&translated) { 1 } else { 1 + 2 * written.matches("(?").count() };
        Some(Self { translated, bytes: size * pieces + written.len(), compiled: OnceLock::new() })
    }

    /// Whether a text matches.
    ///
    /// # Errors
    /// When no work is left.
    pub(super) fn matches(&self, text: &str, work: &mut StepBudget) -> Result<Match, TooMuch> {
        work.spend(SEARCH_START_STEPS + count(text.len()) / 16)?;
        let plain = is_plain(&self.translated);
        let states = count(self.bytes) / STATE_BYTES;
        if plain
            && self.bytes > PROGRAM_SIZES_BYTES[1]
            && states.saturating_mul(count(text.len())) > MAX_STATES_TIMES_BYTES
        {
            return Ok(Match::Unknown);
        }
        if !plain && text.len() > MAX_LOOKED_AT / MAX_BACKTRACKS {
            // Fewer steps back for a long text. That is compiled for this text alone, and hardly ever.
            work.spend(count(self.bytes) / 4)?;
            let limit = MAX_LOOKED_AT / text.len().max(1);
            return Ok(build(&self.translated, MAX_PROGRAM_BYTES, limit)
                .map_or(Match::Unknown, |regex| is_match(&regex, text)));
        }
        let compiled = self.compiled.get_or_init(|| build(&self.translated, MAX_PROGRAM_BYTES, MAX_BACKTRACKS));
        Ok(compiled.as_ref().map_or(Match::Unknown, |regex| is_match(regex, text)))
    }
}

/// A pattern for texts outside of schemas, with the same bounds.
#[derive(Debug)]
pub(crate) struct TextPattern(Pattern);

impl TextPattern {
    /// Checks a pattern; none when it can't be read, or is too large.
    pub(crate) fn read(written: &str) -> Option<Self> {
        (written.len() <= MAX_BYTES).then(|| Pattern::read(written)).flatten().map(Self)
    }

    /// Whether it is found anywhere in a text; none when that can't be known in reasonable time.
    pub(crate) fn is_in(&self, text: &str) -> Option<bool> {
        match self.0.matches(text, &mut StepBudget::new(&serde_json::Value::Null)) {
            Ok(Match::Yes) => Some(true),
            Ok(Match::No) => Some(false),
            Ok(Match::Unknown) | Err(_) => None,
        }
    }
}

/// Whether nothing in it looks around or back, so that its cost grows with the text alone.
fn is_plain(translated: &str) -> bool {
    ![
        "(?=", "(?!", "(?<=", "(?<!", "(?>", "\\1", "\\2", "\\3", "\\4", "\\5", "\\6", "\\7", "\\8", "\\9", "\\k",
        "\\G", "\\K",
    ]
    .iter()
    .any(|mark| translated.contains(mark))
        && !["++", "*+", "?+", "}+", "(?("].iter().any(|mark| translated.contains(mark))
}

fn build(translated: &str, size: usize, backtracks: usize) -> Option<Regex> {
    RegexBuilder::new(translated)
        .backtrack_limit(backtracks)
        .delegate_size_limit(size)
        .delegate_dfa_size_limit(MAX_PROGRAM_BYTES)
        .build()
        .ok()
}

/// The engine is known to panic on some patterns. No text may end the process.
fn is_match(regex: &Regex, text: &str) -> Match {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| regex.is_match(text))) {
        Ok(Ok(true)) => Match::Yes,
        Ok(Ok(false)) => Match::No,
        Ok(Err(_)) | Err(_) => Match::Unknown,
    }
}

/// An upper bound of the bytes that a pattern takes once it is compiled; 0 when it can't be.
pub(super) fn bytes_of(written: &str) -> usize {
    if written.len() > MAX_BYTES {
        return 0;
    }
    Pattern::read(written).map_or(0, |pattern| pattern.bytes)
}
