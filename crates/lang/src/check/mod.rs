//! JUDGEMENT: rules over the compiled program, one a file. The compiler reports what it can't give a
//! meaning; a rule reports what has a meaning and is still a mistake. This room knows neither the
//! loop, nor how a report is printed.

mod condition;
mod cursor;
mod denials;
mod examination;
pub mod file_kind;
pub mod fix;
mod input_schema;
mod key_flow;
mod made_tables;
mod model;
mod request_size;
mod rules;
pub mod scenario;
mod script_calls;
mod secret_spelling;
mod sent_text;
mod settings;
mod shell;
mod step_tree;
mod steps;
mod subject;
mod suggestions;
mod taken_paths;
#[cfg(test)]
mod tests;
mod text_scope;
mod used_actions;
mod value_schemas;

use crate::compile::{Compiled, Texts, once};
use crate::diagnostic::{Diagnostic, codes, few, few_of_many};
use crate::syntax::document::Document;

pub use cursor::Cursor;
pub use examination::examine;
pub use rules::RULES;
pub use script_calls::{ScriptedLoops, script_calls};
pub use sent_text::SentText;
pub use subject::Subject;
pub use text_scope::{AROUND, ScopeNames, TextScope};
pub use used_actions::Used;
pub use value_schemas::{DescribedValue, ValueSchemas};

/// A rule: the code that it reports, and the function that decides.
#[derive(Debug)]
pub struct Rule {
    /// Its code; [`codes::TABLE`] has its name, severity and page.
    pub code: &'static str,
    /// Reports what it finds in a document.
    pub check: fn(&Subject<'_>, &mut Vec<Diagnostic>),
}

/// What the rules report about a compiled document and the loops that it calls: first about the document, then about
/// each other file, in the order of the text.
pub(crate) fn judge(texts: &Texts, compiled: &Compiled) -> Vec<Diagnostic> {
    let subjects = Subject::all(texts, compiled);
    let mut found = Vec::new();
    for subject in &subjects {
        if !compiled.effort.spend(subject.weight()) {
            found.extend(compiled.effort.too_much(&texts.main));
            break;
        }
        for rule in RULES {
            (rule.check)(subject, &mut found);
            few_of_many(&mut found);
        }
    }
    if subjects.len() > 1 {
        // What several loops share is reported once.
        once(&mut found);
    }
    let documents = std::iter::once(compiled).chain(compiled.called.iter().map(|(_, called)| called));
    let documents = documents.flat_map(|compiled| {
        let shelf = compiled.shelf.beside.iter().chain(&compiled.shelf.given);
        std::iter::once(&compiled.document).chain(shelf.map(|document| &**document)).chain(&compiled.project)
    });
    let partial: Vec<&Document> = documents.filter(|document| !document.unknown.is_empty()).collect();
    found.retain(|fault| !partial.iter().any(|document| document.is_guessed(fault)));
    few(&mut found);
    found.sort_by_cached_key(|fault| {
        let other = (fault.place.file != texts.main.name).then(|| fault.place.file.clone());
        (other, fault.place.start)
    });
    found
}

/// Leaves out that an action never uses a parameter, where another fault says that its placeholder is written in a wrong
/// way.
fn without_consequences(faults: &mut Vec<Diagnostic>) {
    let causes: Vec<Diagnostic> = faults.iter().filter(|fault| is_cause(fault)).cloned().collect();
    faults.retain(|fault| fault.code != codes::UNUSED_PARAMETER || !causes.iter().any(|cause| explains(cause, fault)));
}

fn is_cause(fault: &Diagnostic) -> bool {
    matches!(fault.code, codes::PLAIN_VARIABLE | codes::QUOTED_PLACEHOLDER | codes::BAD_QUERY)
}

/// Whether the cause is a fault of the same action, and its fix or its help takes the parameter.
fn explains(cause: &Diagnostic, unused: &Diagnostic) -> bool {
    let Some((action, name)) = unused.path.split_once("/parameters/properties/") else { return false };
    let is_inside = cause.path.strip_prefix(action).is_some_and(|rest| rest.starts_with('/'));
    let meant = cause.suggestion.as_ref().map(|suggestion| &*suggestion.replacement).or(cause.help.as_deref());
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let takes = meant.is_some_and(|meant| meant.split(|c| !is_word(c)).any(|word| word == name));
    cause.place.file == unused.place.file && is_inside && takes
}
