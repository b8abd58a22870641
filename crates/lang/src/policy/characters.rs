//! Characters that a reader does not see, or mistakes for others. This is the only table of them: the output
//! for terminals, logs, reports and pages escapes by it, and so do the messages of `check`.

#[cfg(test)]
mod tests;

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
    lies_in(HIDDEN, c)
}

/// Whether a character only looks like a space.
pub fn is_blank(c: char) -> bool {
    lies_in(BLANK, c)
}

/// Whether a character can deceive a reader who must know each character: it is hidden, only looks like a
/// space, or only changes how the character before it looks. It is shown by its number where a human approves a
/// call, and where a message repeats a name.
pub fn deceives(c: char) -> bool {
    is_hidden(c) || is_blank(c) || lies_in(PRESENTATION, c)
}

fn lies_in(table: &[Range], c: char) -> bool {
    let at = table.partition_point(|range| range.1 < c);
    table.get(at).is_some_and(|range| range.0 <= c)
}

/// The content of a character class of a JavaScript regular expression, with the flag `u`.
pub fn class(tables: &[&[Range]]) -> String {
    let sign = |c: char| format!("\\u{{{:X}}}", u32::from(c));
    tables.iter().flat_map(|table| table.iter()).map(|range| format!("{}-{}", sign(range.0), sign(range.1))).collect()
}
