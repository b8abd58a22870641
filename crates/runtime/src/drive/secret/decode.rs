//! Decodes one layer of escapes in a text, and maps each byte to its place in the original.

/// The longest number of an entity, in digits. Longer ones only have leading zeros, or were written by nobody.
const DIGITS: usize = 10;

/// HTML's named entities for the characters that keys and passwords consist of.
const ENTITIES: &[(&[u8], u8)] = &[
    (b"amp", b'&'),
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"quot", b'"'),
    (b"apos", b'\''),
    (b"Tab", b'\t'),
    (b"NewLine", b'\n'),
    (b"excl", b'!'),
    (b"num", b'#'),
    (b"dollar", b'$'),
    (b"percnt", b'%'),
    (b"lpar", b'('),
    (b"rpar", b')'),
    (b"ast", b'*'),
    (b"midast", b'*'),
    (b"plus", b'+'),
    (b"comma", b','),
    (b"period", b'.'),
    (b"sol", b'/'),
    (b"colon", b':'),
    (b"semi", b';'),
    (b"equals", b'='),
    (b"quest", b'?'),
    (b"commat", b'@'),
    (b"lsqb", b'['),
    (b"lbrack", b'['),
    (b"bsol", b'\\'),
    (b"rsqb", b']'),
    (b"rbrack", b']'),
    (b"Hat", b'^'),
    (b"lowbar", b'_'),
    (b"UnderBar", b'_'),
    (b"grave", b'`'),
    (b"lcub", b'{'),
    (b"lbrace", b'{'),
    (b"verbar", b'|'),
    (b"vert", b'|'),
    (b"rcub", b'}'),
    (b"rbrace", b'}'),
];

/// A text after one layer of escapes is decoded.
pub struct DecodedView {
    pub bytes: Vec<u8>,
    /// Where each byte begins in the original, and where the original ends.
    starts: Vec<u32>,
}

impl DecodedView {
    /// The part of the original that some bytes came from, up to the end of the last escape.
    pub fn original(&self, start: usize, end: usize) -> (usize, usize) {
        let at = |index: usize| self.starts.get(index).or_else(|| self.starts.last()).copied().unwrap_or_default();
        let last = at(end.saturating_sub(1));
        let after = self.starts.get(end..).and_then(|rest| rest.iter().find(|start| **start > last));
        let wide = |place: u32| usize::try_from(place).unwrap_or(usize::MAX);
        (wide(at(start)), wide(after.or(self.starts.last()).copied().unwrap_or(last)))
    }
}

/// The bytes with each `%41`, `\u0041`, `\x41`, `\101`, `\n`, `\"`, `&#65;`, `&#x41;` and `&lt;` decoded; none
/// when there is no escape. `before` is the view that the bytes come from, unless they are the original. Linear
/// in the bytes.
pub fn decoded(bytes: &[u8], before: Option<&DecodedView>) -> Option<DecodedView> {
    let first = bytes.iter().position(|byte| begins(*byte))?;
    let place = |index: usize| match before {
        Some(view) => view.starts.get(index).copied().unwrap_or(u32::MAX),
        None => u32::try_from(index).unwrap_or(u32::MAX),
    };
    let mut view = DecodedView { bytes: Vec::with_capacity(bytes.len()), starts: Vec::with_capacity(bytes.len() + 1) };
    let mut changed = false;
    view.bytes.extend(bytes.iter().take(first));
    view.starts.extend((0..first).map(place));
    let mut at = first;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let step = match escape(rest) {
            Some(escape) => {
                changed = true;
                let text = escape.text.iter().take(escape.length);
                view.starts.extend(text.clone().map(|_| place(at)));
                view.bytes.extend(text);
                escape.taken
            }
            None => {
                view.starts.push(place(at));
                view.bytes.extend(rest.first());
                1
            }
        };
        at = at.saturating_add(step);
    }
    view.starts.push(place(bytes.len()));
    changed.then_some(view)
}

/// Whether an escape may begin with this byte.
pub fn begins(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// The decoded bytes of an escape, and its length.
struct EscapeSpelling {
    text: [u8; 4],
    length: usize,
    taken: usize,
}

impl EscapeSpelling {
    fn byte(byte: u8, taken: usize) -> Self {
        Self { text: [byte, 0, 0, 0], length: 1, taken }
    }

    fn sign(number: u32, taken: usize) -> Option<Self> {
        let mut text = [0; 4];
        let length = char::from_u32(number)?.encode_utf8(&mut text).len();
        Some(Self { text, length, taken })
    }
}

/// The escape that some bytes begin with.
fn escape(rest: &[u8]) -> Option<EscapeSpelling> {
    match rest {
        [b'%', b'u', ..] => utf16(rest),
        [b'%', a, b, ..] => Some(EscapeSpelling::byte(pair(*a, *b)?, 3)),
        [b'\\', b'u', b'{', inner @ ..] => {
            let length = inner.iter().take(7).position(|byte| *byte == b'}')?;
            EscapeSpelling::sign(number(inner.get(..length)?, 16)?, length.saturating_add(4))
        }
        [b'\\', b'u', ..] => utf16(rest),
        [b'\\', b'U', inner @ ..] => EscapeSpelling::sign(number(inner.get(..8)?, 16)?, 10),
        [b'\\', b'x', a, b, ..] => Some(EscapeSpelling::byte(pair(*a, *b)?, 4)),
        [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
            Some(EscapeSpelling::byte(u8::try_from(number(&[*a, *b, *c], 8)?).ok()?, 4))
        }
        // Cut at the end of a text.
        [b'\\', b'0'..=b'3', b'0'..=b'7'] => None,
        // A line continuation.
        [b'\\', b'\n', ..] => Some(EscapeSpelling { text: [0; 4], length: 0, taken: 2 }),
        // Encoders of HTML and URLs leave a backslash unchanged and put an escape after it.
        [b'\\', next @ (b'%' | b'&'), ..] => {
            let before_escape = rest.get(1..).and_then(escape).is_some();
            (!before_escape).then(|| EscapeSpelling::byte(*next, 2))
        }
        [b'\\', letter, ..] => Some(EscapeSpelling::byte(control(*letter)?, 2)),
        [b'&', b'#', b'x' | b'X', inner @ ..] => entity(inner, 16, 3),
        [b'&', b'#', inner @ ..] => entity(inner, 10, 2),
        [b'&', inner @ ..] => {
            let length = inner.iter().take(9).position(|byte| *byte == b';')?;
            let name = inner.get(..length)?;
            let (_, sign) = ENTITIES.iter().find(|(known, _)| *known == name)?;
            Some(EscapeSpelling::byte(*sign, length.saturating_add(2)))
        }
        _ => None,
    }
}

/// The meaning of a backslash before this character; a character that is no letter or digit means itself.
fn control(letter: u8) -> Option<u8> {
    Some(match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'v' => 11,
        b'0' => 0,
        sign if sign.is_ascii_punctuation() || sign == b' ' => sign,
        _ => return None,
    })
}

/// `\u0041` or `%u0041`, and two of them for a character above U+FFFF.
fn utf16(rest: &[u8]) -> Option<EscapeSpelling> {
    let at = |from: usize| unit(rest.get(from..from.checked_add(4)?)?.try_into().ok()?);
    let high = at(2)?;
    if !(0xD800..0xDC00).contains(&high) {
        return EscapeSpelling::sign(high, 6);
    }
    if rest.get(..2) != rest.get(6..8) {
        return None;
    }
    let low = at(8)?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
    EscapeSpelling::sign(0x1_0000_u32.checked_add(high.checked_sub(0xD800)?.checked_mul(0x400)?)?.checked_add(low)?, 12)
}

/// The number of `&#65;`, with or without its `;`. At the end of a text it may be cut, and is not decoded.
fn entity(inner: &[u8], base: u32, before: usize) -> Option<EscapeSpelling> {
    let length = inner.iter().take(DIGITS).take_while(|byte| char::from(**byte).is_digit(base)).count();
    let digits = inner.get(..length).filter(|digits| !digits.is_empty())?;
    let end = usize::from(inner.get(length)? == &b';');
    EscapeSpelling::sign(number(digits, base)?, before.saturating_add(length).saturating_add(end))
}

fn unit(digits: [u8; 4]) -> Option<u32> {
    number(&digits, 16)
}

fn pair(high: u8, low: u8) -> Option<u8> {
    u8::try_from(number(&[high, low], 16)?).ok()
}

fn number(digits: &[u8], base: u32) -> Option<u32> {
    digits.iter().try_fold(0_u32, |sum, byte| sum.checked_mul(base)?.checked_add(char::from(*byte).to_digit(base)?))
}
