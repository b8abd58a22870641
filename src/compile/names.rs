//! Names: what a tool, an action or a loop may be called, so that no name passes for another; the names of files.

use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript};

use crate::diagnostic::{Diagnostic, Place, codes};

/// The longest name, in characters.
const LONGEST: usize = 64;

/// Scripts that one language is written in together.
const TOGETHER: [&[Script]; 3] = [
    &[Script::Han, Script::Hiragana, Script::Katakana],
    &[Script::Han, Script::Hangul],
    &[Script::Han, Script::Bopomofo],
];

/// The fault of a name, with a name that would do.
pub(super) fn bad_name(name: &str, fault: String, at: &str, place: Place) -> Diagnostic {
    let fault = Diagnostic::error(codes::BAD_NAME, fault, at, place);
    match allowed(name) {
        Some(allowed) => fault.help(format!("`{allowed}` would do")),
        None => fault,
    }
}

/// A name like this one that is allowed: each character that is not allowed becomes `_`. Nothing, when that does not help.
pub fn allowed(name: &str) -> Option<String> {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/') { c } else { '_' };
    let plain: String = name.nfkc().map(plain).collect();
    let plain = plain.trim_matches('_');
    (plain != name && fault_of(plain).is_none()).then(|| plain.to_owned())
}

/// Why a name is not allowed, in a sentence about it; nothing when it is. Names have 1 to 64
/// letters, digits, `_`, `-`, `.` and `/`, of one script, in the form that Unicode calls NFKC: then
/// two names that look alike in one script are one name.
pub fn fault_of(name: &str) -> Option<String> {
    let length = name.chars().count();
    if length == 0 {
        return Some("a name must not be empty".to_owned());
    }
    if length > LONGEST {
        return Some(format!("a name has at most {LONGEST} characters; this one has {length}"));
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

/// A file's name without its folders and its ending.
pub(super) fn stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".json").unwrap_or(name).to_owned()
}

/// The names of files as a list in a sentence, the first ones of many.
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
