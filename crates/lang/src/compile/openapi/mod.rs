//! Actions of kind `http` that are made of an OpenAPI page (3.0, 3.1): what its operations take, where they are sent and with which
//! secrets. A page is a stranger's. What no action can express is left out and said: a call is never made otherwise than the page
//! describes it.

mod answers;
mod choice_words;
mod comparison;
mod credentials;
mod json_kinds;
mod merged_schema;
mod operation;
mod page_files;
mod page_text;
mod parameter;
mod read_schema;
mod request_body;
mod server_address;
mod sound_schema;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::language::action::Method;
use answers::AnswerReader;
pub use comparison::ComparedTexts;
use credentials::scheme_keys;
use operation::WrittenOperation;
pub use page_files::PageFiles;
use page_files::PagePart;
use page_text::name_of;

/// The most operations of a page.
pub const MAX_OPERATIONS: usize = 5_000;
/// The most characters of the name of an action: all providers of models take it.
const MAX_NAME_CHARACTERS: usize = 64;

/// How a page is pinned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PinSettings {
    /// Which operations: all without a pattern.
    pub patterns: Vec<String>,
    /// The host that requests are sent to, or a whole address; that of the page without one.
    pub host: Option<String>,
    /// What the keys of secrets begin with.
    pub secret_prefix: String,
    /// What the names of actions begin with.
    pub name_prefix: String,
    /// The key of the secret that is sent as a token for operations whose security the page does not describe.
    pub bearer: Option<String>,
    /// The names that actions have already, by method and path: each stays with its operation, whatever else is new on the page.
    pub known_names: BTreeMap<String, String>,
    /// The keys of secrets by security scheme, as they were pinned: each stays with its scheme.
    pub known_keys: BTreeMap<String, String>,
}

/// The actions of a page.
#[derive(Debug, Default)]
pub struct MadeActions {
    /// The title that the page has.
    pub title: String,
    /// The version that it has.
    pub version: String,
    /// The keys of the secrets by the security schemes of the page.
    pub scheme_keys: BTreeMap<String, String>,
    /// By their names.
    pub actions: BTreeMap<String, MadeAction>,
    /// The operations that no action can make calls of, and why.
    pub left_out: BTreeMap<String, String>,
    /// How many operations no pattern names.
    pub unnamed: usize,
}

/// An operation as an action.
#[derive(Debug, Clone)]
pub struct MadeAction {
    /// Its name.
    pub name: String,
    /// Its method and path.
    pub place: String,
    /// The document of the action.
    pub action: Value,
    /// Texts that are the same where it gives the same; actions share them.
    pub output: Vec<Arc<str>>,
    /// What of it is left open or never sent, in sentences.
    pub notes: Vec<String>,
    /// What in its texts looks like an instruction to a model, or is hidden.
    pub suspicions: Vec<String>,
    /// The keys of the secrets that it sends, and what each holds.
    pub secrets: BTreeMap<String, String>,
    /// The address before its path.
    pub server: String,
}

/// The actions of a page.
///
/// # Errors
/// Why it is no page that can be read, in a sentence without a final stop.
pub fn actions_of(files: &PageFiles, settings: &PinSettings) -> Result<MadeActions, String> {
    let page = files.page();
    let version = page.text("openapi").unwrap_or_default();
    if !version.starts_with("3.0") && !version.starts_with("3.1") {
        let found = match (page.text("swagger"), version) {
            (Some(old), _) => format!("it is a Swagger page of version {old}: convert it to OpenAPI 3"),
            (None, "") => "it has no `openapi`: it is no OpenAPI page".to_owned(),
            (None, other) => format!("it is an OpenAPI page of version `{other}`"),
        };
        return Err(format!("{found}; 3.0 and 3.1 are read"));
    }
    let info = |name: &str| page.get("info").and_then(|info| info.text(name)).unwrap_or_default();
    let mut made = MadeActions {
        title: page_text::plain(info("title"), 200),
        version: page_text::plain(info("version"), 100),
        scheme_keys: scheme_keys(files, &settings.secret_prefix, &settings.known_keys),
        ..MadeActions::default()
    };
    let operations = operations(files, &mut made.left_out)?;
    let known: BTreeMap<String, &String> = operations
        .iter()
        .filter_map(|written| settings.known_names.get_key_value(&written.place()))
        .filter(|(_, name)| is_name(name))
        .map(|(place, name)| (place.clone(), name))
        .collect();
    let mut taken: BTreeSet<String> = known.values().map(|name| (*name).clone()).collect();
    let mut answers = AnswerReader::new(files);
    for written in operations {
        let place = written.place();
        let id = written.operation.text("operationId").unwrap_or_default();
        let name = match known.get(&place) {
            Some(name) => (*name).clone(),
            None => action_name(&settings.name_prefix, id, &place, &mut taken),
        };
        if !is_meant(&settings.patterns, &[&name, id, &place]) {
            made.unnamed = made.unnamed.saturating_add(1);
            continue;
        }
        match written.action(files, &name, settings, &made.scheme_keys) {
            Ok(action) => {
                let output = answers.of(written.operation);
                made.actions.insert(name, MadeAction { output, ..action });
            }
            Err(why) => {
                made.left_out.insert(place, why);
            }
        }
    }
    Ok(made)
}

/// How many operations a page has.
pub fn operation_count(files: &PageFiles) -> usize {
    operations(files, &mut BTreeMap::new()).map_or(0, |found| found.len())
}

/// The operations of a page in the order of their paths and methods.
fn operations<'p>(
    files: &'p PageFiles,
    left_out: &mut BTreeMap<String, String>,
) -> Result<Vec<WrittenOperation<'p>>, String> {
    const METHODS: [(&str, Method); 6] = [
        ("delete", Method::Delete),
        ("get", Method::Get),
        ("head", Method::Head),
        ("patch", Method::Patch),
        ("post", Method::Post),
        ("put", Method::Put),
    ];
    let mut paths: Vec<(&String, PagePart<'p>)> =
        files.page().get("paths").into_iter().flat_map(PagePart::members).collect();
    paths.sort_unstable_by_key(|(path, _)| *path);
    let mut found = Vec::new();
    for (path, written) in paths {
        let path_item = match files.follow(written) {
            Ok(path_item) => path_item,
            Err(why) => {
                left_out.insert(path.clone(), why);
                continue;
            }
        };
        for (word, method) in METHODS {
            found.extend(path_item.get(word).map(|operation| WrittenOperation { method, path, path_item, operation }));
        }
        for word in ["options", "trace"].into_iter().filter(|word| path_item.get(word).is_some()) {
            left_out.insert(format!("{} {path}", word.to_uppercase()), "no action sends this method".to_owned());
        }
        if found.len() > MAX_OPERATIONS {
            return Err(format!("it has more than {MAX_OPERATIONS} operations"));
        }
    }
    Ok(found)
}

/// A name of a file, a secret or an action for a text of a page: letters, digits and `_`; empty when the text has none.
pub fn plain_name(text: &str) -> String {
    name_of(text, &['-']).to_ascii_lowercase().chars().take(MAX_NAME_CHARACTERS / 2).collect()
}

/// Whether a text is a name that an action of a page has: a lock file may say anything.
fn is_name(text: &str) -> bool {
    let is_sign = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_sign)
        && text.len() <= MAX_NAME_CHARACTERS
}

/// A name that no other action has: of the operation's id, else of its method and path.
fn action_name(prefix: &str, id: &str, place: &str, taken: &mut BTreeSet<String>) -> String {
    let [own, of_place] = [id, place].map(|text| name_of(text, &['-']));
    let own = if own.is_empty() { of_place.to_ascii_lowercase() } else { own };
    let whole: String = format!("{prefix}{own}").chars().take(MAX_NAME_CHARACTERS).collect();
    let mut name = whole.clone();
    let mut number = 2_u32;
    while !taken.insert(name.clone()) {
        let ending = format!("_{number}");
        let begin: String = whole.chars().take(MAX_NAME_CHARACTERS.saturating_sub(ending.len())).collect();
        name = begin + &ending;
        number = number.saturating_add(1);
    }
    name
}

/// Whether a pattern names one of these; without patterns, each is meant.
fn is_meant(patterns: &[String], names: &[&str]) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| names.iter().any(|name| matches(pattern, name)))
}

/// Whether a text has the form of a pattern, in which `*` is any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at.saturating_add(part.len())..).unwrap_or_default();
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests;
