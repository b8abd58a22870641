//! The characters that a text may have when a pattern lets it through.

use std::collections::BTreeSet;

use super::TextPattern;

/// The characters of the texts that a pattern matches from end to end.
#[derive(Debug)]
pub(crate) struct Alphabet(TextPattern);

/// The last part of an alternative of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastPart {
    /// Nothing yet.
    Nothing,
    /// `^` outside of groups.
    Start,
    /// `$` outside of groups.
    End,
    /// `^` or `$` in a group.
    Inner,
    Other,
}

impl Alphabet {
    /// None when the pattern does not bound the whole text, for a pattern is searched: each alternative has to be from
    /// `^` to `$`. None too for what is not read here: look-around, references back, flags, and names of groups.
    pub(crate) fn of(pattern: &str) -> Option<Self> {
        let (mut atoms, mut depth, mut last) = (BTreeSet::new(), 0_usize, LastPart::Nothing);
        let mut rest = pattern;
        while let Some(c) = rest.chars().next() {
            let length = length(rest, c)?;
            let (token, after) = rest.split_at_checked(length)?;
            rest = after;
            // Only an anchor may be first. A repeated one may be missing.
            let is_first = depth == 0 && last == LastPart::Nothing;
            let is_anchor = !matches!(last, LastPart::Nothing | LastPart::Other);
            let is_wrong = match c {
                '*' | '+' | '?' | '{' => is_anchor,
                '^' => false,
                _ => is_first,
            };
            if is_wrong {
                return None;
            }
            last = match c {
                '^' if is_first => LastPart::Start,
                '$' if depth == 0 => LastPart::End,
                '^' | '$' => LastPart::Inner,
                '|' if depth == 0 && last == LastPart::End => LastPart::Nothing,
                '|' if depth == 0 => return None,
                _ => LastPart::Other,
            };
            match c {
                '(' => depth += 1,
                ')' => depth = depth.checked_sub(1)?,
                '*' | '+' | '?' | '{' | '^' | '$' | '|' => {}
                _ => {
                    atoms.insert(token);
                }
            }
        }
        if last != LastPart::End || depth != 0 {
            return None;
        }
        let atoms = atoms.into_iter().collect::<Vec<_>>().join("|");
        TextPattern::read(&format!("^(?:{atoms})$")).map(Self)
    }

    /// Whether a text may have a character; true when that can't be known.
    pub(crate) fn has(&self, c: char) -> bool {
        self.0.is_in(c.encode_utf8(&mut [0; 4])) != Some(false)
    }
}

/// The bytes of the part of a pattern that begins with a character; none for what is not read here.
fn length(rest: &str, c: char) -> Option<usize> {
    match c {
        '\\' => escape(rest),
        '[' => class(rest),
        '(' if rest.starts_with("(?:") => Some(3),
        '(' if rest.starts_with("(?") => None,
        '{' => {
            let (count, _) = rest.get(1..)?.split_once('}')?;
            let is_count = count.starts_with(|c: char| c.is_ascii_digit())
                && count.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
            is_count.then_some(count.len() + 2)
        }
        '}' | ']' => None,
        _ => Some(c.len_utf8()),
    }
}

/// The bytes of an escape that is one character of a text.
fn escape(rest: &str) -> Option<usize> {
    let escaped = rest.chars().nth(1)?;
    let hex = |digits: usize| {
        let written = rest.get(2..2 + digits)?;
        written.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(2 + digits)
    };
    match escaped {
        'd' | 'D' | 'w' | 'W' | 's' | 'S' | 't' | 'n' | 'r' | 'f' | 'v' => Some(2),
        'x' => hex(2),
        'u' => hex(4),
        'p' | 'P' if rest.get(2..)?.starts_with('{') => Some(rest.find('}')? + 1),
        c if c.is_ascii_punctuation() => Some(2),
        _ => None,
    }
}

/// The bytes of a class; none when a class is in it, or nothing.
fn class(rest: &str) -> Option<usize> {
    let inner = rest.get(1..)?;
    let inner = inner.strip_prefix('^').unwrap_or(inner);
    let mut at = rest.len() - inner.len();
    if inner.starts_with(']') {
        return None;
    }
    loop {
        let part = rest.get(at..)?;
        at += match part.chars().next()? {
            ']' => return Some(at + 1),
            '[' => return None,
            '\\' => escape(part)?,
            c => c.len_utf8(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::Alphabet;

    /// Whether a text that the pattern lets through may have one of the signs.
    fn lets_through(pattern: &str, signs: &str) -> bool {
        Alphabet::of(pattern).is_none_or(|alphabet| signs.chars().any(|sign| alphabet.has(sign)))
    }

    #[test]
    fn a_pattern_from_end_to_end_without_the_signs_lets_none_through() {
        for pattern in [
            "^[a-z]+$",
            "^[^<>&]*$",
            "^[A-Za-z ]*$",
            "^\\d{4}-\\d{2}-\\d{2}$",
            "^(?:de|at)-[0-9]{1,5}$",
            "^(de|at)$",
            "^de$|^at$",
            "^\\w+(\\.\\w+)*?$",
            "^\\p{L}+$",
            "^\\u0041\\x42\\$$",
            "^[\\w\\]\\-]+$",
            "^[äöü]*$",
        ] {
            assert!(!lets_through(pattern, "<&"), "{pattern}");
        }
        assert!(!lets_through("^[0-9;]+$", ",\"\r\n"));
    }

    #[test]
    fn any_other_pattern_may_let_one_through() {
        for pattern in [
            "",
            "^",
            "$",
            "^$|",
            "[a-z]+",
            "^[a-z]+",
            "[a-z]+$",
            "^[a-z]+\\$",
            "\\^[a-z]+$",
            "^[a-z]+$|x",
            "x|^[a-z]+$",
            "^a|b$",
            "^*[a-z]+$",
            "^?[a-z]+$",
            "^[a-z]+$?",
            "^[a-z]+${0,1}",
            "(^)?[a-z]+$",
            "^[a-z]+($)?",
            "^.*$",
            "^[^>]*$",
            "^\\S+$",
            "^\\W$",
            "^\\D$",
            "^[\\s\\S]*$",
            "^[ -~]+$",
            "^\\P{L}+$",
            "^[a-z&]+$",
            "^a\\x3cb$",
            "^a\\u003cb$",
            "^(a|<b)$",
            "^a<$",
            "^[]<]$",
            "^[^]*$",
            "^[[a]<]$",
            "^(?=[a-z]).*$",
            "^(?i)<$",
            "^(.)\\1$",
            "^a{b$",
        ] {
            assert!(lets_through(pattern, "<&"), "{pattern}");
        }
        assert!(lets_through("^\\s*$", ",\"\r\n"));
        assert!(lets_through("^a{,3}$", ","));
    }
}
