//! JUDGEMENT: rules over the compiled thing, one a file. What the compiler can't make sense of it
//! tells itself; a rule tells what has a meaning and is still a mistake. It never knows the loop, or
//! how a report is printed.

pub mod fix;
mod rules;
pub mod sign;

use crate::compile::{Compiled, Texts};
use crate::diagnostic::{Diagnostic, Severity};

pub use rules::RULES;

/// A rule.
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

/// What rules look at.
pub struct Subject<'a> {
    /// The texts that were compiled.
    pub texts: &'a Texts,
    /// What they mean: the program when they are sound so far, and the document with its places.
    pub compiled: &'a Compiled,
}

/// What the rules tell of a compiled document, in the order of the text.
pub fn judge(texts: &Texts, compiled: &Compiled) -> Vec<Diagnostic> {
    let subject = Subject { texts, compiled };
    let mut found = Vec::new();
    for look in RULES.iter().filter_map(|rule| rule.look) {
        look(&subject, &mut found);
    }
    found.sort_by_key(|fault| fault.place.start);
    found
}
