//! One spelling for equal things: JSON values, thoughts. For comparing, never for showing.

#[cfg(test)]
mod tests;

use unicode_normalization::char::is_combining_mark;

pub use crate::program::canonical::{number, spell, spelling};

/// A thought without case, punctuation and spacing: two that differ in nothing else are the same.
pub fn words(thought: &str) -> String {
    let mut words = String::with_capacity(thought.len());
    for c in thought.chars().filter(|c| is_kept(*c)) {
        // What most thoughts are made of is looked up in no table.
        if c.is_ascii() { words.push(c.to_ascii_lowercase()) } else { words.extend(c.to_lowercase()) }
    }
    words
}

/// Letters, digits, the marks that belong to letters, and symbols that say something (`<`, `+`, `€`,
/// `→`, emoji); not punctuation, spaces, controls.
fn is_kept(c: char) -> bool {
    if c.is_alphanumeric() || matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '|' | '~') {
        return true;
    }
    !c.is_ascii()
        && (is_combining_mark(c) || matches!(u32::from(c), 0x20a0..=0x20cf | 0x2190..=0x2bff | 0x1f000..=0x1faff))
}
