//! Characters that a reader does not see, or mistakes for others. This is the only table of them: the output
//! for terminals, logs, reports and pages escapes by it, and so do the messages of `check`.

/// A first and a last character.
pub type Range = (char, char);

/// Characters that can control a terminal or are invisible, in order: control characters (C0 and C1, except tab
/// and newline), bidirectional controls, characters without width or form, tags. That is Unicode's
/// `Default_Ignorable_Code_Point` without [`PRESENTATION`], its `Bidi_Control`, its two line separators, the
/// annotation marks, and the few that fonts leave blank.
pub const HIDDEN: &[Range] = &[
    ('\u{00}', '\u{08}'),
    ('\u{0B}', '\u{1F}'),
    ('\u{7F}', '\u{9F}'),
    ('\u{AD}', '\u{AD}'),
    ('\u{34F}', '\u{34F}'),
    ('\u{61C}', '\u{61C}'),
    ('\u{115F}', '\u{1160}'),
    ('\u{17B4}', '\u{17B5}'),
    ('\u{180B}', '\u{180F}'),
    ('\u{200B}', '\u{200F}'),
    ('\u{2028}', '\u{202E}'),
    ('\u{2060}', '\u{206F}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{FE00}', '\u{FE0D}'),
    ('\u{FEFF}', '\u{FEFF}'),
    ('\u{FFA0}', '\u{FFA0}'),
    ('\u{FFF0}', '\u{FFFB}'),
    ('\u{13430}', '\u{1343F}'),
    ('\u{16FE4}', '\u{16FE4}'),
    ('\u{1BCA0}', '\u{1BCA3}'),
    ('\u{1D159}', '\u{1D159}'),
    ('\u{1D173}', '\u{1D17A}'),
    ('\u{E0000}', '\u{E0FFF}'),
];

/// The two variation selectors that say whether the character before them is a text or an emoji. They are
/// frequent in prose, and harmless there.
pub const PRESENTATION: &[Range] = &[('\u{FE0E}', '\u{FE0F}')];

/// Characters that only look like a space: Unicode's `White_Space` beyond ASCII, and the empty Braille pattern.
/// Prose of many languages contains them.
pub const BLANK: &[Range] = &[
    ('\u{A0}', '\u{A0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{2000}', '\u{200A}'),
    ('\u{202F}', '\u{202F}'),
    ('\u{205F}', '\u{205F}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3000}', '\u{3000}'),
];

/// Whether a character controls a terminal or is invisible: wherever text from outside is shown, it is shown by
/// its number.
pub fn is_hidden(c: char) -> bool {
    is_in(HIDDEN, c)
}

/// Whether a character only looks like a space.
pub fn is_blank(c: char) -> bool {
    is_in(BLANK, c)
}

/// Whether a character can deceive a reader who must know each character: it is hidden, only looks like a
/// space, or only changes how the character before it looks. It is shown by its number where a human approves a
/// call, and where a message repeats a name.
pub fn deceives(c: char) -> bool {
    is_hidden(c) || is_blank(c) || is_in(PRESENTATION, c)
}

fn is_in(table: &[Range], c: char) -> bool {
    // Most characters are these, and in no table.
    if matches!(c, ' '..='~') {
        return false;
    }
    let at = table.partition_point(|range| range.1 < c);
    table.get(at).is_some_and(|range| range.0 <= c)
}

/// The content of a character class of a JavaScript regular expression, with the flag `u`.
pub fn class(tables: &[&[Range]]) -> String {
    let sign = |c: char| format!("\\u{{{:X}}}", u32::from(c));
    tables.iter().flat_map(|table| table.iter()).map(|range| format!("{}-{}", sign(range.0), sign(range.1))).collect()
}

#[cfg(test)]
mod tests {
    use icu_properties::props::{BidiControl, DefaultIgnorableCodePoint, GeneralCategory, WhiteSpace};
    use icu_properties::{CodePointMapData, CodePointSetData};

    use super::*;

    /// What is in [`HIDDEN`] and in no property of Unicode that says so: the separators of lines and
    /// paragraphs, the marks of annotations (and what is not assigned before them), the controls of Egyptian hieroglyphs, a filler of the
    /// Khitan script, a note without a head.
    const BEYOND: &[Range] = &[
        ('\u{2028}', '\u{2029}'),
        ('\u{FFF9}', '\u{FFFB}'),
        ('\u{13430}', '\u{1343F}'),
        ('\u{16FE4}', '\u{16FE4}'),
        ('\u{1D159}', '\u{1D159}'),
    ];

    #[test]
    fn the_tables_are_what_unicode_says_and_the_written_few_more() {
        let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        let bidi = CodePointSetData::new::<BidiControl>();
        let white = CodePointSetData::new::<WhiteSpace>();
        let category = CodePointMapData::<GeneralCategory>::new();
        let mut seen = 0;
        for c in '\0'..=char::MAX {
            let control = category.get(c) == GeneralCategory::Control && !matches!(c, '\t' | '\n');
            let unseen = ignorable.contains(c) || bidi.contains(c) || control || is_in(BEYOND, c);
            let blank = (white.contains(c) && !c.is_ascii() && !unseen) || c == '\u{2800}';
            assert_eq!(is_hidden(c) || is_in(PRESENTATION, c), unseen, "{:X}", u32::from(c));
            assert_eq!(is_blank(c), blank, "{:X}", u32::from(c));
            assert_eq!(deceives(c), unseen || blank, "{:X}", u32::from(c));
            assert!(!white.contains(c) || deceives(c) || matches!(c, ' ' | '\t' | '\n'), "{:X}", u32::from(c));
            seen += u32::from(unseen) + u32::from(blank);
        }
        assert!(seen > 4_000, "{seen}");
    }

    #[test]
    fn the_tables_are_in_order_and_no_character_is_in_two() {
        for table in [HIDDEN, PRESENTATION, BLANK] {
            assert!(table.iter().all(|range| range.0 <= range.1));
            assert!(table.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
        let both = |c: &char| u8::from(is_hidden(*c)) + u8::from(is_blank(*c)) + u8::from(is_in(PRESENTATION, *c)) > 1;
        assert_eq!(('\0'..=char::MAX).find(both), None);
    }

    #[test]
    fn letters_signs_and_emoji_are_seen() {
        for c in "aZ09 \t\n~é漢🦀①·…\u{FFFD}\u{1F3FD}".chars() {
            assert!(!deceives(c), "{:X}", u32::from(c));
        }
    }

    #[test]
    fn a_class_holds_each_range_by_its_numbers() {
        assert_eq!(
            class(&[&[('a', 'c'), ('\u{E0000}', '\u{E0FFF}')], PRESENTATION]),
            r"\u{61}-\u{63}\u{E0000}-\u{E0FFF}\u{FE0E}-\u{FE0F}"
        );
    }
}
