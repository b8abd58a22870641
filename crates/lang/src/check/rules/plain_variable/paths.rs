//! A whole text that is meant as a path and is none: without its `@`, or in the syntax of another language; and a
//! template where the value itself is meant.

use serde_json::Value;

use super::RULE;
use crate::check::steps::steps;
use crate::check::{SentText, Subject, TextScope};
use crate::compile::keys_of_step;
use crate::diagnostic::{Diagnostic, Severity};
use crate::language::action::TextKind;
use crate::program::file_value::PREFIX;
use crate::program::reference::{RESERVED, as_any_path, as_optional_path, as_path, spelled_path};
use crate::syntax::quoted;

const OUTPUT: &str = "/definition/output";

/// What a whole text is most likely meant as.
pub(super) enum MisspeltPath<'a> {
    /// A path but for its `@`: `input.order_id`.
    Bare(&'a str),
    /// A path where a text takes templates only: `@order_id` as an argument of a program.
    Untaken(&'a str),
    /// A name with the `?` that a path of two names or more may end in: `@note?`.
    Optional(&'a str),
    /// A path that begins with the `id` of a step, and not with the key that the step writes: the path that is meant.
    OfId(String),
    /// A path with an index or a name in brackets: `@items[0].id`.
    Bracketed(String),
    /// A path with signs in it that no path has: `@input..id`, `@ input.id`, `@input/id`.
    Broken(String),
    /// A name of a document in another spelling: `Doc:prices`, `doc: prices`.
    Document(String),
    /// A path of jq: `.items[0].id`.
    Jq(String),
    /// An expression of n8n: `={{id}}`.
    N8n,
    /// A template in `output` of what is no text.
    Printed(&'a str),
}

/// The path that a whole text seems to be.
pub(super) fn of<'a>(subject: &Subject<'_>, sent: &SentText<'a>) -> Option<MisspeltPath<'a>> {
    let text = sent.text;
    // An operand of a condition may name a path without its `@`; a list of a matcher is judged as one.
    let is_other = is_operand(sent) || is_list_of_matcher(subject, sent);
    if text.starts_with("={{") && text.ends_with("}}") && !sent.kind.is_prose() {
        return (text.matches("{{").count() == 1).then_some(MisspeltPath::N8n);
    }
    if !sent.kind.takes_path() {
        let is_path = as_any_path(text).is_some() || optional_name(text).is_some();
        let is_template = !matches!(sent.kind, TextKind::Hint | TextKind::Script) && is_path;
        return text.strip_prefix('@').filter(|_| is_template).map(MisspeltPath::Untaken);
    }
    if let Some(name) = optional_name(text) {
        return Some(MisspeltPath::Optional(name));
    }
    let is_pattern = sent.cursor.path().ends_with("/matches/1");
    if let Some(path) = broken(text).filter(|path| !is_pattern && names_value(subject, sent, path)) {
        return Some(MisspeltPath::Broken(path));
    }
    if let Some(document) = misspelt_document(subject, sent) {
        return Some(MisspeltPath::Document(document));
    }
    if is_other {
        return None;
    }
    if let Some(inner) = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")) {
        return sent.cursor.path().starts_with(OUTPUT).then_some(MisspeltPath::Printed(inner.trim()));
    }
    if let Some(path) = text.strip_prefix('.') {
        return spelled_path(path).map(MisspeltPath::Jq);
    }
    if let Some(path) = text.strip_prefix('@') {
        return spelled_path(path).filter(|_| path.contains('[')).map(MisspeltPath::Bracketed);
    }
    if let Some(path) = path_of_id(subject, sent) {
        return Some(MisspeltPath::OfId(path));
    }
    // Others, such as `payload.id`, may be what they say: the name of a field to sort by.
    let is_foreign = |first: &str| matches!(first, "inputs" | "parameters" | "workflow");
    if sent.kind == TextKind::Step && text.split_once('.').is_some_and(|(first, _)| is_foreign(first)) {
        return is_plain(text).then_some(MisspeltPath::Bare(text));
    }
    let of_step = || sent.kind == TextKind::Step && names_key(subject, sent, text);
    let named =
        text.strip_prefix("input.").or_else(|| (sent.kind == TextKind::SqlValue || of_step()).then_some(text))?;
    is_plain(named).then_some(MisspeltPath::Bare(text))
}

fn is_plain(path: &str) -> bool {
    !path.is_empty() && path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
}

impl MisspeltPath<'_> {
    /// What is reported of it, when somebody has the name.
    pub fn fault(self, subject: &Subject<'_>, sent: &SentText<'_>, scope: &TextScope<'_, '_>) -> Option<Diagnostic> {
        let warn = |fault: Diagnostic| Diagnostic { severity: Severity::Warning, ..fault };
        match self {
            Self::Bare(path) => bare_name(sent, path, scope),
            Self::Untaken(path) => {
                let (path, is_optional) = path.strip_suffix('?').map_or((path, false), |path| (path, true));
                let is_free = |meant: &String| path.starts_with("input.") || !scope.takes_elsewhere(meant);
                let meant = scope.meant(path).filter(is_free)?;
                let meant = match is_optional {
                    true => format!("{{{{#if {meant}}}}}{{{{{meant}}}}}{{{{/if}}}}"),
                    false => format!("{{{{{meant}}}}}"),
                };
                let fault = sent.cursor.report(&RULE, format!("`{}` is a text here, and no path", sent.text));
                let fault = fault.help(format!("a value is written `{meant}` here")).suggest(quoted(&meant));
                // A program may read `@name` itself, as the name of a file.
                Some(if sent.kind.is_prose() { fault } else { warn(fault) })
            }
            Self::Optional(name) => {
                let known = RESERVED.contains(&name).then(|| name.to_owned());
                let of_input = || {
                    let inputs =
                        subject.document().value.pointer("/input/properties").filter(|_| sent.action.is_none());
                    inputs?.get(name).map(|_| format!("input.{name}"))
                };
                let meant = known.or_else(|| scope.meant(name)).or_else(of_input)?;
                let mark = if meant.contains('.') { "?" } else { "" };
                let meant = format!("@{meant}{mark}");
                let message = format!("{} is a text: a path that ends in `?` has two names or more", quoted(sent.text));
                let fault = sent.cursor.report(&RULE, message);
                // A text that names a key which is there is meant as its value: the run would answer with the letters `@name?`.
                let fault = if meant == format!("@{name}") { fault } else { warn(fault) };
                Some(fault.help(format!("the value is written `{meant}`")).suggest(quoted(&meant)))
            }
            Self::OfId(path) => {
                let meant = format!("@{path}");
                let fault = warn(sent.cursor.report(&RULE, format!("`{}` is a text here, and no variable", sent.text)));
                let help = format!("a step is read by the key that it writes, and not by its `id`: `{meant}`");
                Some(fault.help(help).suggest(quoted(&meant)))
            }
            Self::Bracketed(path) => {
                let meant = format!("@{path}");
                scope.meant(&path)?;
                let fault = sent.cursor.report(&RULE, format!("{} is a text here, and no path", quoted(sent.text)));
                Some(fault.help(format!("an index stands between dots: `{meant}`")).suggest(quoted(&meant)))
            }
            Self::Broken(path) => {
                let meant = format!("@{path}");
                let fault = sent.cursor.report(&RULE, format!("{} is a text here, and no path", quoted(sent.text)));
                let fault = fault.help(format!("a path is written `{meant}`")).suggest(quoted(&meant));
                // The name of a package, `@types/node`, may begin with that of a value.
                let is_package = sent.text.contains(['/', ':']) && !path.starts_with("input.");
                Some(if is_package { warn(fault) } else { fault })
            }
            Self::Document(meant) => {
                let fault = sent.cursor.report(&RULE, format!("{} is a text here, and no document", quoted(sent.text)));
                Some(fault.help(format!("a document is written `{meant}`")).suggest(quoted(&meant)))
            }
            Self::Jq(path) => {
                let is_possible = match sent.kind {
                    TextKind::Step => path.starts_with("input.") || names_key(subject, sent, &path),
                    _ => scope.meant(&path).is_some_and(|meant| !scope.takes_elsewhere(&meant)),
                };
                let meant = format!("@{path}");
                let fault = warn(sent.cursor.report(&RULE, format!("`{}` is a text here, and no path", sent.text)));
                let fault = fault.help(format!("a path begins with `@`: `{meant}`")).suggest(quoted(&meant));
                is_possible.then_some(fault)
            }
            Self::N8n => {
                let meant = sent.text.strip_prefix('=').unwrap_or_default();
                let fault = warn(sent.cursor.report(&RULE, "the `=` before the braces is sent, too"));
                Some(fault.help("n8n marks an expression so: take it out").suggest(quoted(meant)))
            }
            Self::Printed(path) => {
                let meant = format!("@{path}");
                let known =
                    subject.compiled.steps.known.get(sent.cursor.path()).filter(|_| as_path(&meant).is_some())?;
                let message = format!("`{}` is a text: the value itself is {}", sent.text, known.types.called());
                let fault = warn(sent.cursor.report(&RULE, message));
                Some(fault.help(format!("the value is written `{meant}`")).suggest(quoted(&meant)))
            }
        }
    }
}

/// What a text that begins with the mark of a path, and is none, is most likely meant as; nothing of one in brackets, which is
/// another fault.
fn broken(text: &str) -> Option<String> {
    let marked = text.trim().strip_prefix('@').filter(|_| as_any_path(text).is_none() && !text.contains('['))?;
    let is_mark = |sign: char| matches!(sign, '@' | '.' | '$') || sign.is_whitespace();
    let path = marked.trim_start_matches(is_mark).trim_end_matches(['.', '?']);
    let path = path.strip_suffix("()").unwrap_or(path);
    let names = path.replace("->", ".").replace(['/', ':'], ".");
    let names: Vec<&str> = names.split('.').filter(|name| !name.is_empty()).collect();
    let path = names.join(".");
    as_path(&format!("@{path}")).map(|_| path)
}

/// Whether a path begins with the name of a value that there is.
fn names_value(subject: &Subject<'_>, sent: &SentText<'_>, path: &str) -> bool {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let is_written = || sent.kind == TextKind::Step && subject.compiled.steps.names.contains(first);
    match first {
        "input" => !rest.is_empty(),
        first => RESERVED.contains(&first) || is_written(),
    }
}

/// The document of the project that a text of a step names in another spelling.
fn misspelt_document(subject: &Subject<'_>, sent: &SentText<'_>) -> Option<String> {
    let (word, name) = sent.text.split_once(':').filter(|_| sent.kind == TextKind::Step && sent.action.is_none())?;
    let is_word = ["doc", "docs"].iter().any(|known| word.trim().eq_ignore_ascii_case(known));
    let name = name.trim();
    let first = name.split('.').next().unwrap_or_default();
    let meant = format!("{PREFIX}{name}");
    let is_known = subject.project().is_some_and(|project| project.documents.contains_key(first));
    (is_word && is_known && meant != sent.text && as_path(&meant).is_some()).then_some(meant)
}

/// The name in a whole text that is `@name?`.
fn optional_name(text: &str) -> Option<&str> {
    let path = text.strip_suffix('?').filter(|_| as_optional_path(text).is_none())?;
    as_path(path)?;
    path.strip_prefix('@')
}

fn is_operand(sent: &SentText<'_>) -> bool {
    sent.kind == TextKind::Step && sent.cursor.path().contains("/condition")
}

fn is_list_of_matcher(subject: &Subject<'_>, sent: &SentText<'_>) -> bool {
    let of_matcher = || {
        let step = sent.cursor.path().strip_suffix(&format!("/properties/{}", sent.field));
        let kind = step.and_then(|step| subject.document().value.pointer(step)?.get("type")?.as_str());
        sent.action.is_some() || kind == Some("matcher")
    };
    sent.kind == TextKind::Step && ["left", "right"].contains(&sent.field.as_str()) && of_matcher()
}

/// Whether a text of a step is the path to a key of a step but for its `@`: `claim.id`, or in `output` the key alone.
fn names_key(subject: &Subject<'_>, sent: &SentText<'_>, path: &str) -> bool {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let is_output = sent.cursor.path().starts_with(OUTPUT);
    subject.compiled.steps.names.contains(first) && (is_output || !rest.is_empty())
}

/// The path that is meant by a text of a step which begins with the `id` of another one.
fn path_of_id(subject: &Subject<'_>, sent: &SentText<'_>) -> Option<String> {
    let (first, rest) = sent.text.split_once('.').unwrap_or((sent.text, ""));
    let is_output = sent.cursor.path().starts_with(OUTPUT);
    let names = &subject.compiled.steps.names;
    let may_be = sent.kind == TextKind::Step && sent.action.is_none() && is_plain(sent.text) && !names.contains(first);
    if !may_be || rest.is_empty() && !is_output {
        return None;
    }
    let steps = steps(subject);
    let step = steps.iter().find(|step| step.written.get("id").and_then(Value::as_str) == Some(first))?;
    let key = keys_of_step(step.written).find(|key| names.contains(*key))?;
    Some(if rest.is_empty() { key.to_owned() } else { format!("{key}.{rest}") })
}

/// A path without its `@`, or the bare name of a parameter that nothing takes.
fn bare_name(sent: &SentText<'_>, path: &str, scope: &TextScope<'_, '_>) -> Option<Diagnostic> {
    let meant = scope
        .meant(path)
        .filter(|meant| !scope.takes_elsewhere(meant) || sent.kind == TextKind::Step || path.starts_with("input."))?;
    let message = format!("`{path}` is a text here, and no variable");
    let fault = Diagnostic { severity: Severity::Warning, ..sent.cursor.report(&RULE, message) };
    Some(fault.help(format!("a path begins with `@`: `@{meant}`")).suggest(quoted(&format!("@{meant}"))))
}
