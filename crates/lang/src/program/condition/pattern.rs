//! Patterns of `matches` that can't be read: why, and what was meant.

use fancy_regex::{Error, Expr, ParseError};
use serde_json::{Value, json};

use crate::program::reference::as_path;
use crate::syntax::quoted;

/// The longest pattern that is looked into, in bytes.
const MAX_PATTERN_BYTES: usize = 4096;

/// The pattern, as JSON, that is meant by one of file names which only says how a text ends: `*@example.com`.
pub fn pattern_of_ending(text: &str) -> Option<String> {
    Some(quoted(&format!("{}$", text.strip_prefix('*')?.replace('.', "\\."))))
}

/// A pattern between slashes, as other languages write one: `/^a$/i`.
pub struct SlashedPattern<'t> {
    /// What is between them.
    pub inner: &'t str,
    /// The letters behind them.
    pub flags: &'t str,
    /// Whether nothing matches it: a text has no slash before its beginning, or behind its end.
    pub matches_nothing: bool,
}

/// Reads a pattern that seems to be written between slashes.
pub fn slashed(text: &str) -> Option<SlashedPattern<'_>> {
    let (inner, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    let is_flags = flags.chars().all(|c| matches!(c, 'g' | 'i' | 'm' | 's' | 'u'));
    let is_anchored = inner.starts_with('^') || inner.ends_with('$');
    let is_pattern = is_flags && !inner.is_empty() && !inner.contains('/') && (!flags.is_empty() || is_anchored);
    is_pattern.then_some(SlashedPattern { inner, flags, matches_nothing: is_anchored && !inner.contains('|') })
}

impl SlashedPattern<'_> {
    /// How it is written here.
    pub fn meant(&self) -> String {
        if self.flags.contains('i') { format!("(?i){}", self.inner) } else { self.inner.to_owned() }
    }
}

/// The operands of `matches`, as JSON, where they stand the wrong way round: the pattern first, then the value.
pub(super) fn swapped_pattern(value: &Value, pattern: &Value) -> Option<Value> {
    let is_path = |operand: &Value| operand.as_str().is_some_and(|text| as_path(text).is_some());
    (value.is_string() && !is_path(value) && is_path(pattern)).then(|| json!([pattern, value]))
}

/// How a pattern is written that can't be read; `meant` is that of a text which only says how it ends.
pub fn pattern_help(text: &str, meant: Option<&str>) -> String {
    if let Some(meant) = meant {
        return format!("`*` repeats what stands before it; a text that ends so matches {meant}");
    }
    let fault = if text.len() > MAX_PATTERN_BYTES { None } else { Expr::parse_tree(text).err() };
    let reason = match fault {
        Some(Error::ParseError(_, fault)) => Some(fault),
        _ => None,
    };
    match reason {
        Some(ParseError::UnclosedOpenParen) => "a `(` is not closed; a parenthesis that is meant itself is written `[(]`",
        Some(ParseError::GeneralParseError(_)) if text.contains(')') => {
            "a `)` closes nothing; a parenthesis that is meant itself is written `[)]`"
        }
        Some(ParseError::TargetNotRepeatable | ParseError::InvalidRepeat) => {
            "`*`, `+` and `?` repeat what stands before them, and nothing that can be repeated stands there; one that is meant \
             itself is written `[*]`"
        }
        Some(ParseError::InvalidClass) => "a `[` is not closed by `]`",
        Some(
            ParseError::TrailingBackslash
            | ParseError::InvalidEscape(_)
            | ParseError::InvalidHex
            | ParseError::InvalidCodepointValue
            | ParseError::UnclosedUnicodeName
            | ParseError::InvalidBackref,
        ) => {
            "in JSON each `\\` is written twice: \"^INV-\\\\d+$\"; one that is a part of the text itself four times"
        }
        _ => "letters, digits and spaces stand for themselves; another character that is meant itself stands in `[` and `]`: \"[?]\"",
    }
    .to_owned()
}
