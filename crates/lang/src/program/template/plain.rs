//! Templates with nothing but names in their tags, which most are: they need no parser, because their tags are
//! found already and the text between them stays as written.

use super::tag::{TagKind, TemplateTag};

/// Words that Handlebars does not read as a name, alone or as the first part of a name.
const ODD: [&str; 6] = ["else", "true", "false", "null", "undefined", "this"];
/// Names that Handlebars reserves for its helpers.
const HELPERS: [&str; 9] = ["if", "unless", "each", "with", "lookup", "log", "raw", "as", "inline"];

/// Whether every tag is `{{name}}` or `{{a.b.c}}`, of ASCII letters, digits and `_`.
pub(super) fn is_plain(text: &str, tags: &[TemplateTag]) -> bool {
    // A backslash may escape the braces after it.
    !text.contains('\\') && tags.iter().all(|tag| is_plain_tag(text, tag))
}

fn is_plain_tag(text: &str, tag: &TemplateTag) -> bool {
    let ([word], TagKind::Print) = (tag.words.as_slice(), tag.kind) else { return false };
    let blank = |text: &str| text.bytes().all(|byte| byte == b' ');
    text.get(tag.range.start..word.start).and_then(|text| text.strip_prefix("{{")).is_some_and(blank)
        && text.get(word.end..tag.range.end).and_then(|text| text.strip_suffix("}}")).is_some_and(blank)
        // Only the parser knows whether a brace next to the tag belongs to it.
        && !text.get(..tag.range.start).is_some_and(|before| before.ends_with('{'))
        && !text.get(tag.range.end..).is_some_and(|after| after.starts_with('}'))
        && text.get(word.clone()).is_some_and(is_plain_path)
}

fn is_plain_path(path: &str) -> bool {
    let plain = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !ODD.iter().any(|odd| segment.starts_with(odd))
            && !HELPERS.contains(&segment)
    };
    path.split('.').all(plain)
}
