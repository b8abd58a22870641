//! Names of tools, actions and loops: which are allowed, so that no name can be mistaken for another; and names
//! of files.

use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript};

use crate::diagnostic::{Diagnostic, Place, codes};

/// The longest name, in characters.
const MAX_NAME_CHARACTERS: usize = 64;

/// Scripts that one language uses together.
const TOGETHER: [&[Script]; 3] = [
    &[Script::Han, Script::Hiragana, Script::Katakana],
    &[Script::Han, Script::Hangul],
    &[Script::Han, Script::Bopomofo],
];

/// The fault of a name, with an allowed name as suggestion.
pub(super) fn bad_name(name: &str, fault: String, at: &str, place: Place) -> Diagnostic {
    let fault = Diagnostic::error(codes::BAD_NAME, fault, at, place);
    match allowed(name) {
        Some(allowed) => fault.help(format!("`{allowed}` would do")),
        None => fault,
    }
}

/// An allowed name that is close to this one: each character that is not allowed becomes `_`. None if that does
/// not help.
pub fn allowed(name: &str) -> Option<String> {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/') { c } else { '_' };
    let plain: String = name.nfkc().map(plain).collect();
    let plain = plain.trim_matches('_');
    (plain != name && fault_of(plain).is_none()).then(|| plain.to_owned())
}

/// Why a name is not allowed, in a sentence about it; none when it is. Names have 1 to 64 letters, digits, `_`,
/// `-`, `.` and `/`, of one script, in Unicode's form NFKC: names that look alike within a script are then
/// equal.
pub fn fault_of(name: &str) -> Option<String> {
    let length = name.chars().count();
    if length == 0 {
        return Some("a name must not be empty".to_owned());
    }
    if length > MAX_NAME_CHARACTERS {
        return Some(format!("a name has at most {MAX_NAME_CHARACTERS} characters; this one has {length}"));
    }
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if let Some(odd) = name.chars().find(|c| !allowed(*c)) {
        let shown = match odd {
            ' ' => "a space".to_owned(),
            odd if odd.is_ascii_graphic() => format!("`{odd}`"),
            odd => format!("U+{:04X}", u32::from(odd)),
        };
        return Some(format!("a name has letters, digits, `_`, `-`, `.` and `/`; this one has {shown}"));
    }
    if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Some("a name is no path: no part between its `/` is empty, `.` or `..`".to_owned());
    }
    if name.is_ascii() {
        return None;
    }
    if !name.nfkc().eq(name.chars()) {
        let plain: String = name.nfkc().collect();
        return Some(format!("this name is not in Unicode's form NFKC; it is written `{plain}`"));
    }
    let mut scripts: Vec<Script> = Vec::new();
    for script in name.chars().map(|c| c.script()) {
        if !matches!(script, Script::Common | Script::Inherited) && !scripts.contains(&script) {
            scripts.push(script);
        }
    }
    let together = scripts.len() <= 1 || TOGETHER.iter().any(|set| scripts.iter().all(|script| set.contains(script)));
    if together {
        return None;
    }
    let names: Vec<&str> = scripts.iter().map(|script| script.full_name()).collect();
    Some(format!("a name is written in one script; this one mixes {}", names.join(" and ")))
}

/// The name of a file without its folders and its extension.
pub(super) fn stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".json").unwrap_or(name).to_owned()
}

/// The names of files as a list in a sentence; of many the first ones.
pub(super) fn list(files: &[&str]) -> String {
    match files {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] if files.len() <= 8 => format!("{} and {last}", first.join(", ")),
        files => {
            format!("{} and {} more", files.iter().take(7).copied().collect::<Vec<_>>().join(", "), files.len() - 7)
        }
    }
}
