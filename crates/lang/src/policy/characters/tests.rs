//! Compares the tables with Unicode's own properties, character by character.

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
        let unseen = ignorable.contains(c) || bidi.contains(c) || control || lies_in(BEYOND, c);
        let blank = (white.contains(c) && !c.is_ascii() && !unseen) || c == '\u{2800}';
        assert_eq!(is_hidden(c) || lies_in(PRESENTATION, c), unseen, "{:X}", u32::from(c));
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
    let both = |c: &char| u8::from(is_hidden(*c)) + u8::from(is_blank(*c)) + u8::from(lies_in(PRESENTATION, *c)) > 1;
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
