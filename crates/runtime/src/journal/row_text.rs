//! Texts in the rows of runs. They are short, whatever a model, a tool or a client wrote, because lists show many of them.

use serde::Serialize;

/// The most bytes of a text that lists show.
const MAX_SHOWN_BYTES: usize = 300;
/// The most bytes of the text that a search finds a run by.
pub const MOST_SEARCH_BYTES: usize = 600;

/// One line of bounded length, without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RowText(Box<str>);

impl RowText {
    /// The beginning of a text; none when nothing is in it.
    pub fn new(text: &str) -> Option<Self> {
        let line = line(text, MAX_SHOWN_BYTES);
        (!line.is_empty()).then(|| Self(line.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text as searches compare it: the case of letters, line breaks and repeated blanks do not matter.
pub fn search_text(text: &str) -> String {
    line(text, MOST_SEARCH_BYTES).to_lowercase()
}

/// A text as the title of a run: one line of bounded length.
pub fn title_text(text: &str) -> String {
    line(text, MAX_SHOWN_BYTES)
}

/// The beginning of a text, with one blank in the place of each sequence of blanks, line breaks and control characters.
fn line(text: &str, most_bytes: usize) -> String {
    let mut line = String::new();
    let is_blank = |c: char| c.is_whitespace() || c.is_control();
    for word in text.split(is_blank).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        let room = most_bytes.saturating_sub(line.len());
        if word.len() > room {
            let end = (0..=room).rev().find(|end| word.is_char_boundary(*end)).unwrap_or_default();
            line.push_str(word.get(..end).unwrap_or_default());
            line.truncate(line.trim_end().len());
            line.push('…');
            return line;
        }
        line.push_str(word);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_of_bounded_length() {
        for (text, shown) in [
            ("Refund 40 EUR?", "Refund 40 EUR?"),
            (" two\r\n\tlines\u{0}\u{2028}and more ", "two lines and more"),
            ("\u{1b}[2Jx", "[2Jx"),
        ] {
            assert_eq!(RowText::new(text).unwrap().as_str(), shown);
        }
        assert_eq!(RowText::new(" \n\u{0}"), None);
        for long in ["ä".repeat(5_000), "word ".repeat(5_000)] {
            let shown = RowText::new(&long).unwrap();
            assert!(shown.as_str().len() <= MAX_SHOWN_BYTES + '…'.len_utf8() && shown.as_str().ends_with('…'));
        }
    }

    #[test]
    fn a_search_text_has_no_case_and_no_line_breaks() {
        assert_eq!(search_text("Order  A-17\nfor ÄDA"), "order a-17 for äda");
    }
}
