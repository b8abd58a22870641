//! The text of bytes in the charset that a content type names, or the text itself where it is XML or HTML.

use super::output::media_type;

/// The charsets that are read, for messages.
pub(super) const READ: &str = "utf-8, iso-8859-1, windows-1252 and utf-16";

/// In how many bytes at its begin a text of XML or HTML names its charset.
const DECLARED_IN_BYTES: usize = 1_024;

/// What windows-1252 has in place of the control characters from 0x80 to 0x9F. What it leaves open stays a control character.
const WINDOWS_1252: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2c6}', '\u{2030}',
    '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}', '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}',
    '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}',
    '\u{17e}', '\u{178}',
];

/// Why bytes have no text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoText {
    /// They are no text.
    Binary,
    /// They are no text in this charset, which the content type names or they name.
    Invalid(String),
    /// The content type names this charset, or they do, and it is not read.
    Charset(String),
}

/// How the units of two bytes are written.
#[derive(Clone, Copy)]
enum ByteOrder {
    Little,
    Big,
}

/// The text of bytes. What is UTF-8 is read as such: servers name other charsets for it.
///
/// # Errors
/// When they are no text, or in a charset that is not read.
pub(super) fn decode(bytes: &[u8], content_type: Option<&str>) -> Result<String, NoText> {
    let named = content_type.and_then(charset).or_else(|| declared(bytes, content_type));
    let order = match (named.as_deref(), bytes) {
        // It begins as UTF-16 does.
        (Some("utf-32" | "utf-32le" | "utf-32be"), _) => None,
        (_, [0xff, 0xfe, ..]) => Some(ByteOrder::Little),
        (_, [0xfe, 0xff, ..]) | (Some("utf-16" | "utf-16be"), _) => Some(ByteOrder::Big),
        (Some("utf-16le" | "unicode" | "ucs-2"), _) => Some(ByteOrder::Little),
        // XML that says nothing before it says which charset it has.
        (None, [b'<', 0, b'?', 0, ..]) => Some(ByteOrder::Little),
        (None, [0, b'<', 0, b'?', ..]) => Some(ByteOrder::Big),
        _ => None,
    };
    if let Some(order) = order {
        let text = utf_16(bytes, order).filter(|text| !text.contains('\0'));
        return text.ok_or_else(|| named.map_or(NoText::Binary, NoText::Invalid));
    }
    let marks = named.as_deref().map_or(&[][..], marks);
    let is_shifted = bytes.is_ascii() && bytes.iter().any(|byte| marks.contains(byte));
    if let Some(text) = str::from_utf8(bytes).ok().filter(|text| !text.contains('\0') && !is_shifted) {
        return Ok(text.to_owned());
    }
    match named.as_deref() {
        // As browsers read these names.
        Some(
            "iso-8859-1" | "iso8859-1" | "iso_8859-1" | "latin1" | "l1" | "windows-1252" | "cp1252" | "us-ascii"
            | "ascii",
        ) if !bytes.contains(&0) => Ok(bytes.iter().map(|byte| windows_1252(*byte)).collect()),
        None => Err(NoText::Binary),
        Some(wide) if wide.starts_with("utf-32") => Err(NoText::Charset(wide.to_owned())),
        Some(_) if bytes.contains(&0) => Err(NoText::Binary),
        Some(named @ ("utf-8" | "utf8")) => Err(NoText::Invalid(named.to_owned())),
        Some(named) => Err(NoText::Charset(named.to_owned())),
    }
}

/// The bytes of ASCII after which a charset writes other characters with bytes of ASCII.
fn marks(named: &str) -> &'static [u8] {
    let name = named.replace(['-', '_'], "");
    match name.strip_prefix("cs").or_else(|| name.strip_prefix('x')).unwrap_or(&name) {
        name if name.starts_with("iso2022") || name == "jisencoding" => b"\x1b\x0e\x0f",
        name if name.contains("utf7imap") => b"&",
        name if name.contains("utf7") => b"+",
        name if name == "hz" || name.starts_with("hzgb") => b"~",
        _ => &[],
    }
}

/// The charset that a content type names, in lower case.
fn charset(content_type: &str) -> Option<String> {
    let named = |part: &str| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    };
    plain_name(content_type.split(';').skip(1).find_map(named)?.as_str())
}

/// The name of a charset in lower case, without anything that a server could use for tricks.
fn plain_name(written: &str) -> Option<String> {
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let name: String = written.chars().filter(plain).take(40).collect();
    Some(name.to_ascii_lowercase()).filter(|name| !name.is_empty())
}

/// Whether a media type is one of XML or HTML, whose texts name their charset.
pub(super) fn is_markup(kind: &str) -> bool {
    matches!(kind, "text/html" | "text/xml" | "application/xml") || kind.ends_with("+xml")
}

/// The charset that a text of XML or HTML names in its first bytes: in the declaration of XML, or in a `meta` of HTML. A text
/// without a type may be XML.
fn declared(bytes: &[u8], content_type: Option<&str>) -> Option<String> {
    let kind = content_type.map(media_type);
    let head = bytes.get(..bytes.len().min(DECLARED_IN_BYTES)).unwrap_or_default();
    let head: String = head.iter().map(|byte| char::from(*byte).to_ascii_lowercase()).collect();
    let of_xml = || {
        let inner = head.trim_start().strip_prefix("<?xml")?.split_once("?>")?.0;
        attribute(inner, "encoding", &['"', '\''])
    };
    let of_meta = || {
        let no_comments = head.split("<!--").enumerate().map(|(number, part)| match number {
            0 => part,
            _ => part.split_once("-->").map_or("", |(_, behind)| behind),
        });
        let shown: String = no_comments.collect();
        of_meta_tags(&shown)
    };
    let name = match kind.as_deref() {
        None => of_xml(),
        Some("text/html") => of_xml().or_else(of_meta),
        Some(kind) if is_markup(kind) => of_xml().or_else(|| of_meta().filter(|_| kind.contains("xhtml"))),
        Some(_) => None,
    };
    let name = name.and_then(|name| plain_name(&name))?;
    // Read byte by byte, it can't be in units of two or four.
    Some(if name.starts_with("utf-16") || name.starts_with("utf-32") { "utf-8".to_owned() } else { name })
}

/// The charset that a `meta` names, as browsers look for it: by its attribute `charset`, or in its `content` where it takes the place
/// of the header `content-type`. What attributes of other tags hold is no tag.
fn of_meta_tags(html: &str) -> Option<String> {
    let ends = ['"', '\'', ';', '/', '>', ' ', '\t', '\r', '\n'];
    let mut rest = html;
    while let Some((_, behind)) = rest.split_once('<') {
        rest = behind;
        let inner = behind.strip_prefix('/').unwrap_or(behind);
        if !inner.starts_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        let (tag, mut inner) =
            inner.split_at(inner.find(|c| is_blank(c) || matches!(c, '>' | '/')).unwrap_or(inner.len()));
        let (mut own, mut content, mut is_header) = (None, None, false);
        while let Some(TagAttribute { name, value, behind }) = TagAttribute::next(inner) {
            match name {
                "charset" => own = own.or(Some(value)),
                "content" => content = content.or(Some(value)),
                "http-equiv" => is_header |= value.trim() == "content-type",
                _ => {}
            }
            inner = behind;
        }
        let of_content = || attribute(content.filter(|_| is_header)?, "charset", &ends);
        let named = own.map(|own| own.trim().to_owned()).or_else(of_content);
        if tag == "meta" && !behind.starts_with('/') && named.is_some() {
            return named;
        }
        rest = inner;
    }
    None
}

/// An attribute of a tag of HTML.
struct TagAttribute<'t> {
    name: &'t str,
    value: &'t str,
    /// The rest of the text.
    behind: &'t str,
}

impl<'t> TagAttribute<'t> {
    /// The first one of a tag without its name; none at the end of the tag.
    fn next(tag: &'t str) -> Option<Self> {
        let tag = tag.trim_start_matches(|c| is_blank(c) || c == '/');
        if tag.is_empty() || tag.starts_with('>') {
            return None;
        }
        let first = tag.chars().next().map_or(0, char::len_utf8);
        let end = |c: char| is_blank(c) || matches!(c, '=' | '>' | '/');
        let at = tag.get(first..)?.find(end).map_or(tag.len(), |at| at.saturating_add(first));
        let (name, behind) = tag.split_at(at);
        let Some(value) = behind.trim_start_matches(is_blank).strip_prefix('=') else {
            return Some(Self { name, value: "", behind });
        };
        let value = value.trim_start_matches(is_blank);
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, behind) = match quote {
            Some(quote) => value.get(1..)?.split_once(quote).unwrap_or((value, "")),
            None => value.split_at(value.find(|c| is_blank(c) || c == '>').unwrap_or(value.len())),
        };
        Some(Self { name, value, behind })
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '\u{c}')
}

/// The value of an attribute in the text of a tag, up to one of `ends`.
fn attribute(tag: &str, name: &str, ends: &[char]) -> Option<String> {
    let behind = tag.split_once(name)?.1.trim_start().strip_prefix('=')?.trim_start();
    let value = behind.strip_prefix(['"', '\'']).unwrap_or(behind);
    Some(value.split(ends).next().unwrap_or_default().trim().to_owned())
}

fn windows_1252(byte: u8) -> char {
    let special = usize::from(byte).checked_sub(0x80).and_then(|at| WINDOWS_1252.get(at));
    special.copied().unwrap_or(char::from(byte))
}

/// The text of units of two bytes, without a mark of their order.
fn utf_16(bytes: &[u8], order: ByteOrder) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let unit = |pair: &[u8; 2]| match order {
        ByteOrder::Little => u16::from_le_bytes(*pair),
        ByteOrder::Big => u16::from_be_bytes(*pair),
    };
    let text = char::decode_utf16(pairs.iter().map(unit)).collect::<Result<String, _>>().ok()?;
    rest.is_empty().then(|| text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_and_html_are_read_in_the_charset_that_they_name() {
        const PROLOG: &str = "<?xml version=\"1.0\" encoding='ISO-8859-1'?>";
        let meta = |meta: &str| format!("<!doctype html><!-- <meta charset=utf-7> --><META {meta}><title>");
        let of = |head: &str, rest: &[u8], content_type: Option<&str>| {
            decode(&[head.as_bytes(), rest].concat(), content_type).map(|text| text.replace(head, ""))
        };
        let latin = |head: &str, content_type: Option<&str>| of(head, b"Z\xfcrich \x80", content_type);
        for content_type in
            [Some("application/xml"), Some("text/xml"), Some("image/svg+xml; q=1"), Some("text/html"), None]
        {
            assert_eq!(latin(PROLOG, content_type).as_deref(), Ok("Z\u{fc}rich \u{20ac}"), "{content_type:?}");
        }
        for named in [
            "charset=\"windows-1252\"",
            "charset = latin1 /",
            "http-equiv='Content-Type' content='text/html; charset=iso-8859-1'",
            "name=viewport><meta CharSet=cp1252",
            // What another tag, or another attribute, says of charsets names none.
            "name=description content=\"why charset=koi8-r is old\"><meta charset=latin1",
            "name=x><body data-x=\"<meta charset=koi8-r>\"><meta data-charset=koi8-r charset=latin1",
            "content='text/html; charset=latin1' http-equiv=content-type",
        ] {
            for content_type in ["text/html", "application/xhtml+xml"] {
                let text = latin(&meta(named), Some(content_type));
                assert_eq!(text.as_deref(), Ok("Z\u{fc}rich \u{20ac}"), "{named} {content_type}");
            }
        }
        // The type of the answer says it first, and what is UTF-8 is UTF-8.
        assert_eq!(latin(PROLOG, Some("text/xml; charset=utf-8")), Err(NoText::Invalid("utf-8".to_owned())));
        assert_eq!(of(PROLOG, "\u{fc}".as_bytes(), Some("text/xml")).as_deref(), Ok("\u{fc}"));
        let wide = PROLOG.replace("ISO-8859-1", "UTF-16");
        assert_eq!(of(&wide, "\u{fc}".as_bytes(), Some("text/xml")).as_deref(), Ok("\u{fc}"));
        assert_eq!(latin(&wide, Some("text/xml")), Err(NoText::Invalid("utf-8".to_owned())));
        let koi = meta("charset=koi8-r");
        assert_eq!(latin(&koi, Some("text/html")), Err(NoText::Charset("koi8-r".to_owned())));
        // Elsewhere, later, in a comment, and in types of other texts nothing names a charset.
        for (head, content_type) in [
            (PROLOG, "text/plain"),
            (PROLOG, "application/json"),
            (meta("charset=latin1").as_str(), "text/csv"),
            (meta("charset=latin1").as_str(), "application/xml"),
            (meta("name=x").as_str(), "text/html"),
            (meta("name=x content=\"charset=latin1\"").as_str(), "text/html"),
            (format!("{}{}", " ".repeat(1_024), meta("charset=latin1")).as_str(), "text/html"),
        ] {
            assert_eq!(latin(head, Some(content_type)), Err(NoText::Binary), "{head} {content_type}");
        }
    }

    #[test]
    fn a_text_is_read_in_the_charset_that_the_content_type_names() {
        for (bytes, content_type, text) in [
            (&b"Z\xfcrich"[..], Some("text/plain; charset=iso-8859-1"), "Z\u{fc}rich"),
            (b"\x80 5 \x96 \xe9", Some("text/plain;Charset=\"Windows-1252\""), "\u{20ac} 5 \u{2013} \u{e9}"),
            (b"Z\xc3\xbcrich", Some("text/plain; charset=latin1"), "Z\u{fc}rich"),
            (b"Z\xc3\xbcrich", None, "Z\u{fc}rich"),
            (b"plain", Some("text/plain; charset=shift_jis"), "plain"),
            (b"plain", Some("text/plain; charset=iso-2022-jp"), "plain"),
            (b"Z\xc3\xbcrich + ~", Some("text/plain; charset=utf-7"), "Z\u{fc}rich + ~"),
            (b"1 + 1", Some("text/plain; charset=us-ascii"), "1 + 1"),
            (b"\xff\xfeZ\0\xfc\0", None, "Z\u{fc}"),
            (b"\0Z\0\xfc", Some("text/plain; charset=UTF-16"), "Z\u{fc}"),
            (b"Z\0\xfc\0", Some("application/json; charset=utf-16le"), "Z\u{fc}"),
            (b"<\0?\0\xfc\0", Some("text/xml"), "<?\u{fc}"),
            (b"\0<\0?\0\xfc", Some("application/atom+xml"), "<?\u{fc}"),
        ] {
            assert_eq!(decode(bytes, content_type).as_deref(), Ok(text), "{content_type:?}");
        }
        for (bytes, content_type, why) in [
            (&b"Z\xfcrich"[..], None, NoText::Binary),
            (b"Z\xfcrich", Some("text/plain; charset=utf-8"), NoText::Invalid("utf-8".to_owned())),
            (b"Z\0\xfc", Some("text/plain; charset=utf-16le"), NoText::Invalid("utf-16le".to_owned())),
            (b"\xff\xfe\0\0Z\0\0\0", Some("text/plain; charset=utf-32"), NoText::Charset("utf-32".to_owned())),
            (b"\x89PNG\0\xff", Some("image/png; charset=utf-8"), NoText::Binary),
            (b"\x83\x65\x83", Some("text/plain; charset=Shift_JIS"), NoText::Charset("shift_jis".to_owned())),
            (b"\x1b$B%F\x1b(B", Some("text/plain; charset=ISO-2022-JP"), NoText::Charset("iso-2022-jp".to_owned())),
            (b"\x1b$)C\x0eZ\x0f", Some("text/plain; charset=csISO2022KR"), NoText::Charset("csiso2022kr".to_owned())),
            (b"Z+APw-rich", Some("application/json; charset=utf-7"), NoText::Charset("utf-7".to_owned())),
            (b"~{<:Ky~}", Some("text/plain; charset=hz-gb-2312"), NoText::Charset("hz-gb-2312".to_owned())),
            (b"\x1b\0", Some("text/plain; charset=iso-2022-jp"), NoText::Binary),
            (b"\x89PNG\0\xff", Some("image/png; charset=latin1"), NoText::Binary),
            (b"\xff\xfeZ", None, NoText::Binary),
            (b"\xff\xfe\x00\xd8", None, NoText::Binary),
        ] {
            assert_eq!(decode(bytes, content_type), Err(why), "{content_type:?}");
        }
    }
}
