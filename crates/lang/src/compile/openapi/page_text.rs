//! Texts of a page as an action holds them: without what nobody sees, and cut to a bound.

use crate::policy::characters::is_hidden;

/// What follows a text that was cut.
const CUT: &str = " (cut)";

/// A text in one line, without characters that nobody sees, of at most this many characters. One that is longer says so.
pub(super) fn plain(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most));
    let (mut length, mut is_apart) = (0_usize, false);
    for c in text.chars() {
        if c.is_whitespace() {
            is_apart = !line.is_empty();
            continue;
        }
        if is_hidden(c) {
            continue;
        }
        length += 1 + usize::from(is_apart);
        if length > most {
            return line + CUT;
        }
        if std::mem::take(&mut is_apart) {
            line.push(' ');
        }
        line.push(c);
    }
    line
}

/// A name for an input, a secret or an action: letters, digits, `_` and the signs that are `kept`; others are `_`, once.
pub(super) fn name_of(text: &str, kept: &[char]) -> String {
    let mut name = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || kept.contains(&c) {
            name.push(c);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_matches('_');
    if name.starts_with(|c: char| c.is_ascii_digit() || kept.contains(&c)) {
        format!("n_{name}")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_of_what_is_seen_and_says_that_it_was_cut() {
        assert_eq!(plain("  Reads\n\n one\u{202E} \torder\u{0}. ", 100), "Reads one order.");
        assert_eq!(plain("abc def", 7), "abc def");
        assert_eq!(plain("abc def", 6), "abc de (cut)");
        assert_eq!(plain("abc def", 4), "abc (cut)");
        assert_eq!(plain("ää ää", 5), "ää ää");
        assert_eq!(plain("\u{200B}", 5), "");
    }

    #[test]
    fn a_name_has_letters_digits_and_lines_below() {
        assert_eq!(name_of("filter[created][]", &[]), "filter_created");
        assert_eq!(name_of("repos/list-for-org", &['-']), "repos_list-for-org");
        assert_eq!(name_of("2fa", &[]), "n_2fa");
        assert_eq!(name_of("-x", &['-']), "n_-x");
        assert_eq!(name_of("__complete__", &[]), "complete");
        assert_eq!(name_of("中文", &[]), "");
    }
}
