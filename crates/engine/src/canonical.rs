//! Canonical texts: equal JSON values or thoughts have the same one. For comparisons only, never shown.

#[cfg(test)]
mod tests;

use unicode_normalization::char::is_combining_mark;

pub use loopctl_lang::program::canonical::{number, spell, spelling};

/// A thought without case, punctuation and spacing, so that thoughts which differ only in these are equal.
pub fn words(thought: &str) -> String {
    let mut words = String::with_capacity(thought.len());
    for c in thought.chars().filter(|c| is_kept(*c)) {
        // Fast path for ASCII: no table is needed.
        if c.is_ascii() { words.push(c.to_ascii_lowercase()) } else { words.extend(c.to_lowercase()) }
    }
    words
}

/// Letters, digits, combining marks, and symbols with a meaning (`<`, `+`, `€`, `→`, emoji); not punctuation,
/// spaces or controls.
fn is_kept(c: char) -> bool {
    if c.is_alphanumeric() || matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '|' | '~') {
        return true;
    }
    !c.is_ascii()
        && (is_combining_mark(c) || matches!(u32::from(c), 0x20a0..=0x20cf | 0x2190..=0x2bff | 0x1f000..=0x1faff))
}
