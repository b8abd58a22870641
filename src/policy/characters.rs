//! Which characters a reader does not see, or sees as something that they are not.

/// Whether a character can steer a terminal or is not seen by a reader: control characters (C0 and
/// C1, but for tab and newline), what changes the direction of text, what has no width, tags.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{00}'..='\u{08}' | '\u{0B}'..='\u{1F}' | '\u{7F}'..='\u{9F}'
        | '\u{AD}' | '\u{61C}' | '\u{180E}'
        | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
        | '\u{115F}' | '\u{1160}' | '\u{3164}' | '\u{FFA0}'
        | '\u{E0000}'..='\u{E0FFF}')
}
