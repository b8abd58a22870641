//! Paths as they are written: `@a.b`, and `doc:NAME` for a file of the project.

use crate::program::file_value;

/// The path in a whole string: `@` and names separated by dots. The first one begins with a letter or `_`; the
/// others may be indexes. A file of the project is written without `@`: `doc:NAME` and the names below it.
pub fn as_path(text: &str) -> Option<Vec<String>> {
    if let Some(name) = file_value::named(text) {
        let is_path = name.split('.').all(file_value::is_name);
        return is_path.then(|| text.split('.').map(str::to_owned).collect());
    }
    let path = text.strip_prefix('@')?;
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let begins = path.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let named = |segment: &str| !segment.is_empty() && segment.chars().all(is_part);
    (begins && path.split('.').all(named)).then(|| path.split('.').map(str::to_owned).collect())
}

/// The path in a whole string that ends in `?`, and has two names or more: what it names may be missing.
pub fn as_optional_path(text: &str) -> Option<Vec<String>> {
    as_path(text.strip_suffix('?')?).filter(|path| path.len() > 1)
}

/// The path in a whole string, with a `?` at its end or without.
pub fn as_any_path(text: &str) -> Option<Vec<String>> {
    as_path(text).or_else(|| as_optional_path(text))
}

/// A path without its `@` in the syntax of other languages, as it is written here: `items[0].id` is `items.0.id`.
pub fn spelled_path(text: &str) -> Option<String> {
    let plain = text.replace(['"', '\'', ']'], "").replace('[', ".");
    as_path(&format!("@{plain}")).map(|_| plain)
}

/// The bytes of a path in its string: without the `@` in front of it, which the name of a document does not have.
pub(super) fn written_range(path: &[String]) -> std::ops::Range<usize> {
    let begin = usize::from(path.first().is_none_or(|first| file_value::named(first).is_none()));
    let length: usize = path.iter().map(|segment| segment.len() + 1).sum();
    begin..(begin + length).saturating_sub(1)
}
