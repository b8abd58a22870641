//! Quoted text: in `"…"`, `'…'` or `“…”`, up to the first quote that closes it.

use super::fault::{RelaxedFault, RelaxedFaultKind};

/// A quoted text and the byte behind its closing quote; none when no quote opens here.
///
/// # Errors
/// When it has no end, or holds what a text may not hold.
pub fn string(text: &str, at: usize) -> Result<Option<(String, usize)>, RelaxedFault> {
    let Some(open) = text.get(at..).and_then(|rest| rest.chars().next()) else { return Ok(None) };
    let close = match open {
        '"' | '\'' => open,
        '“' => '”',
        _ => return Ok(None),
    };
    let start = at.saturating_add(open.len_utf8());
    let mut scan = StringScanner { text, at: start };
    let mut out = String::new();
    loop {
        let piece = scan.at;
        let stop = scan.next_special(open, close);
        let plain = text.get(piece..scan.at).unwrap_or_default();
        match stop {
            None => return Err(RelaxedFault { kind: RelaxedFaultKind::OpenString, at }),
            Some(stop) if stop == close => {
                let end = scan.at.saturating_add(close.len_utf8());
                if out.is_empty() {
                    return Ok(Some((plain.to_owned(), end)));
                }
                out.push_str(plain);
                return Ok(Some((out, end)));
            }
            Some('\\') => {
                out.push_str(plain);
                out.push(scan.escape(at)?);
            }
            Some(stop @ ('\n' | '\r' | '\t')) => {
                out.push_str(plain);
                out.push(stop);
                scan.at = scan.at.saturating_add(1);
            }
            // A second “ inside “…”: the end of the text is ambiguous.
            Some(stop) if stop == open => return Err(RelaxedFault { kind: RelaxedFaultKind::Separator, at: scan.at }),
            Some(_) => return Err(RelaxedFault { kind: RelaxedFaultKind::Control, at: scan.at }),
        }
    }
}

/// A walk through a quoted text.
struct StringScanner<'a> {
    text: &'a str,
    at: usize,
}

impl StringScanner<'_> {
    /// Moves to the next character that is not plain, and returns it.
    fn next_special(&mut self, open: char, close: char) -> Option<char> {
        let rest = self.text.get(self.at..)?;
        let found = if close.is_ascii() {
            rest.bytes()
                .position(|byte| byte == b'\\' || byte < 0x20 || char::from(byte) == close)
                .and_then(|index| rest.as_bytes().get(index).map(|byte| (index, char::from(*byte))))
        } else {
            rest.char_indices().find(|(_, c)| *c == close || *c == open || *c == '\\' || u32::from(*c) < 0x20)
        };
        let (index, stop) = found?;
        self.at = self.at.saturating_add(index);
        Some(stop)
    }

    /// Reads the escape that begins with this `\`. `begin` is the start of the text.
    fn escape(&mut self, begin: usize) -> Result<char, RelaxedFault> {
        let here = self.at;
        let fault = |kind| RelaxedFault { kind, at: here };
        let code = self.text.as_bytes().get(here.saturating_add(1)).copied();
        self.at = here.saturating_add(2);
        let plain = match code {
            None => return Err(RelaxedFault { kind: RelaxedFaultKind::OpenString, at: begin }),
            Some(byte @ (b'"' | b'\'' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.hex().ok_or_else(|| fault(RelaxedFaultKind::Escape))?;
                return self.unicode(high).ok_or_else(|| fault(RelaxedFaultKind::Surrogate));
            }
            Some(_) => return Err(fault(RelaxedFaultKind::Escape)),
        };
        Ok(plain)
    }

    /// The character of a `\u` escape, with the second half of a pair when there must be one.
    fn unicode(&mut self, high: u32) -> Option<char> {
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high);
        }
        let rest = self.text.get(self.at..)?;
        rest.starts_with("\\u").then_some(())?;
        self.at = self.at.saturating_add(2);
        let low = self.hex().filter(|low| (0xdc00..0xe000).contains(low))?;
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
    }

    fn hex(&mut self) -> Option<u32> {
        let end = self.at.saturating_add(4);
        let digits = self.text.get(self.at..end)?;
        // `from_str_radix` would take a sign.
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
        self.at = end;
        u32::from_str_radix(digits, 16).ok()
    }
}
