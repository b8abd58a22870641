//! JUDGEMENT: rules over the compiled thing, one a file. What the compiler can't make sense of it
//! tells itself; a rule tells what has a meaning and is still a mistake. It never knows the loop, or
//! how a report is printed.

mod estimate;
pub mod fix;
mod model;
mod rules;
mod shell;
pub mod sign;
mod spot;
mod sql;
mod subject;
#[cfg(test)]
mod tests;
mod used;

use crate::compile::{Compiled, Texts, once};
use crate::diagnostic::{Diagnostic, Severity, few, few_of_many};
use crate::syntax::document::Document;

pub use rules::RULES;
pub use spot::Spot;
pub use subject::Subject;
pub use used::Used;

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its code, like `L090`; stable once released.
    pub code: &'static str,
    /// Its name in a few words, like `stuck-never-fires`.
    pub name: &'static str,
    /// How grave what it tells is.
    pub severity: Severity,
    /// Its page: what, why, an example, and what to write instead. Markdown; `loopctl explain CODE`.
    pub page: &'static str,
    /// Looks at a document, and tells what it finds; `None` when the compiler tells it.
    pub look: Option<fn(&Subject<'_>, &mut Vec<Diagnostic>)>,
}

/// What the rules tell of a compiled document and the loops that it calls: of the document itself first, then of each other file;
/// each in the order of its text.
pub fn judge(texts: &Texts, compiled: &Compiled) -> Vec<Diagnostic> {
    let subjects = Subject::all(texts, compiled);
    let mut found = Vec::new();
    for subject in &subjects {
        if !compiled.effort.spend(subject.weight()) {
            found.extend(compiled.effort.too_much(&texts.main));
            break;
        }
        for look in RULES.iter().filter_map(|rule| rule.look) {
            look(subject, &mut found);
            few_of_many(&mut found);
        }
    }
    if subjects.len() > 1 {
        // What several loops share is told once.
        once(&mut found);
    }
    let documents = std::iter::once(compiled).chain(compiled.called.iter().map(|(_, called)| called));
    let documents = documents.flat_map(|compiled| {
        let shelf = compiled.shelf.beside.iter().chain(&compiled.shelf.given);
        std::iter::once(&compiled.document).chain(shelf.map(|document| &**document))
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
