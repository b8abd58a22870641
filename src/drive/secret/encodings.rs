//! The spellings that a secret may come back in.

use std::collections::BTreeSet;
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// Above this many bytes a secret is looked for in its common spellings only, so that a large key
/// does not cost hundreds of megabytes.
const LARGE: usize = 4096;

/// Every spelling of `secret` that is looked for: plain; escaped for JSON once and twice, in the
/// ways of the common libraries; percent-encoded once and twice; escaped for HTML; base64 of both
/// alphabets, wherever in the encoded bytes it begins; hexadecimal; and each of these inside of a
/// text of JSON.
pub fn spellings(secret: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([secret.to_owned()]);
    let large = secret.len() > LARGE;
    for style in STYLES.iter().take(if large { 1 } else { STYLES.len() }) {
        let once = json(secret, *style);
        all.insert(json(&once, *style));
        all.insert(once);
    }
    base64(secret.as_bytes(), &mut all);
    all.insert(hex(secret.as_bytes(), Digits::Lower));
    if large {
        return all;
    }
    all.insert(hex(secret.as_bytes(), Digits::Upper));
    all.insert(html(secret));
    for digits in [Digits::Lower, Digits::Upper] {
        for kept in ["-._~", "-._*", "-._~!'()*", "-._~!'()*;,/?:@&=+$#"] {
            let once = percent(secret, kept, digits);
            all.insert(once.replace("%20", "+"));
            all.insert(percent(&once, "-._~", digits));
            all.insert(once);
        }
    }
    // A model's reply is JSON itself: what it writes into one of its texts is escaped once more.
    let inside: Vec<String> =
        all.iter().flat_map(|spelling| STYLES.iter().map(|style| json(spelling, *style))).collect();
    all.extend(inside);
    all
}

#[derive(Clone, Copy)]
enum Digits {
    Lower,
    Upper,
}

/// What a JSON writer escapes beside what it must.
#[derive(Clone, Copy)]
struct Style {
    slash: bool,
    ascii: bool,
    html: bool,
    digits: Digits,
}

const STYLES: &[Style] = &[
    Style { slash: false, ascii: false, html: false, digits: Digits::Lower },
    Style { slash: false, ascii: true, html: false, digits: Digits::Lower },
    Style { slash: true, ascii: true, html: false, digits: Digits::Lower },
    Style { slash: true, ascii: false, html: false, digits: Digits::Lower },
    Style { slash: false, ascii: false, html: true, digits: Digits::Lower },
    Style { slash: false, ascii: true, html: true, digits: Digits::Upper },
];

fn json(text: &str, style: Style) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '/' if style.slash => out.push_str("\\/"),
            '<' | '>' | '&' | '\'' | '+' if style.html && (style.ascii || !matches!(c, '\'' | '+')) => {
                unicode(&mut out, c, style.digits);
            }
            c if u32::from(c) < 0x20 || (style.ascii && !c.is_ascii()) => unicode(&mut out, c, style.digits),
            c => out.push(c),
        }
    }
    out
}

fn unicode(out: &mut String, c: char, digits: Digits) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing to a String can't fail.
        let _ = match digits {
            Digits::Lower => write!(out, "\\u{unit:04x}"),
            Digits::Upper => write!(out, "\\u{unit:04X}"),
        };
    }
}

fn percent(text: &str, kept: &str, digits: Digits) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) {
            out.push(char::from(byte));
            continue;
        }
        let _ = match digits {
            Digits::Lower => write!(out, "%{byte:02x}"),
            Digits::Upper => write!(out, "%{byte:02X}"),
        };
    }
    out
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

fn hex(bytes: &[u8], digits: Digits) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = match digits {
            Digits::Lower => write!(out, "{byte:02x}"),
            Digits::Upper => write!(out, "{byte:02X}"),
        };
    }
    out
}

/// The whole encodings, and, for a secret that stands inside of a longer encoded text, the
/// characters that depend on nothing but the secret, for each of the three places in a group of
/// bytes at which it may begin.
fn base64(bytes: &[u8], all: &mut BTreeSet<String>) {
    all.insert(STANDARD.encode(bytes));
    all.insert(STANDARD_NO_PAD.encode(bytes));
    all.insert(URL_SAFE.encode(bytes));
    all.insert(URL_SAFE_NO_PAD.encode(bytes));
    for before in 0..3_usize {
        let mut shifted = vec![0; before];
        shifted.extend_from_slice(bytes);
        // Characters that bytes before the secret have a part in, and those wholly known.
        let first = (before * 8).div_ceil(6);
        let end = shifted.len() * 8 / 6;
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            if let Some(inner) = engine.encode(&shifted).get(first..end) {
                all.insert(inner.to_owned());
            }
        }
    }
}
